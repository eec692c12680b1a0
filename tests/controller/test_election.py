"""One of several replicas leads. After its end another leads, and never two at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from eastgate.controller.election import LEASES, Election, ElectionTimes
from eastgate.reading.kubernetes import Connection, JsonObject, Resource, connect
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver

_TIMES = ElectionTimes(lease=2, renew=1.0, retry=0.2)


class Replica:
    """One replica, and the number of its terms."""

    def __init__(
        self, connection: Connection, namespace: str, name: str, leading: set[str], times: ElectionTimes = _TIMES
    ) -> None:
        self.election = Election(connection, namespace, name, times=times)
        self._leading = leading
        self.beside: set[str] = set()  # replicas that led at the same time
        self.terms = 0
        self.task = asyncio.create_task(self.election.run(self._lead))

    async def _lead(self) -> None:
        self.beside |= self._leading
        self._leading.add(self.election.identity)
        self.terms += 1
        try:
            await asyncio.Event().wait()
        finally:
            self._leading.discard(self.election.identity)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.05)


def on_server(server: ApiServer, play: Callable[[Connection, str], Awaitable[None]]) -> None:
    namespace = server.namespace("election")

    async def run() -> None:
        async with connect(server.kubeconfig) as connection:
            await play(connection, namespace)

    asyncio.run(run())


def test_one_leads_and_another_follows_it(api_server: ApiServer) -> None:
    async def play(connection: Connection, namespace: str) -> None:
        leading: set[str] = set()
        replicas = {name: Replica(connection, namespace, name, leading) for name in ("a", "b", "c")}
        await until(lambda: bool(leading))
        (first,) = leading
        replicas[first].task.cancel()
        await until(lambda: bool(leading - {first}))
        assert sum(replica.terms for replica in replicas.values()) == 2
        assert not any(replica.beside for replica in replicas.values())
        for replica in replicas.values():
            replica.task.cancel()
        await asyncio.wait([replica.task for replica in replicas.values()])
        lease = await connection.get(LEASES, "eastgate", namespace)
        assert lease["spec"]["holderIdentity"] == ""

    on_server(api_server, play)


def test_a_leader_that_is_killed_is_followed_when_its_lease_has_run_out(api_server: ApiServer) -> None:
    async def play(connection: Connection, namespace: str) -> None:
        leading: set[str] = set()
        dead = connect(api_server.kubeconfig)
        first = Replica(dead, namespace, "a", leading)
        await until(lambda: bool(leading))
        second = Replica(connection, namespace, "b", leading)
        await dead.close()  # it cannot reach the server, and must stop leading by itself
        await until(lambda: leading == {"b"})
        assert not first.election.leads
        assert not second.beside
        for replica in (first, second):
            replica.task.cancel()
        await asyncio.wait([first.task, second.task])

    on_server(api_server, play)


class _SlowAnswers(Connection):
    """A connection whose writes arrive at once, but whose answers are late. After the first write, nothing arrives."""

    seconds = 0.0
    written = False

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
        if self.written:
            await asyncio.Event().wait()
        return await super().get(resource, name, namespace)

    async def replace(self, resource: Resource, obj: Mapping[str, Any], **more: Any) -> JsonObject:
        answer = await super().replace(resource, obj, **more)
        if self.seconds:
            self.written = True
            await asyncio.sleep(self.seconds)
        return answer


@pytest.mark.parametrize("leads_before", [True, False])
def test_an_answer_that_comes_late_makes_no_term_longer(api_server: ApiServer, leads_before: bool) -> None:
    """The other replica counts from the time of the write, not of the answer."""
    times = ElectionTimes(lease=3, renew=2.5, retry=0.1)

    async def play(connection: Connection, namespace: str) -> None:
        leading: set[str] = set()
        slow = connect(api_server.kubeconfig)
        slow.__class__ = _SlowAnswers
        assert isinstance(slow, _SlowAnswers)
        late = times.renew - 3 * times.retry
        slow.seconds = 0.0 if leads_before else late
        first = Replica(slow, namespace, "a", leading, times)
        if leads_before:
            await until(lambda: bool(leading))
            slow.seconds = late
        await until(lambda: slow.written)
        second = Replica(connection, namespace, "b", leading, times)
        await until(lambda: second.terms > 0)
        assert not second.beside
        for replica in (first, second):
            replica.task.cancel()
        await asyncio.wait([first.task, second.task])
        await slow.close()

    on_server(api_server, play)


@pytest.mark.parametrize(
    "edited",
    [{}, {"leaseTransitions": 2**31 - 1}, {"renewTime": "2099-01-01T00:00:00.000000Z"}, {"acquireTime": None}],
    ids=["as it is", "as often as can be", "renewed in the future", "never acquired"],
)
def test_a_lease_that_another_replica_takes_ends_the_term(api_server: ApiServer, edited: dict[str, object]) -> None:
    async def play(connection: Connection, namespace: str) -> None:
        leading: set[str] = set()
        replica = Replica(connection, namespace, "a", leading)
        await until(lambda: bool(leading))
        taken = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 2, **edited}}
        await connection.patch(LEASES, "eastgate", namespace, taken)
        await until(lambda: not leading)
        await until(lambda: leading == {"a"})  # the thief does not renew
        assert replica.terms == 2
        replica.task.cancel()
        await asyncio.wait([replica.task])

    on_server(api_server, play)
