"""A followed cluster is known exactly: through restarts of its API server, and kinds that come and go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from eastgate.authority.questions import Question
from eastgate.authority.sources.source import ClusterSource
from eastgate.cluster.unread import Handling
from eastgate.reading.kubernetes import ApiError, ObjectEvent, Reflector, Replaced, UnreachableError, connect
from eastgate.settings import Settings
from tests.authority.sources.objects import ACCOUNTS, CART, DEFINITIONS, policy, service_account
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver


class Following:
    """A source that applies its batches as they come."""

    def __init__(self, source: ClusterSource, troubles: list[str]) -> None:
        self.source = source
        self.troubles = troubles

    @property
    def names(self) -> set[str]:
        """The known objects and policies."""
        authority = self.source.authority
        return {*map(str, authority.world.objects), *(str(policy.ref) for policy in authority.policies)}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                await asyncio.sleep(0.05)


@asynccontextmanager
async def following(kubeconfig: Path, *, unread: Handling = Handling.BY_KIND) -> AsyncIterator[Following]:
    troubles: list[str] = []

    async def apply(source: ClusterSource) -> None:
        async for changes in source.batches():
            source.apply(changes)

    async with connect(kubeconfig) as connection:
        source = ClusterSource(
            connection, Settings(), unread=unread, on_trouble=lambda what, error: troubles.append(f"{what}: {error}")
        )
        async with source:
            applying = asyncio.create_task(apply(source))
            try:
                yield Following(source, troubles)
                assert not applying.done(), applying.exception()
            finally:
                applying.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await applying


async def known_anew(kubeconfig: Path) -> set[str]:
    """The names that a new listing of everything gives now."""
    async with following(kubeconfig) as fresh:
        return fresh.names


async def write(kubeconfig: Path, namespace: str, stop: asyncio.Event, numbers: count[int]) -> None:
    """Create and delete until stopped, even while the server does not answer."""
    async with connect(kubeconfig) as connection:
        while not stop.is_set():
            number = next(numbers)
            with contextlib.suppress(UnreachableError, ApiError):
                await connection.create(ACCOUNTS, service_account(namespace, f"a{number}"))
                if number % 3 == 0:
                    await connection.delete(ACCOUNTS, f"a{number - 1}", namespace)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("way", ["terminated", "killed", "compacted"])
def test_nothing_is_lost_when_the_server_is(own_api_server: ApiServer, way: str) -> None:
    server = own_api_server

    async def run() -> None:
        namespace = server.namespace("busy")
        async with following(server.kubeconfig) as follower:
            stop, numbers = asyncio.Event(), count(1)
            writing = asyncio.create_task(write(server.kubeconfig, namespace, stop, numbers))
            await follower.until(lambda: f"ServiceAccount/{namespace}/a21" in follower.names)
            if way == "terminated":
                await asyncio.to_thread(server.terminate)
                await asyncio.to_thread(server.start_again)
            elif way == "killed":
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start_again)
            else:
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.compact)
                await asyncio.to_thread(server.start_again)
            last = next(numbers) + 10
            await follower.until(
                lambda: any(f"ServiceAccount/{namespace}/a{last + i}" in follower.names for i in (0, 1))
            )
            stop.set()
            await writing
            marker = service_account(namespace, "last")
            await asyncio.to_thread(server.create, f"/api/v1/namespaces/{namespace}/serviceaccounts", marker)
            await follower.until(lambda: f"ServiceAccount/{namespace}/last" in follower.names)
            expected = await known_anew(server.kubeconfig)
            await follower.until(lambda: follower.names == expected)
            assert follower.troubles  # the change was noticed

    asyncio.run(run())


def test_kinds_come_and_go(own_api_server: ApiServer) -> None:
    server = own_api_server

    async def run() -> None:
        namespace = server.namespace("kinds")
        async with following(server.kubeconfig) as follower:
            await asyncio.to_thread(server.install, "eastgate")
            path = f"/apis/gateway.networking.x-k8s.io/v1alpha2/namespaces/{namespace}/authorizationpolicies"
            await asyncio.to_thread(server.create, path, policy(namespace, "cart", ["web"]))
            await follower.until(lambda: f"AuthorizationPolicy/{namespace}/cart" in follower.names)
            await asyncio.to_thread(
                server.request, "DELETE", f"{DEFINITIONS}/authorizationpolicies.gateway.networking.x-k8s.io"
            )
            await follower.until(lambda: f"AuthorizationPolicy/{namespace}/cart" not in follower.names)

    asyncio.run(run())


def test_policies_decide_as_they_change(api_server: ApiServer) -> None:
    server = api_server
    server.install("eastgate")
    namespace = server.namespace("shop")
    path = f"/apis/gateway.networking.x-k8s.io/v1alpha2/namespaces/{namespace}/authorizationpolicies"

    def asked(source: ClusterSource, account: str) -> bool:
        question = Question.of(source=f"sa:{namespace}/{account}", destination=f"pod:{namespace}/cart", port=8080)
        return source.authority.decide(question).allowed

    async def run() -> None:
        async with following(server.kubeconfig, unread=Handling.IGNORE) as follower:
            source = follower.source
            await asyncio.to_thread(server.create, f"/api/v1/namespaces/{namespace}/pods", CART)
            await follower.until(lambda: f"Pod/{namespace}/cart" in follower.names)
            assert asked(source, "web")
            assert asked(source, "batch")
            await asyncio.to_thread(server.create, path, policy(namespace, "cart", ["web"]))
            await follower.until(lambda: not asked(source, "batch"))
            assert asked(source, "web")
            decided = source.authority.decide(
                Question.of(source=f"sa:{namespace}/web", destination=f"pod:{namespace}/cart", port=8080)
            )
            assert decided.span is not None
            assert decided.span.location == f"AuthorizationPolicy/{namespace}/cart spec.rules[0]"
            change = {"spec": policy(namespace, "cart", ["batch"])["spec"]}
            await asyncio.to_thread(server.request, "PATCH", f"{path}/cart", change)
            await follower.until(lambda: asked(source, "batch"))
            assert not asked(source, "web")
            await asyncio.to_thread(server.request, "DELETE", f"{path}/cart")
            await follower.until(lambda: asked(source, "web"))

    asyncio.run(run())


def test_a_kind_that_may_not_be_listed_is_reported(api_server: ApiServer) -> None:
    server = api_server
    namespace = server.namespace("blind")
    kubeconfig = server.kubeconfig_for(f"{namespace}/nobody")

    async def run() -> dict[str, Any]:
        async with following(kubeconfig) as follower:
            return {str(unread.kind.kind): unread for unread in follower.source.authority.unread_objects.objects}

    unread = asyncio.run(run())
    assert {"Pod", "Namespace", "Service"} <= unread.keys()
    assert "may not be listed" in unread["Pod"].kind.note
    assert not unread["Pod"].targets.located


def test_a_watch_that_fails_for_no_known_reason_begins_again(
    api_server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = api_server
    namespace = server.namespace("shop")
    breaks = asyncio.Event()
    follow = Reflector.follow

    async def failing(reflector: Reflector) -> AsyncIterator[ObjectEvent]:
        async for event in follow(reflector):
            if breaks.is_set() and not isinstance(event, Replaced):
                raise TypeError("unhashable")
            yield event

    monkeypatch.setattr(Reflector, "follow", failing)

    async def run() -> None:
        async with following(server.kubeconfig, unread=Handling.IGNORE) as follower:
            assert follower.source.follower.is_running
            breaks.set()
            await asyncio.to_thread(server.create, f"/api/v1/namespaces/{namespace}/pods", CART)
            await follower.until(lambda: any("unhashable" in trouble for trouble in follower.troubles))
            breaks.clear()
            await follower.until(lambda: follower.source.follower.is_running)
            await follower.until(lambda: f"Pod/{namespace}/cart" in follower.names)

    asyncio.run(run())
