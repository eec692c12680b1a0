"""A gateway with a failing authorizer or unreadable policies: no request passes it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eastgate import load
from eastgate.cluster.ends import Destination
from eastgate.control import authorizing
from eastgate.control.access_log import NO_ANSWER
from eastgate.control.authorizer.checks import ProxyAnswer, ProxyCheck
from eastgate.control.authorizer.deciding import LiveAuthorizer
from eastgate.control.events import Enforced, MeshEvent, Noted, NotEnforced, PartlyEnforced
from eastgate.envoy.config import gateway_filters, gateway_port
from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.mesh import LocalMesh, MeshOptions
from tests.local.agents import AGENTS
from tests.local.machine.calling import call
from tests.local.running import runtime_folder
from tests.local.toystore import GATEWAY, ToyStore, toy_store, write_manifests

pytestmark = pytest.mark.real
KEY = "EXAMPLE-KEY-PAPER-KITES"


def in_store(folder: Path, do: Callable[[ToyStore], Awaitable[None]]) -> None:
    async def run() -> None:
        async with toy_store(folder / "manifests") as store:
            await do(store)

    asyncio.run(run())


# The authorizer


def test_without_an_authorizer_what_it_would_decide_is_refused(tmp_path: Path) -> None:
    async def do(store: ToyStore) -> None:
        assert await store.partner(KEY) == 200
        await store.logged()
        await store.mesh.authorizer.__aexit__(None, None, None)
        assert await store.partner(KEY) == 503
        assert (await store.logged())[-1].decision == f"503:{NO_ANSWER}"
        assert (await store.send("/toys", host="www")).status == 200
        assert (await store.send("/admin", host="shop")).status == 404
        assert store.application.requests == 2

    in_store(tmp_path, do)


class SlowAuthorizer:
    """Holds every check until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.released = threading.Event()
        self.waiting = threading.Semaphore(0)
        self._decide = LiveAuthorizer.decide
        monkeypatch.setattr(LiveAuthorizer, "decide", self._hold())

    def _hold(self) -> Callable[[LiveAuthorizer, ProxyCheck, Destination | None], ProxyAnswer]:
        def decide(authorizer: LiveAuthorizer, check: ProxyCheck, where: Destination | None = None) -> ProxyAnswer:
            self.waiting.release()
            self.released.wait()
            return self._decide(authorizer, check, where)

        return decide


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowAuthorizer]:
    authorizer = SlowAuthorizer(monkeypatch)
    yield authorizer
    authorizer.released.set()


@pytest.fixture
def _impatient_gateway(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gateway_filters, "_AUTHORIZER_TIMEOUT", "0.5s")
    gateway_port._request_listener.cache_clear()
    yield
    gateway_port._request_listener.cache_clear()


@pytest.mark.usefixtures("_impatient_gateway")
def test_an_authorizer_that_takes_too_long_lets_nothing_through(tmp_path: Path, slow: SlowAuthorizer) -> None:
    async def do(store: ToyStore) -> None:
        assert await store.partner(KEY) == 503
        assert store.application.requests == 0
        slow.released.set()
        assert await store.partner(KEY) == 200

    in_store(tmp_path, do)


def test_an_authorizer_with_too_much_to_do_refuses(
    tmp_path: Path, slow: SlowAuthorizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorizing, "_THREADS", 1)
    monkeypatch.setattr(authorizing, "_MAX_OPEN_CHECKS", 2)

    async def do(store: ToyStore) -> None:
        calls = [asyncio.create_task(store.partner(KEY)) for _ in range(6)]
        await asyncio.to_thread(slow.waiting.acquire)
        refused, held = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result() for task in refused} == {503}
        assert store.application.requests == 0
        slow.released.set()
        assert {await task for task in held} <= {200, 503}
        assert await store.partner(KEY) == 200

    in_store(tmp_path, do)


def test_an_authorizer_that_breaks_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decide(*_: object) -> ProxyAnswer:
        raise RuntimeError

    monkeypatch.setattr(LiveAuthorizer, "decide", decide)

    async def do(store: ToyStore) -> None:
        assert await store.partner(KEY) in (403, 503)
        assert store.application.requests == 0

    in_store(tmp_path, do)


# Policies with errors


def test_a_policy_of_the_gateway_with_errors_closes_its_ports_until_it_has_none(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    write_manifests(manifests)
    policy = manifests / "gateway-policy.yaml"
    policy.write_text(policy.read_text().replace("operator: matches", "operator: mtches"))

    async def do(store: ToyStore) -> None:
        [closed] = [event for event in store.events if isinstance(event, NotEnforced)]
        assert (closed.workload, closed.port, closed.policies) == (GATEWAY, 443, ("AuthPolicy/gateways/edge",))
        assert closed.message.startswith(f"{GATEWAY} port 443 is closed: a policy that targets it cannot be read: ")
        assert "[EG5106]" in closed.message
        assert (await store.send("/toys", host="www")).status == 403
        assert await store.partner(KEY) == 403
        assert store.application.requests == 0
        mended = await store.edit("gateway-policy.yaml", lambda text: text.replace("mtches", "matches"))
        assert isinstance(mended, Enforced)
        assert not store.mesh.enforcement.closed
        assert (await store.send("/toys", host="www")).status == 200

    in_store(tmp_path, do)


def test_a_policy_of_a_route_with_errors_closes_that_route(tmp_path: Path) -> None:
    other = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: status, namespace: gateways}
spec:
  parentRefs: [{name: edge}]
  hostnames: [status.toystore.com]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: elsewhere.example}}]}]
"""

    async def do(store: ToyStore) -> None:
        (store.folder / "other.yaml").write_text(other)
        changed = await store.edit("route-policy.yaml", lambda text: text.replace("operator: eq", "operator: equals"))
        assert isinstance(changed, PartlyEnforced)
        assert changed.closed == (f"{GATEWAY} port 443, HTTPRoute toystore/toystore",)
        [closed] = [event for event in store.events if isinstance(event, NotEnforced)]
        assert closed.policies == ("AuthPolicy/toystore/toystore",)
        assert (await store.send("/toys", host="www")).status == 403
        assert (await store.send("/", host="status")).status == 302
        assert store.application.requests == 0

    in_store(tmp_path, do)


BROKEN = """
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {name: broken, namespace: prod}
spec:
  targetRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: maths}]
  rules:
  - name: agent
    source: {type: Nobody}
"""
NOT_READ = """
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: one, namespace: prod}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: web}]}
"""


@asynccontextmanager
async def agents(folder: Path, more: str) -> AsyncIterator[tuple[LocalMesh, list[MeshEvent]]]:
    (folder / "agents.yaml").write_text(AGENTS + more)
    events: list[MeshEvent] = []
    with runtime_folder():
        mesh = LocalMesh(
            lambda settings: load(folder, settings=settings, strict=False, live=True),
            None,
            MeshOptions(name=f"faults-{os.getpid()}"),
            events.append,
        )
        async with mesh:
            yield mesh, events


async def get(mesh: LocalMesh, host: str, path: str) -> int:
    site = mesh.gateways["gateway:prod/gw"]
    request = HttpRequest("GET", path, (("host", host),))
    return (await call(Target(site.address, site.ports[8080]), request=request, timeout=20)).status


def test_what_is_closed_of_backends_and_routes_is_named(tmp_path: Path) -> None:
    async def do() -> None:
        async with agents(tmp_path, BROKEN) as (mesh, events):
            [closed] = [event for event in events if isinstance(event, NotEnforced)]
            assert closed.policies == ("XAccessPolicy/prod/broken",)
            where = "gateway:prod/gw port 8080, Backend prod/maths, HTTPRoute prod/web"
            assert closed.message.startswith(f"{where} is closed: ")
            assert await get(mesh, "maths.example", "/") == 403
            assert await get(mesh, "a.web.example", "/api") == 200
            assert await get(mesh, "a.web.example", "/mirror") >= 500  # unsupported by this gateway

    asyncio.run(do())


def test_unread_objects_at_gateways_are_reported(tmp_path: Path) -> None:
    async def do() -> None:
        async with agents(tmp_path, NOT_READ) as (_, events):
            notes = [event.message for event in events if isinstance(event, Noted)]
            assert any("1 SecurityPolicy" in note for note in notes)

    asyncio.run(do())
