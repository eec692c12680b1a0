"""The toy store end to end: a client, the gateway, the authorizer with a real issuer, a sidecar, the application."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from eastgate import Question
from eastgate.cluster.ends import Destination
from eastgate.control.authorizer.checks import ProxyAnswer, ProxyCheck
from eastgate.control.authorizer.deciding import LiveAuthorizer
from eastgate.control.events import Enforced
from eastgate.local.calls import make_calls
from eastgate.reports.why.proxies import explain_observation
from tests.local.toystore import GATEWAY, POD, STAFF, ToyStore, received, toy_store
from tests.programs.oidc_issuer import KEYS, OidcIssuer

pytestmark = pytest.mark.real
T = TypeVar("T")
KITES, WOODEN = "EXAMPLE-KEY-PAPER-KITES", "EXAMPLE-KEY-WOODEN-TOYS"
ROUTE_POLICY = "AuthPolicy.apim.kuadrant.io/toystore/toystore"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcIssuer]:
    with OidcIssuer(tmp_path_factory.mktemp("issuer")) as running:
        yield running


@pytest.fixture
def issuer(process: OidcIssuer) -> OidcIssuer:
    """The issuer with a single key."""
    process.withdraw()
    process.answer(200)
    process.rotate()
    return process


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The paths about which the authorizer is asked."""
    asked: list[str | None] = []
    decide = LiveAuthorizer.decide

    def counting(self: LiveAuthorizer, check: ProxyCheck, where: Destination | None = None) -> ProxyAnswer:
        asked.append(check.path)
        return decide(self, check, where)

    monkeypatch.setattr(LiveAuthorizer, "decide", counting)
    return asked


def in_store(folder: Path, issuer: OidcIssuer | None, do: Callable[[ToyStore], Awaitable[T]]) -> T:
    async def run() -> T:
        async with toy_store(folder / "manifests", issuer) as store:
            return await do(store)

    return asyncio.run(run())


def test_200_401_403_and_404(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        assert await store.staff(issuer.token(**STAFF)) == 200
        assert store.application.requests == 1
        assert await store.staff(issuer.token(**STAFF, lifetime=-60)) == 401
        assert await store.staff(issuer.token(**{**STAFF, "aud": "payroll"})) == 401
        assert await store.staff(issuer.token(**STAFF)[:-4] + "AAAA") == 401
        assert await store.staff("none") == 401
        assert await store.staff(issuer.token(**{**STAFF, "group": "visitors"})) == 403
        assert (await store.send("/admin")).status == 401
        assert (await store.send("/admin", host="shop")).status == 404
        assert (await store.send("/toys/../admin")).status == 401
        assert store.application.requests == 1

    in_store(tmp_path, issuer, do)


def test_denials_as_a_scheme_wants_them(tmp_path: Path) -> None:
    async def do(store: ToyStore) -> None:
        unpaid = await store.send("/v1/toys", f"APIKEY {KITES}", host="api", method="POST")
        assert (unpaid.status, unpaid.header("x-ext-auth-reason")) == (402, "this needs the gold plan")
        elsewhere = await store.send("/admin", host="www")
        assert (elsewhere.status, elsewhere.header("location")) == (302, "https://admin.toystore.com/admin")
        unknown = await store.send("/admin")
        assert unknown.header("www-authenticate") == 'Bearer realm="idp-users"'
        assert store.application.requests == 0

    in_store(tmp_path, None, do)


def test_an_unselected_request_is_untouched_and_asks_no_authorizer(tmp_path: Path, checks: list[str | None]) -> None:
    async def do(store: ToyStore) -> None:
        seen = await store.send("/toys", "Bearer nonsense", host="www", headers={"x-partner": "mine"})
        assert received(seen)["headers"] == {
            "host": "www.toystore.com",
            "x-partner": "mine",
            "authorization": "Bearer nonsense",
            "x-forwarded-proto": "https",
        }
        assert (await store.send("/help")).status == 200
        assert checks == []
        assert await store.partner(KITES) == 200
        assert checks == ["/v1/toys"]

    in_store(tmp_path, None, do)


def test_the_application_gets_the_headers_of_a_scheme_and_not_those_that_a_client_forges(tmp_path: Path) -> None:
    async def do(store: ToyStore) -> None:
        forged = {
            "x-partner": "forged",
            "X-Partner": "forged again",
            "x-eastgate-decision": "forged",
            "x-eastgate-source": "spiffe://cluster.local/ns/toystore/sa/toystore",
            "x-eastgate-certificate": "forged",
            "x-envoy-original-path": "/",
        }
        seen = await store.send("/v1/toys", f"APIKEY {KITES}", host="api", headers=forged)
        arrived = received(seen)["headers"]
        assert arrived.pop("x-eastgate-decision") != "forged"
        assert arrived == {
            "host": "api.toystore.com",
            "x-forwarded-proto": "https",
            "x-partner": "paper-kites",
        }

    in_store(tmp_path, None, do)


def test_the_policies_of_gateway_and_route_both_apply(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        token = f"Bearer {issuer.token(**STAFF)}"
        # from outside of the office: the gateway's policy denies, whatever the route's says
        assert (await store.send("/toys", token, method="DELETE")).status == 403
        assert (await store.logged())[0].decision == "403:AuthPolicy.apim.kuadrant.io/gateways/edge#0"
        await store.edit("gateway-policy.yaml", lambda text: text.replace(r"^10\.20\.", r"^127\."))
        assert (await store.send("/toys", token, method="DELETE")).status == 200
        assert (await store.send("/toys", method="DELETE")).status == 401
        assert (await store.send("/toys", method="DELETE", host="www")).status == 200  # only the gateway selects it
        assert store.application.requests == 2

    in_store(tmp_path, issuer, do)


def test_keys_rotate_and_are_withdrawn_under_a_warm_cache(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        first = issuer.rotate()
        old = issuer.token(**STAFF, kid=first)
        assert [await store.staff(old), await store.staff(old)] == [200, 200]
        asked = issuer.asked[KEYS]
        issuer.rotate()
        new = issuer.token(**STAFF)
        assert await store.staff(new) == 401  # the issuer may not be asked again so soon
        store.clock.now += 10
        assert [await store.staff(new), await store.staff(old)] == [200, 200]
        assert issuer.asked[KEYS] == asked + 1
        issuer.withdraw(first)
        assert await store.staff(old) == 200
        store.clock.now += 100
        assert [await store.staff(old), await store.staff(new)] == [401, 200]

    in_store(tmp_path, issuer, do)


def test_a_token_in_the_cache_expires(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        for lifetime in (4, 16, 64):  # a busy machine takes longer to show it the first time
            token = issuer.token(**STAFF, lifetime=lifetime)
            statuses = [await store.staff(token)]
            if statuses == [200]:
                break
        assert statuses == [200]
        while statuses[-1] == 200:
            await asyncio.sleep(0.1)
            statuses.append(await store.staff(token))
        assert statuses[-1] == 401

    in_store(tmp_path, issuer, do)


def test_an_issuer_that_is_down_is_outlived_with_fresh_keys_and_then_closes(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        token, another = issuer.token(**STAFF), issuer.token(**STAFF, jti=1)
        assert await store.staff(token) == 200
        issuer.answer(503)
        store.clock.now += 299
        assert [await store.staff(token), await store.staff(another)] == [200, 200]
        store.clock.now += 1
        assert await store.staff(token) == 401
        assert (await store.send("/toys", host="www")).status == 200
        issuer.answer(200)
        store.clock.now += 10
        assert await store.staff(token) == 200

    in_store(tmp_path, issuer, do)


def test_api_keys_follow_their_secrets(tmp_path: Path) -> None:
    def secret(key: str, label: str = "partners") -> str:
        return f"""
apiVersion: v1
kind: Secret
metadata: {{name: new, namespace: toystore, labels: {{toystore.com/keys: {label}}}}}
stringData: {{api_key: {key}}}
"""

    async def do(store: ToyStore) -> None:
        assert [await store.partner("FIRST"), await store.partner(KITES)] == [401, 200]
        before = store.mesh.store.revision(POD)
        changed = await store.edit("new.yaml", lambda _: secret("FIRST"))
        assert isinstance(changed, Enforced)
        assert await store.partner("FIRST") == 200
        await store.edit("new.yaml", lambda _: secret("SECOND"))
        assert [await store.partner("FIRST"), await store.partner("SECOND")] == [401, 200]
        await store.edit("new.yaml", lambda _: secret("SECOND", "warehouse"))
        assert await store.partner("SECOND") == 401
        await store.edit("keys.yaml", lambda text: text.replace(KITES, "ANOTHER-KEY"))
        assert [await store.partner(KITES), await store.partner("ANOTHER-KEY")] == [401, 200]
        await store.edit("keys.yaml", lambda text: text.replace("toystore.com/plan: free", "toystore.com/plan: gold"))
        assert await store.partner("ANOTHER-KEY", "POST") == 200
        (store.folder / "keys.yaml").unlink()
        await store.apply()
        assert [await store.partner("ANOTHER-KEY"), await store.partner(WOODEN)] == [401, 401]
        assert store.mesh.store.revision(POD) == before

    in_store(tmp_path, None, do)


def test_decisions_of_the_authorizer_are_logged_explained_and_counted(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        assert await store.staff(issuer.token(**{**STAFF, "group": "visitors"})) == 403
        [observation] = await store.logged()
        assert (observation.allowed, observation.decision, observation.asked) == (False, f"403:{ROUTE_POLICY}#0", True)
        why = explain_observation(observation, store.mesh.authority)
        assert why.line["way"] == "HTTPRoute toystore/toystore rule 0 -> Service toystore/toystore"
        assert await store.partner(KITES) == 200
        assert (await store.logged())[0].decision == f"200:{ROUTE_POLICY}#1"
        counted = store.mesh.metrics.text().decode()
        labels = f'level="request",policy="{ROUTE_POLICY}",port="443",rule="0",verdict="deny",workload="{GATEWAY}"'
        assert f"eastgate_decisions_total{{{labels}}} 1.0" in counted

    in_store(tmp_path, issuer, do)


def test_a_call_agrees_with_the_engine(tmp_path: Path, issuer: OidcIssuer) -> None:
    async def do(store: ToyStore) -> None:
        tokens = [issuer.token(**STAFF), issuer.token(**{**STAFF, "group": "visitors"}), "none"]
        statuses = []
        for token in tokens:
            headers = {"authorization": f"Bearer {token}"}
            asked = Question.of(
                "anonymous", GATEWAY, port=None, method="GET", path="/admin", host="admin.toystore.com", headers=headers
            )
            [made] = await make_calls(store.mesh, asked)
            assert made.agrees
            assert made.allowed == made.decision.allowed
            statuses.append((made.called.status, made.decision.status))
        assert statuses == [(200, 200), (403, 403), (401, 401)]

    in_store(tmp_path, issuer, do)


def test_a_policy_in_audit_mode_is_reported_and_not_enforced(tmp_path: Path) -> None:
    def in_audit(text: str) -> str:
        return text.replace("  annotations:\n", "  annotations:\n    eastgate.dev/mode: audit\n")

    async def do(store: ToyStore) -> None:
        await store.edit("route-policy.yaml", in_audit)
        assert (await store.send("/admin")).status == 200
        [observation] = await store.logged()
        assert observation.audit == (f"ask:{ROUTE_POLICY}#0",)
        labels = f'policy="{ROUTE_POLICY}",port="443",rule="0",workload="{GATEWAY}",would="ask"'
        assert f"eastgate_audit_matches_total{{{labels}}} 1.0" in store.mesh.metrics.text().decode()
        assert (await store.send("/toys", host="www")).status == 200
        assert (await store.logged())[0].audit == ("200:open",)
        assert (await store.send("/toys", method="DELETE")).status == 403  # by the policy of the gateway

    in_store(tmp_path, None, do)


def test_a_client_certificate_is_an_identity(tmp_path: Path) -> None:
    scheme = """\
  - hosts: [mtls.toystore.com]
    identity:
    - name: clients
      mtls: {selector: {matchLabels: {toystore.com/authority: mesh}}}
    authorization:
    - name: encrypted
      json: {rules: [{selector: context.request.http.scheme, operator: eq, value: https}]}
"""
    rule = "  - hosts: [mtls.toystore.com]\n"

    def with_scheme(text: str) -> str:
        return text.replace("  authSchemes:\n", f"{rule}  authSchemes:\n{scheme}")

    def secret(authority: str) -> str:
        held = base64.b64encode(authority.encode()).decode()
        labels = "{toystore.com/authority: mesh}"
        metadata = f"{{name: mesh, namespace: toystore, labels: {labels}}}"
        return f"apiVersion: v1\nkind: Secret\nmetadata: {metadata}\ndata: {{tls.crt: {held}}}\n"

    async def do(store: ToyStore) -> None:
        await store.edit("route-policy.yaml", with_scheme)
        agent = "spiffe://cluster.local/ns/toystore/sa/agent"
        tls = await store.mesh.certificates.context(agent)
        chain = (await store.mesh.certificates.hold(agent)).chain
        authority = chain[chain.rindex("-----BEGIN CERTIFICATE") :]  # the next above the client's

        async def statuses() -> list[int]:
            with_certificate = await store.send("/", host="mtls", tls=tls)
            forged = {"x-eastgate-certificate": "forged", "x-forwarded-client-cert": "forged"}
            return [with_certificate.status, (await store.send("/", host="mtls", headers=forged)).status]

        assert await statuses() == [401, 401]
        await store.edit("authority.yaml", lambda _: secret(authority))
        assert await statuses() == [200, 401]
        (store.folder / "authority.yaml").unlink()
        await store.apply()
        assert await statuses() == [401, 401]
        assert store.application.requests == 1

    in_store(tmp_path, None, do)
