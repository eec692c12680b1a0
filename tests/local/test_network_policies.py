"""The sidecars of a local mesh enforce network policies by the pod of the caller.

They agree with the engine, and with the answers of `check` about the same manifests.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from eastgate.authority.auditing import Would
from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import Manifests
from eastgate.cluster.ends import ANONYMOUS
from eastgate.control.access_log import would_be
from eastgate.dialects import Policy
from eastgate.local.calling import CallResult
from eastgate.local.calls import make_calls
from eastgate.local.machine.connection import CallConnection, Target
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reports.why.proxies import explain_observation
from eastgate.settings import Settings
from tests.local.machine.calling import call
from tests.local.network_manifests import (
    CALLERS,
    CLOSED,
    DB,
    FEW,
    FROM_A,
    NAMESPACES,
    PODS,
    PORTS,
    SETS,
    network_policy,
    pod,
    read,
)
from tests.patience import PATIENCE
from tests.replacing import enforce_instead

_NUMBERS = itertools.count()


@asynccontextmanager
async def running(text: str, settings: Settings | None = None, **options: object) -> AsyncIterator[LocalMesh]:
    name = f"t{os.getpid()}-net-{next(_NUMBERS)}"
    made = MeshOptions(name=name, **options)  # type: ignore[arg-type]
    async with LocalMesh(lambda chosen: read(text, chosen), settings, made) as mesh:
        yield mesh


async def put(mesh: LocalMesh, before: Iterable[Policy], text: str) -> list[Policy]:
    """Enforce these policies in the place of others, as after a save."""
    after = list(read(text, mesh.settings).policies)
    gone = frozenset(policy.ref for policy in before) - {policy.ref for policy in after}
    await mesh.apply(Changes(Manifests(mesh.settings, policies=after), gone))
    return after


def checked(authority: Authority, question: Question) -> bool | str:
    try:
        return authority.decide(question).allowed
    except QuestionError as error:
        return error.diagnostic.message


async def _ask_all(mesh: LocalMesh, asked: Iterable[Question]) -> list[CallResult]:
    at_once = asyncio.Semaphore(6)

    async def one(question: Question) -> CallResult:
        async with at_once:
            [made] = await make_calls(mesh, question, raw=True, body=b"hello", timeout=PATIENCE)
            return made

    return await asyncio.gather(*map(one, asked))


def test_proxy_engine_and_check_decide_alike() -> None:
    async def run() -> None:
        async with running(NAMESPACES + PODS) as mesh:
            policies: list[Policy] = []
            for title, text in SETS.items():
                policies = await put(mesh, policies, text)
                offline = read(NAMESPACES + PODS + text)
                asked = [Question.of(caller, "pod:shop/db", port=port) for caller in CALLERS for port in PORTS]
                for question, one in zip(asked, await _ask_all(mesh, asked), strict=True):
                    where = mesh.own_address if question.source == ANONYMOUS else None
                    by_check = checked(offline, replace(question, source_ip=where))
                    assert (one.allowed, one.decision.allowed) == (by_check, by_check), f"{title}: {question}: {one}"
                    assert one.allowed == (one.called.body == b"hello"), f"{title}: {question}"

    asyncio.run(run())


async def ask(mesh: LocalMesh, source: str, to: str = "pod:shop/db", **more: object) -> CallResult:
    question = Question.of(source, to, port=5432, **more)  # type: ignore[arg-type]
    [made] = await make_calls(mesh, question, raw=True, body=b"hello", timeout=PATIENCE)
    assert made.agrees
    return made


@pytest.mark.parametrize("by_address", [False, True])
def test_neither_another_pod_of_the_account_nor_a_taken_address_is_the_pod_that_may(by_address: bool) -> None:
    async def run() -> None:
        async with running(NAMESPACES + FEW + FROM_A, by_address=by_address) as mesh:
            assert (await ask(mesh, "pod:shop/a")).allowed
            assert not (await ask(mesh, "pod:shop/b")).allowed
            assert not (await ask(mesh, "sa:shop/twin")).allowed, "one of its pods may not"
            a, b, db = (mesh.sites[f"shop/{name}"] for name in ("a", "b", "db"))
            target = Target(db.address, db.ports[5432])

            async def reached(source: str, identity: str | None = None) -> bool:
                tls = await mesh.certificates.context(identity) if identity else None
                return (await call(target, tls=tls, source_address=source, request=b"hello", enough=5)).body == b"hello"

            for stranger in ("spiffe://cluster.local/ns/shop/sa/c", "spiffe://cluster.local/ns/shop/sa/no-pod"):
                assert not await reached(a.address, stranger), "the address of a pod with the certificate of another"
            assert await reached(a.address) == by_address, "clear text proves no pod, unless addresses are said to"
            assert not await reached(b.address)
            assert not await reached("127.0.0.1")

    asyncio.run(run())


HTTP = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {namespace: shop, name: reads}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: db}}}]
  action: ALLOW
  enforcementLevel: APPLICATION
  rules: [{applicationAttributes: {methods: [GET]}}]
---"""


def test_requests_are_closed_before_they_are_read_and_all_that_tells_of_them_names_the_line() -> None:
    text = NAMESPACES + FEW + FROM_A + HTTP

    async def run() -> None:
        async with running(text) as mesh:
            mesh.check = lambda settings: read(text, settings)
            statuses = {}
            for source, method in itertools.product(("pod:shop/a", "pod:shop/b"), ("GET", "PUT")):
                [made] = await make_calls(
                    mesh, Question.of(source, "pod:shop/db", port=8080, method=method, path="/"), timeout=PATIENCE
                )
                assert made.agrees
                assert made.is_as_checked
                statuses[source, method] = made.called.status
                if source == "pod:shop/b":
                    assert made.observation is not None
                    why = explain_observation(made.observation, mesh.authority)
                    assert why.line["reason"] == "no ingress rule of NetworkPolicy/shop/p allows it"
                    assert why.line["line"] is not None
                    assert why.comparison.words == "the manifests still say so"
            assert statuses == {
                ("pod:shop/a", "GET"): 200,
                ("pod:shop/a", "PUT"): 403,
                ("pod:shop/b", "GET"): 0,
                ("pod:shop/b", "PUT"): 0,
            }
            question = Question.of("pod:shop/a", "pod:shop/db", port=8080, method="GET", path="/", plaintext=True)
            [plain] = await make_calls(mesh, question, timeout=PATIENCE)
            assert (plain.allowed, plain.is_as_checked) == (False, False)
            assert plain.check is not None
            assert [cause for cause in plain.check.causes if "proves no pod" in cause]

    asyncio.run(run())


def test_a_call_tells_where_check_has_no_answer_or_another_one_and_names_no_cause_that_check_does_not_confirm() -> None:
    text = NAMESPACES + FEW + FROM_A
    broken = text.replace("podSelector: {matchLabels: {app: db}}", "podSelector: {matchLabels: 7}")
    cases = {
        text: ("allow", ()),
        broken: (None, ()),
        text + "\nkind: Pod\napiVersion: v1\nmetadata: {name: 7}\n": (None, ()),
        text + CLOSED.replace("{podSelector: {}", f"{{{DB}"): ("allow", ()),
        text.replace("from: [{podSelector", "ports: [{port: 1}], from: [{podSelector"): ("deny", ("not explained",)),
    }

    async def run() -> None:
        async with running(text) as mesh:
            for now, (verdict, causes) in cases.items():
                mesh.check = lambda settings, now=now: read(now, settings)
                made = await ask(mesh, "pod:shop/a")
                assert made.check is not None
                answer = made.check.answer
                assert (answer.verdict.value if isinstance(answer, Decision) else None) == verdict, now
                assert (made.allowed, made.is_as_checked, made.check.causes) == (True, verdict == "allow", causes)
            with pytest.raises(QuestionError, match="calls from its own address"):
                await ask(mesh, "pod:shop/a", source_ip="127.0.0.9")

    asyncio.run(run())


def test_a_caller_without_an_identity_is_reported_by_its_address_and_not_by_an_unproven_name() -> None:
    blocks = network_policy(f"{{{DB}, ingress: [{{from: [{{ipBlock: {{cidr: 127.0.0.0/8}}}}]}}]}}")

    async def run() -> None:
        async with running(NAMESPACES + FEW + blocks) as mesh:
            mesh.check = lambda settings: read(NAMESPACES + FEW + blocks, settings)
            made = await ask(mesh, "anonymous")
            assert made.check is not None
            assert (made.allowed, made.is_as_checked) == (True, False)
            assert [cause for cause in made.check.causes if "an address of this machine" in cause]

    asyncio.run(run())


async def _connect(mesh: LocalMesh, caller: str) -> CallConnection:
    db, site = mesh.sites["shop/db"], mesh.sites[caller]
    identity = mesh.authority.world.workloads[caller].identity_in("cluster.local")
    tls = await mesh.certificates.context(str(identity))
    target = Target(db.address, db.ports[5432])
    return await CallConnection.open(target, tls=tls, source_address=site.address, timeout=PATIENCE)


async def _echoes(connection: CallConnection) -> bool:
    try:
        await connection.send(b"hello")
        return (await connection.raw(5, 5)).body == b"hello"
    except (OSError, EOFError):
        return False


def test_a_change_closes_the_connections_of_those_who_may_not_connect_any_more_and_no_others() -> None:
    """Other callers may have the same account."""
    both = network_policy(
        f"{{{DB}, ingress: [{{from: [{{namespaceSelector: {{matchLabels: {{team: shop}}}}, podSelector:"
        " {matchExpressions: [{key: app, operator: In, values: [a, b]}]}}]}]}"
    )
    before = NAMESPACES + FEW + both
    changes = {
        "a policy": (before.replace("[a, b]", "[b]"), False, True),
        "labels of a pod": (before.replace("name: a, labels: {app: a}", "name: a, labels: {app: x}"), False, True),
        "labels of a namespace": (before.replace("{team: shop}", "{team: x}", 1), False, False),
        "another policy": (before + CLOSED, True, True),
    }

    async def run() -> None:
        async with running(before) as mesh:
            for title, (after, *stays) in changes.items():
                await enforce_instead(mesh, read(before, mesh.settings))
                connections = [await _connect(mesh, caller) for caller in ("shop/a", "shop/b")]
                try:
                    assert [await _echoes(connection) for connection in connections] == [True, True]
                    if "policy" in title:
                        await put(mesh, (), after.removeprefix(NAMESPACES + FEW))
                    else:
                        await enforce_instead(mesh, read(after, mesh.settings))
                    await asyncio.sleep(2)  # Envoy drains for one second
                    assert [await _echoes(connection) for connection in connections] == stays, title
                finally:
                    for connection in connections:
                        await connection.close(reset=True)

    asyncio.run(run())


GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: shop, name: gw}
spec: {gatewayClassName: x, listeners: [{name: http, port: 8000, protocol: HTTP}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: db}
spec: {selector: {app: db}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: route}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: db, port: 80}]}]}
---"""
OF_GATEWAY = "{app: %s, gateway.networking.k8s.io/gateway-name: gw}"


def test_a_gateway_calls_as_its_pods_where_a_manifest_has_any() -> None:
    pods = {app: pod("shop", "gw-1", "gw-1", OF_GATEWAY % app) for app in ("a", "x")}
    cases = {"": (200, True, ()), pods["a"]: (200, True, ()), pods["x"]: (503, False, ("closed the connection",))}
    gateway_closed = FROM_A.replace("app: db", "app: a").replace("name: p", "name: gw")
    cases[pods["a"] + gateway_closed] = (200, False, ("do not enforce network policies",))

    async def run() -> None:
        text = NAMESPACES + pod("shop", "db", "db", "{app: db}") + FROM_A + GATEWAY
        async with running(text) as mesh:
            for more, (status, as_checked, words) in cases.items():
                await enforce_instead(mesh, read(text + more, mesh.settings))
                mesh.check = lambda settings, more=more: read(text + more, settings)
                question = Question.of("anonymous", "gateway:shop/gw", port=8000, method="GET", path="/", host="x")
                [made] = await make_calls(mesh, question, timeout=PATIENCE)
                assert made.check is not None
                assert (made.called.status, made.is_as_checked) == (status, as_checked), more
                assert len(made.check.causes) == len(words)
                assert all(word in cause for word, cause in zip(words, made.check.causes, strict=True))

    asyncio.run(run())


def test_proxies_log_what_an_audited_policy_would_do() -> None:
    audited = FROM_A.replace("name: p", "name: p, annotations: {eastgate.dev/mode: audit}")

    async def run() -> None:
        async with running(NAMESPACES + FEW + audited + HTTP) as mesh:
            for name, denies in (("a", False), ("b", True)):
                question = Question.of(f"pod:shop/{name}", "pod:shop/db", port=8080, method="GET", path="/")
                [made] = await make_calls(mesh, question, timeout=PATIENCE)
                assert made.observation is not None
                assert made.allowed
                would = [(each.verdict, each.policies) for each in would_be(made.observation)]
                assert would == ([(Would.DENY, ("NetworkPolicy.networking.k8s.io/shop/p",))] if denies else [])

    asyncio.run(run())


def test_the_setting_turns_it_off() -> None:
    settings = Settings.from_mapping({"networkPolicies": "ignore"})

    async def run() -> None:
        async with running(NAMESPACES + FEW + CLOSED, settings) as mesh:
            for source in ("pod:shop/b", "anonymous"):
                assert (await ask(mesh, source)).allowed

    asyncio.run(run())
