"""Three ways to identify a caller, in this order: certificate, address, token. A header is none of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.reading import sort_documents
from eastgate.control.events import Decided, MeshEvent
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.reports.why.proxies import explain_observation
from eastgate.settings import Settings
from tests.local.machine.calling import call
from tests.patience import PATIENCE

MANIFESTS = """
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: cart, labels: {app: cart}}
spec:
  serviceAccountName: cart
  containers: [{name: c, image: c, ports: [{containerPort: 8080}, {containerPort: 9090}]}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web}
spec: {serviceAccountName: web, containers: [{name: c, image: c}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {namespace: shop, name: web-reads}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]
  action: ALLOW
  enforcementLevel: APPLICATION
  rules:
  - authorizationSource: {serviceAccounts: [web]}
    applicationAttributes: {paths: [/items], methods: [GET]}
"""
WEB = "spiffe://cluster.local/ns/shop/sa/web"
OTHER = "spiffe://cluster.local/ns/shop/sa/other"
_NUMBERS = itertools.count()


def read(settings: Settings) -> Authority:
    reading = read_text("manifests.yaml", MANIFESTS, positioned=dialects.reads)
    return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)


@dataclass
class Caller:
    mesh: LocalMesh

    async def get(
        self, *, identity: str | None = None, source: str | None = None, headers: tuple[tuple[str, str], ...] = ()
    ) -> int:
        site = self.mesh.sites["shop/cart"]
        tls = await self.mesh.certificates.context(identity) if identity else None
        request = HttpRequest("GET", "/items", headers)
        target = Target(site.address, site.ports[8080])
        return (await call(target, tls=tls, source_address=source or self.mesh.own_address, request=request)).status

    @property
    def web(self) -> str:
        return self.mesh.sites["shop/web"].address


@asynccontextmanager
async def running(**options: object) -> AsyncIterator[Caller]:
    name = f"t{os.getpid()}-knowing-{next(_NUMBERS)}"
    async with LocalMesh(read, options=MeshOptions(name=name, **options)) as mesh:  # type: ignore[arg-type]
        yield Caller(mesh)


KEY = ECKey.generate_key("P-256", parameters={"kid": "one", "alg": "ES256", "use": "sig"})
FORGED = ECKey.generate_key("P-256", parameters={"kid": "one", "alg": "ES256", "use": "sig"})
ISSUER = TokenIdentity(
    issuer="https://issuer.example",
    keys=json.dumps(KeySet([KEY]).as_dict(private=False)),
    trust_domain="cluster.local",
    audiences=("mesh",),
)


def token(
    subject: str, *, key: ECKey = KEY, seconds: int = 60, issuer: str = ISSUER.issuer, audience: str = "mesh"
) -> str:
    claims = {"iss": issuer, "aud": audience, "sub": subject, "exp": int(time.time()) + seconds}
    return jwt.encode({"alg": "ES256", "kid": "one"}, claims, key)


def bearer(subject: str, **how: object) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token(subject, **how)}"),)  # type: ignore[arg-type]


def test_without_more_only_a_certificate_tells_who_calls() -> None:
    async def run() -> None:
        async with running() as caller:
            assert await caller.get(identity=WEB) == 200
            assert await caller.get(identity=OTHER) == 403
            assert await caller.get(source=caller.web) == 403
            assert await caller.get(headers=bearer(WEB)) == 403

    asyncio.run(run())


def test_an_address_counts_where_there_is_no_certificate() -> None:
    async def run() -> None:
        async with running(by_address=True) as caller:
            assert await caller.get(source=caller.web) == 200
            assert await caller.get() == 403
            assert await caller.get(identity=OTHER, source=caller.web) == 403, "the certificate comes first"
            assert await caller.get(identity=WEB) == 200

    asyncio.run(run())


def test_a_token_counts_where_there_is_neither_certificate_nor_address() -> None:
    async def run() -> None:
        async with running(by_address=True, tokens=ISSUER) as caller:
            assert await caller.get(headers=bearer(WEB)) == 200
            assert await caller.get(headers=bearer(OTHER)) == 403
            assert await caller.get(identity=OTHER, headers=bearer(WEB)) == 403, "the certificate comes before a token"
            assert await caller.get(source=caller.web, headers=bearer(OTHER)) == 200, "the address does"
            assert await caller.get() == 403, "no token is no identity"

    asyncio.run(run())


def test_the_log_has_the_identity_of_a_token_and_why_explains_by_it() -> None:
    async def run() -> None:
        async with running(tokens=ISSUER) as caller:
            expected = [(bearer(WEB), 200, WEB), (bearer(OTHER), 403, OTHER), ((), 403, "none")]
            expected += [(bearer("spiffe://evil.example/ns/shop/sa/web"), 403, "none")]
            for headers, status, peer in expected:
                decided: asyncio.Queue[Decided] = asyncio.Queue()

                def note(event: MeshEvent, decided: asyncio.Queue[Decided] = decided) -> None:
                    if isinstance(event, Decided) and event.observation.level == "request":
                        decided.put_nowait(event)

                stop = caller.mesh.listen(note)
                assert await caller.get(headers=headers) == status
                observation = (await asyncio.wait_for(decided.get(), PATIENCE)).observation
                stop()
                assert (observation.peer, observation.status) == (peer, status)
                explained = explain_observation(observation, caller.mesh.enforcement.authority)
                assert explained.comparison.holds is True

    asyncio.run(run())


@pytest.mark.parametrize(
    ("subject", "how", "status"),
    [
        (WEB, {"key": FORGED}, 401),
        (WEB, {"seconds": -3600}, 401),
        (WEB, {"issuer": "https://evil.example"}, 401),
        (WEB, {"audience": "somebody else"}, 403),
        ("spiffe://evil.example/ns/shop/sa/web", {}, 403),
        ("none", {}, 403),
        ("", {}, 403),
    ],
    ids=["forged", "expired", "issuer", "audience", "domain", "none", "empty"],
)
def test_an_invalid_token_allows_no_caller(subject: str, how: dict[str, object], status: int) -> None:
    assert _asked_with_tokens(bearer(subject, **how)) == status


def test_what_is_no_token_is_refused_and_a_header_says_nothing() -> None:
    assert _asked_with_tokens((("authorization", "Bearer nonsense"),)) == 401
    assert _asked_with_tokens((("x-forwarded-client-cert", f"URI={WEB}"), ("x-jwt-sub", WEB))) == 403


def _asked_with_tokens(headers: tuple[tuple[str, str], ...]) -> int:
    async def run() -> int:
        async with running(tokens=ISSUER) as caller:
            return await caller.get(headers=headers)

    return asyncio.run(run())
