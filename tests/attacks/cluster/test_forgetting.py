"""A policy is forgotten only when it is deleted: not by a partly unavailable server, nor by a change of versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from eastgate.authority.sources import following
from eastgate.authority.sources.batches import ClusterChanges
from eastgate.authority.sources.following import ClusterFollower
from eastgate.reading.kubernetes import ApiError, Discovery, JsonObject, Resource
from eastgate.settings import Settings
from tests.authority.sources.objects import GROUP, policy
from tests.patience import PATIENCE

OLD = Resource(GROUP, "v1alpha1", "authorizationpolicies", "AuthorizationPolicy")
NEW = Resource(GROUP, "v1alpha2", "authorizationpolicies", "AuthorizationPolicy")
UNAVAILABLE = ApiError(503, "ServiceUnavailable", "error trying to reach service")
BROKEN = ApiError(500, "InternalError", "conversion webhook failed")
NOT_FOUND = ApiError(404, "NotFound", "the server could not find the requested resource")


Lists: TypeAlias = dict[Resource, list[JsonObject] | ApiError]


def _stale(resources: Iterable[Resource]) -> frozenset[tuple[str, str]]:
    return frozenset((resource.group, resource.version) for resource in resources)


class Server:
    """An API server with the answers of a test. All watches end at a change."""

    def __init__(self, discovery: Discovery) -> None:
        self.discovery = discovery
        self.lists: Lists = {NEW: [policy("shop", "cart", ["web"])]}
        self._changed = asyncio.Event()
        self.asked: list[Resource] = []

    def change(
        self, served: Iterable[Resource], lists: Lists, stale: Iterable[Resource] = (), defined: Iterable[Resource] = ()
    ) -> None:
        """Serve these kinds with these objects. The aggregated server of `stale` kinds does not answer."""
        self.discovery, self.lists = Discovery(served, _stale(stale), frozenset(map(str, defined))), lists
        self.asked.clear()
        self._changed.set()
        self._changed = asyncio.Event()

    async def discover(self) -> Discovery:
        return self.discovery

    async def list(self, resource: Resource, *_args: object, **_options: object) -> tuple[list[JsonObject], str]:
        self.asked.append(resource)
        answer = self.lists.get(resource, NOT_FOUND)
        if isinstance(answer, ApiError):
            raise answer
        return [dict(each) for each in answer], "1"

    @asynccontextmanager
    async def watch(self, path: str, _params: object, _silence: float) -> AsyncIterator[AsyncIterator[Any]]:
        changed = self._changed

        async def events() -> AsyncIterator[Any]:
            await changed.wait()
            if path.startswith("/apis/gateway"):
                raise ApiError(410, "Expired", "list again")
            yield {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}

        yield events()


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_DISCOVERY_DELAY_SECONDS", 0.01)
    monkeypatch.setattr(following, "_REDISCOVERY_SECONDS", 0.05)
    monkeypatch.setattr(following, "_MISSING_RETRY_SECONDS", 0.02)


def follow(change: Callable[[Server], None], until: Callable[[Server, set[str]], bool]) -> list[set[str]]:
    """Change a server that has a policy. Return the known policies after each batch, until `until` is true."""

    async def run() -> list[set[str]]:
        server = Server(Discovery([NEW]))
        seen: list[set[str]] = []
        async with ClusterFollower(server, Settings()) as follower:  # type: ignore[arg-type] # as much as is needed
            known = {str(each["metadata"]["name"]) for each in (await follower.first()).put}
            assert known == {"cart"}

            async def take() -> None:
                nonlocal known
                async for changes in follower.batches():
                    known = (known - {ref.name for ref in changes.removed}) | {
                        str(each["metadata"]["name"]) for each in changes.put
                    }
                    seen.append(known)

            taking = asyncio.create_task(take())
            change(server)
            async with asyncio.timeout(20):
                while not until(server, known):
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)  # wait for pending work
            seen.append(known)
            taking.cancel()
        return seen

    return asyncio.run(run())


def tries(resource: Resource) -> Callable[[Server, set[str]], bool]:
    return lambda server, _known: server.asked.count(resource) >= 3


def test_a_version_that_cannot_be_listed_yet_does_not_open_targets_that_the_old_one_closed() -> None:
    seen = follow(lambda server: server.change([OLD], {NEW: NOT_FOUND, OLD: BROKEN}), lambda s, _k: OLD in s.asked)
    assert all("cart" in known for known in seen)


def test_another_version_takes_over_without_a_gap() -> None:
    moved = {**policy("shop", "cart", ["web"]), "apiVersion": OLD.api_version}
    added = {**moved, "metadata": {"name": "new", "namespace": "shop"}}
    seen = follow(
        lambda server: server.change([OLD], {NEW: NOT_FOUND, OLD: [moved, added]}), lambda _s, known: "new" in known
    )
    assert all("cart" in known for known in seen)


def test_a_404_alone_removes_nothing() -> None:
    seen = follow(lambda server: server.change([NEW], {NEW: NOT_FOUND}), tries(NEW))
    assert all("cart" in known for known in seen)


def test_a_kind_that_discovery_leaves_out_stays_as_long_as_it_is_listed() -> None:
    lists: Lists = {NEW: [policy("shop", "cart", ["web"])]}
    seen = follow(lambda server: server.change([], lists), lambda server, _known: NEW in server.asked)
    assert all("cart" in known for known in seen)


def test_a_kind_that_is_gone_is_gone() -> None:
    seen = follow(lambda server: server.change([], {}), lambda _server, known: "cart" not in known)
    assert seen[-1] == set()


def test_a_kind_that_is_served_empty_is_empty() -> None:
    seen = follow(lambda server: server.change([NEW], {NEW: []}), lambda _server, known: "cart" not in known)
    assert seen[-1] == set()


@pytest.mark.parametrize("served", [[NEW], []], ids=["kinds are known", "kinds are not known"])
def test_a_group_that_goes_away_keeps_its_policies(served: list[Resource]) -> None:
    seen = follow(
        lambda server: server.change(served, {NEW: UNAVAILABLE}, [NEW]), lambda server, _known: NEW in server.asked
    )
    assert all("cart" in known for known in seen)


def test_an_older_version_does_not_stand_in_for_one_that_is_away() -> None:
    older = {**policy("shop", "cart", ["web"]), "apiVersion": OLD.api_version}
    lists: Lists = {NEW: UNAVAILABLE, OLD: [{**older, "metadata": {"name": "else", "namespace": "shop"}}]}
    seen = follow(lambda server: server.change([OLD], lists, [NEW]), tries(NEW))
    assert all(known == {"cart"} for known in seen)


def test_a_definition_without_a_served_version_keeps_its_policies() -> None:
    seen = follow(lambda server: server.change([], {}, defined=[NEW]), tries(NEW))
    assert all("cart" in known for known in seen)


# Kinds that cannot be listed from the beginning


def begin(discovery: Discovery, lists: Lists, change: Callable[[Server], None]) -> list[tuple[set[str], set[str]]]:
    """Return the known policies and the unknown kinds of policies, at first and after each batch."""

    async def run() -> list[tuple[set[str], set[str]]]:
        server = Server(discovery)
        server.lists = lists
        known: set[str] = set()
        unread: set[str] = set()
        seen: list[tuple[set[str], set[str]]] = []

        def take(changes: ClusterChanges) -> None:
            nonlocal known, unread
            known = known | {str(each["metadata"]["name"]) for each in changes.put}
            unread = (unread - {ref.kind for ref in changes.listed}) | {each.kind for each in changes.unlisted}
            seen.append((known, unread))

        async with asyncio.timeout(PATIENCE):
            async with ClusterFollower(server, Settings()) as follower:  # type: ignore[arg-type] # as much as is needed
                take(await follower.first())
                change(server)
                async for changes in follower.batches():
                    take(changes)
                    if not unread:
                        return seen
        raise AssertionError("a batch comes")

    return asyncio.run(run())


KIND, OTHER = "AuthorizationPolicy", "XAuthorizationPolicy"
CANNOT_BE_LISTED = {
    "its kinds are not known": (Discovery([], _stale([NEW])), {}),
    "its kinds are known": (Discovery([NEW], _stale([NEW])), {NEW: UNAVAILABLE}),
    "its newest version is away": (Discovery([OLD], _stale([NEW])), {OLD: []}),
    "it cannot be watched": (Discovery([replace(NEW, verbs=frozenset({"get", "list"}))]), {NEW: []}),
}


@pytest.mark.parametrize("begins", CANNOT_BE_LISTED.values(), ids=CANNOT_BE_LISTED)
def test_a_kind_that_cannot_be_listed_is_unread_until_it_is(begins: tuple[Discovery, Lists]) -> None:
    [(known, unread), *others] = begin(
        *begins, lambda server: server.change([NEW], {NEW: [policy("shop", "cart", ["web"])]})
    )
    assert known == set()
    assert KIND in unread
    assert all(KIND in unread or "cart" in known for known, unread in others)
    assert others[-1] == ({"cart"}, set())


def test_a_kind_that_turns_out_not_to_exist_is_not_unread() -> None:
    seen = begin(Discovery([], _stale([NEW])), {}, lambda server: server.change([], {}))
    assert seen[0] == (set(), {KIND, OTHER})
    assert seen[-1] == (set(), set())
