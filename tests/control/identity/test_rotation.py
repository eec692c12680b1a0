"""Renewal of SVIDs: in time, and again after failures. An expired SVID is never used."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from typing import Any

import pytest

from eastgate.control.identity import (
    BadIdentityError,
    EmbeddedCa,
    IdentityNotGrantedError,
    Lifetimes,
    Rotation,
    Svid,
    SvidExpiredError,
)
from tests.patience import PATIENCE

ME = "spiffe://cluster.local/ns/shop/sa/web"
HOUR = timedelta(hours=1)


class FakeClock:
    """A clock that only a test advances. It wakes sleepers in the right order."""

    def __init__(self) -> None:
        self.time = datetime(2030, 1, 1, tzinfo=UTC)
        self._sleeping: list[tuple[datetime, int, asyncio.Event]] = []
        self._order = count()

    def now(self) -> datetime:
        return self.time

    async def sleep(self, seconds: float) -> None:
        wake = asyncio.Event()
        heapq.heappush(self._sleeping, (self.time + timedelta(seconds=seconds), next(self._order), wake))
        await wake.wait()

    async def pass_by(self, time: timedelta) -> None:
        end = self.time + time
        await settle()
        while self._sleeping and self._sleeping[0][0] <= end:
            self.time, _, wake = heapq.heappop(self._sleeping)
            wake.set()
            await settle()
        self.time = end
        await settle()


async def settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


class Source(EmbeddedCa):
    """A CA that fails on request, and counts its calls."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__("cluster.local", clock=clock.now)
        self.broken: Exception | None = None
        self.slow: asyncio.Event | None = None
        self.asked: list[tuple[datetime, tuple[str, ...]]] = []

    async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        self.asked.append((self._clock(), tuple(dns_names)))
        if self.slow is not None:
            await self.slow.wait()
        if self.broken is not None:
            raise self.broken
        return await super().svid(identity, dns_names)


class Stage:
    """A rotation with a fake clock, and its reports."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.source = Source(self.clock)
        self.renewed: list[Svid] = []
        self.failed: list[tuple[str, Exception]] = []
        self.rotation = Rotation(
            self.source,
            on_renewed=self.renewed.append,
            on_failure=lambda identity, error: self.failed.append((identity, error)),
            clock=self.clock,
        )


def staged(play: Callable[[Stage], Coroutine[None, None, None]]) -> Stage:
    async def run() -> Stage:
        stage = Stage()
        async with stage.rotation:
            await play(stage)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return stage

    return asyncio.run(run())


def test_an_svid_is_renewed_half_way_and_again_and_again() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.rotation.hold(ME)
        await stage.clock.pass_by(first.renew_at - stage.clock.time - timedelta(seconds=1))
        assert stage.renewed == []
        await stage.clock.pass_by(timedelta(seconds=1))
        assert len(stage.renewed) == 1
        assert stage.rotation.current(ME) == stage.renewed[0] != first
        await stage.clock.pass_by(HOUR * 24)

    stage = staged(play)
    assert 43 <= len(stage.renewed) <= 54
    assert stage.failed == []


def test_a_failed_renewal_is_reported_and_retried_with_longer_pauses() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.rotation.hold(ME)
        stage.source.broken = IdentityNotGrantedError("gone")
        await stage.clock.pass_by(first.renew_at - stage.clock.time + timedelta(minutes=2))
        assert stage.failed
        assert all(failure == (ME, stage.source.broken) for failure in stage.failed)
        times = [time for time, _ in stage.source.asked[1:]]
        pauses = [(after - before).total_seconds() for before, after in pairwise(times)]
        assert pauses[:6] == [1, 2, 4, 8, 16, 30]
        assert set(pauses[5:]) == {30}
        assert stage.rotation.current(ME) == first
        stage.source.broken = None
        await stage.clock.pass_by(timedelta(seconds=31))
        assert len(stage.renewed) == 1

    staged(play)


def test_an_expired_svid_is_never_handed_out() -> None:
    async def play(stage: Stage) -> None:
        await stage.rotation.hold(ME)
        stage.source.broken = IdentityNotGrantedError("gone")
        await stage.clock.pass_by(HOUR)
        with pytest.raises(SvidExpiredError, match="has not been renewed"):
            stage.rotation.current(ME)
        with pytest.raises(IdentityNotGrantedError):
            await stage.rotation.hold(ME)
        stage.source.broken = None
        fresh = await stage.rotation.hold(ME)
        assert not fresh.expired(stage.clock.time)
        assert stage.renewed == [fresh]

    staged(play)


def test_a_source_that_hands_out_expired_svids_is_a_failure() -> None:
    async def play(stage: Stage) -> None:
        old = stage.source.issue(ME)
        await stage.clock.pass_by(HOUR)

        class Stale(Source):
            async def svid(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:  # noqa: ARG002
                return old

        async with Rotation(Stale(stage.clock), clock=stage.clock) as rotation:
            with pytest.raises(SvidExpiredError):
                await rotation.hold(ME)

    staged(play)


def test_an_identity_that_is_held_twice_is_issued_once() -> None:
    async def play(stage: Stage) -> None:
        held = await asyncio.gather(*(stage.rotation.hold(ME) for _ in range(5)))
        assert len(set(map(id, held))) == 1

    assert len(staged(play).source.asked) == 1


def test_a_valid_svid_is_there_at_once_while_its_renewal_takes_long() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.rotation.hold(ME)
        stage.source.slow = asyncio.Event()
        await stage.clock.pass_by(first.renew_at - stage.clock.time)
        assert len(stage.source.asked) == 2
        assert await asyncio.wait_for(stage.rotation.hold(ME), PATIENCE) == first
        stage.source.slow.set()
        await settle()
        assert stage.rotation.current(ME) != first
        stage.source.slow.clear()
        await stage.clock.pass_by(HOUR)  # a renewal that never ends does not block closing

    staged(play)


def test_other_names_mean_another_certificate_and_are_kept() -> None:
    async def play(stage: Stage) -> None:
        first = await stage.rotation.hold(ME)
        stage.source.broken = IdentityNotGrantedError("gone")
        with pytest.raises(IdentityNotGrantedError):
            await stage.rotation.hold(ME, ["web.example"])
        assert stage.rotation.current(ME) == first
        stage.source.broken = None
        named = await stage.rotation.hold(ME, ["web.example"])
        assert named != first
        await stage.clock.pass_by(HOUR)

    stage = staged(play)
    assert stage.source.asked[-1][1] == ("web.example",)


def test_a_first_time_that_fails_can_be_tried_again() -> None:
    async def play(stage: Stage) -> None:
        stage.source.broken = IdentityNotGrantedError("gone")
        with pytest.raises(IdentityNotGrantedError):
            await stage.rotation.hold(ME)
        with pytest.raises(BadIdentityError, match="not held"):
            stage.rotation.current(ME)
        stage.source.broken = None
        await stage.rotation.hold(ME)
        await stage.clock.pass_by(HOUR)
        assert stage.renewed

    staged(play)


def test_a_new_signer_renews_everything_at_once() -> None:
    async def play(stage: Stage) -> None:
        await stage.rotation.hold(ME)
        stage.source.roll_intermediate()
        await settle()
        assert len(stage.renewed) == 1

    staged(play)


def test_a_released_identity_is_not_renewed() -> None:
    async def play(stage: Stage) -> None:
        await stage.rotation.hold(ME)
        await stage.rotation.release(ME)
        await stage.rotation.release(ME)
        await stage.clock.pass_by(HOUR * 2)
        with pytest.raises(BadIdentityError, match="not held"):
            stage.rotation.current(ME)

    assert len(staged(play).source.asked) == 1


def test_callbacks_that_fail_end_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def play(stage: Stage) -> None:
        def broken(svid: Svid) -> None:
            raise RuntimeError("broken")

        def also_broken(identity: str, error: Exception) -> None:
            raise RuntimeError(f"also broken by {error}")

        async with Rotation(stage.source, on_renewed=broken, on_failure=also_broken, clock=stage.clock) as rotation:
            await rotation.hold(ME)
            await stage.clock.pass_by(HOUR * 5)
            assert not rotation.current(ME).expired(stage.clock.time)

    staged(play)
    assert "also broken by broken" in caplog.text


def test_svids_of_two_seconds_are_renewed_by_the_clock_of_the_machine() -> None:
    async def run() -> None:
        authority = EmbeddedCa("cluster.local", lifetimes=Lifetimes(svid=timedelta(seconds=2)))
        renewed: list[Svid] = []
        failed: list[Exception] = []
        async with Rotation(
            authority, on_renewed=renewed.append, on_failure=lambda _, error: failed.append(error)
        ) as rotation:
            await rotation.hold(ME)
            async with asyncio.timeout(PATIENCE):
                while len(renewed) < 3:
                    await asyncio.sleep(0.1)
        assert failed == []

    asyncio.run(run())


def test_a_renewal_that_ends_for_no_known_reason_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage) -> None:
        wait = stage.rotation._wait_until_due
        failed = asyncio.Event()

        async def breaking(*words: Any) -> None:
            if not failed.is_set():
                failed.set()
                raise TypeError("unhashable")
            await wait(*words)

        monkeypatch.setattr(stage.rotation, "_wait_until_due", breaking)
        await stage.rotation.hold(ME)
        await failed.wait()
        async with asyncio.timeout(PATIENCE):
            while not stage.renewed:
                await stage.clock.pass_by(HOUR)
                await asyncio.sleep(0.01)

    assert [str(error) for _, error in staged(play).failed] == ["unhashable"]
