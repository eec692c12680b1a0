"""Identities when the agent refuses, stops, or sends an invalid answer."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from eastgate.control.identity import (
    BundlesChanged,
    EmbeddedCa,
    IdentityChange,
    IdentityNotGrantedError,
    Lifetimes,
    NoWorkloadApiError,
    Svid,
    SvidExpiredError,
    SvidsRenewed,
    WorkloadApi,
)
from eastgate.control.identity.svid import utc_now
from tests.control.identity.fake_agent import END, REFUSE, FakeAgent, answer
from tests.patience import PATIENCE

WEB, DB = "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/db"


@pytest.fixture
def socket() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="agent") as folder:  # the path of a Unix socket must be short
        yield Path(folder) / "agent.sock"


@pytest.fixture
def agent(socket: Path) -> Iterator[FakeAgent]:
    agent = FakeAgent(socket)
    agent.start()
    yield agent
    agent.stop()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(15):
        while not true():
            await asyncio.sleep(0.02)


def test_each_push_notifies_watchers_of_its_changes(agent: FakeAgent, socket: Path) -> None:
    here, there = EmbeddedCa("cluster.local"), EmbeddedCa("partner.example")
    web, newer, db = here.issue(WEB), here.issue(WEB), here.issue(DB)

    async def run() -> None:
        told: list[IdentityChange] = []
        agent.push(answer([web, db], here.bundles))
        async with WorkloadApi(str(socket), "cluster.local") as api:
            api.watch(told.append)
            assert (await api.svid(WEB)).chain == web.chain
            assert told == [BundlesChanged(here.bundles), SvidsRenewed(frozenset({WEB, DB}))]

            agent.push(answer([newer, db], here.bundles))
            await until(lambda: len(told) == 3)
            assert told[2] == SvidsRenewed(frozenset({WEB}))
            assert (await api.svid(WEB)).chain == newer.chain

            agent.push(answer([newer, db], here.bundles, {"partner.example": there.bundles}))
            await until(lambda: len(told) == 4)
            assert isinstance(told[3], BundlesChanged)
            assert api.bundles.trust_domains == ("cluster.local", "partner.example")

    asyncio.run(run())


def test_the_longer_lived_of_two_svids_for_one_identity_is_used(agent: FakeAgent, socket: Path) -> None:
    here = EmbeddedCa("cluster.local")
    brief = EmbeddedCa("cluster.local", state=here._state, lifetimes=Lifetimes(svid=timedelta(minutes=1)))
    long = here.issue(WEB)

    async def run() -> None:
        agent.push(answer([brief.issue(WEB), long, brief.issue(WEB)], here.bundles))
        async with WorkloadApi(str(socket), "cluster.local") as api:
            assert (await api.svid(WEB)).chain == long.chain

    asyncio.run(run())


def test_svids_outlive_an_agent_that_goes_away_and_comes_back(socket: Path) -> None:
    here = EmbeddedCa("cluster.local")
    first, second = here.issue(WEB), here.issue(WEB)

    async def run() -> None:
        agent = FakeAgent(socket)
        agent.push(answer([first], here.bundles))
        agent.start()
        async with WorkloadApi(str(socket), "cluster.local") as api:
            assert (await api.svid(WEB)).chain == first.chain
            await asyncio.to_thread(agent.stop)
            await asyncio.sleep(0.3)
            assert (await api.svid(WEB)).chain == first.chain

            again = FakeAgent(socket)
            again.push(answer([second], here.bundles))
            again.start()
            try:
                seen: list[Svid] = []

                async def renewed() -> None:
                    while not seen or seen[-1].chain != second.chain:
                        seen.append(await api.svid(WEB))
                        await asyncio.sleep(0.02)

                await asyncio.wait_for(renewed(), PATIENCE)
            finally:
                await asyncio.to_thread(again.stop)

    asyncio.run(run())


def test_a_stream_that_ends_is_opened_again(agent: FakeAgent, socket: Path) -> None:
    here = EmbeddedCa("cluster.local")

    async def run() -> None:
        agent.push(answer([here.issue(WEB)], here.bundles))
        async with WorkloadApi(str(socket), "cluster.local") as api:
            await api.svid(WEB)
            agent.push(END)
            await until(lambda: agent.streams >= 2)
            await api.svid(WEB)

    asyncio.run(run())


def test_an_identity_that_is_taken_away_is_used_no_more(agent: FakeAgent, socket: Path) -> None:
    here = EmbeddedCa("cluster.local")

    async def run() -> None:
        told: list[IdentityChange] = []
        agent.push(answer([here.issue(WEB)], here.bundles))
        async with WorkloadApi(str(socket), "cluster.local") as api:
            await api.svid(WEB)
            api.watch(told.append)
            agent.push(REFUSE)
            await until(lambda: told == [SvidsRenewed(frozenset({WEB}))])
            with pytest.raises(IdentityNotGrantedError, match="no identity at all"):
                await api.svid(WEB)
            assert api.bundles == here.bundles

    asyncio.run(run())


def test_a_refusal_of_the_agent_differs_from_an_agent_that_is_down(agent: FakeAgent, socket: Path) -> None:
    async def run() -> None:
        async with WorkloadApi(str(socket), "cluster.local", timeout=0.5) as api:
            with pytest.raises(IdentityNotGrantedError, match=r"it gives no identity to this process.*has an entry"):
                await api.svid(WEB)

    asyncio.run(run())


def test_the_error_for_an_agent_that_is_down_names_the_socket(socket: Path) -> None:
    async def run() -> None:
        async with WorkloadApi(f"unix:{socket}", "cluster.local", timeout=0.3) as api:
            with pytest.raises(NoWorkloadApiError, match=r"agent\.sock.*does not exist.*see that it runs"):
                await api.svid(WEB)
            with pytest.raises(NoWorkloadApiError):
                _ = api.bundles

    asyncio.run(run())


def test_an_agent_of_another_trust_domain_is_refused(agent: FakeAgent, socket: Path) -> None:
    there = EmbeddedCa("partner.example")

    async def run() -> None:
        agent.push(answer([there.issue("spiffe://partner.example/a/b")], there.bundles))
        async with WorkloadApi(str(socket), "cluster.local", timeout=0.5) as api:
            with pytest.raises(NoWorkloadApiError, match=r"partner\.example and not 'cluster\.local': set trustDomain"):
                await api.svid(WEB)

    asyncio.run(run())


def test_an_svid_that_the_agent_let_expire_is_not_handed_out(agent: FakeAgent, socket: Path) -> None:
    past = EmbeddedCa("cluster.local", clock=lambda: utc_now() - timedelta(hours=2))

    async def run() -> None:
        agent.push(answer([past.issue(WEB)], past.bundles))
        async with WorkloadApi(str(socket), "cluster.local") as api:
            with pytest.raises(SvidExpiredError, match="has not renewed"):
                await api.svid(WEB)

    asyncio.run(run())
