"""Renews the SVIDs of held identities: half-way through their lifetime, with retries. Never uses an expired SVID."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Protocol

from eastgate.basics.records import dataclass
from eastgate.basics.tasks import BackgroundTask
from eastgate.control.identity.certificates import BadIdentityError, SvidExpiredError
from eastgate.control.identity.svid import IdentityChange, Svid, SvidSource, SvidsRenewed, utc_now

MAX_SLEEP_SECONDS = 60.0
"""The longest wait between two looks at the clock. Timers stop while a machine is suspended, but certificates still
expire.
"""

_FIRST_RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Clock(Protocol):
    """A clock that tests can replace."""

    def now(self) -> datetime:
        """Return the time, with its zone."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return utc_now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(eq=False, slots=True)
class _HeldIdentity:
    identity: str
    dns_names: tuple[str, ...] = ()
    svid: Svid | None = None
    task: BackgroundTask | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    nudge: asyncio.Event = field(default_factory=asyncio.Event)

    def serves(self, names: tuple[str, ...], now: datetime) -> bool:
        return self.svid is not None and self.dns_names == names and not self.svid.expired(now)


class Rotation:
    """The held identities, whose SVIDs are renewed in the background. Use it with `async with`.

    `on_renewed` gets each new SVID after the first. `on_failure` gets each identity with its error.
    """

    def __init__(
        self,
        source: SvidSource,
        *,
        on_renewed: Callable[[Svid], None] | None = None,
        on_failure: Callable[[str, Exception], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._source = source
        self._on_renewed = on_renewed
        self._on_failure = on_failure
        self._clock = clock or SystemClock()
        self._held: dict[str, _HeldIdentity] = {}
        self._unwatch = source.watch(self._on_change)

    async def __aenter__(self) -> Rotation:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def hold(self, identity: str, dns_names: Sequence[str] = ()) -> Svid:
        """Return the SVID of this identity, and renew it from now on. Raises the errors of the source.

        With other DNS names than before, the SVID is issued again with these.
        """
        names = tuple(dns_names)
        while True:
            held = self._held.setdefault(identity, _HeldIdentity(identity, names))
            if held.task is not None and held.svid is not None and held.serves(names, self._clock.now()):
                return held.svid  # also while it is being renewed
            async with held.lock:
                if self._held.get(identity) is not held:  # released during the wait
                    continue
                svid = held.svid
                if svid is None or not held.serves(names, self._clock.now()):
                    svid = await self._fetch(held, names)
                if held.task is None and self._held.get(identity) is held:
                    held.task = self._renewing(held).start()
                return svid

    def current(self, identity: str) -> Svid:
        """Return the SVID of a held identity without waiting. Raises IdentityError if it has none or an expired one."""
        held = self._held.get(identity)
        if held is None or held.svid is None:
            raise BadIdentityError(f"the identity {identity!r} is not held; call hold first")
        return _check_valid(held.svid, self._clock.now())

    async def release(self, identity: str) -> None:
        """Stop renewing this identity."""
        held = self._held.pop(identity, None)
        if held is not None and held.task is not None:
            await held.task.stop()

    async def close(self) -> None:
        """Stop renewing all identities."""
        self._unwatch()
        for identity in tuple(self._held):
            await self.release(identity)

    async def _fetch(self, held: _HeldIdentity, names: tuple[str, ...]) -> Svid:
        """Fetch an SVID and report it if it replaces another. The caller holds the lock."""
        fresh = _check_valid(await self._source.svid(held.identity, names), self._clock.now())
        before, held.svid, held.dns_names = held.svid, fresh, names
        if before is not None and before != fresh:
            try:
                if self._on_renewed is not None:
                    self._on_renewed(fresh)
                _log.info("the SVID of %s is renewed again", held.identity, extra=_fields(held.identity, "over"))
            except Exception as error:
                self._report_failure(held.identity, error)
        return fresh

    def _renewing(self, held: _HeldIdentity) -> BackgroundTask:
        def failed(_name: str, error: Exception) -> None:
            self._report_failure(held.identity, error)

        return BackgroundTask(f"renewing {held.identity}", lambda: self._renew_forever(held), failed)

    async def _renew_forever(self, held: _HeldIdentity) -> None:
        tries = 0
        while True:
            await self._wait_until_due(held, tries)
            async with held.lock:
                before = held.svid
                try:
                    await self._fetch(held, held.dns_names)
                except Exception as error:
                    self._report_failure(held.identity, error)
            # An agent may have no newer SVID yet. While the old one is valid, this is only a reason to wait.
            tries = 0 if held.svid != before else tries + 1

    async def _wait_until_due(self, held: _HeldIdentity, tries: int) -> None:
        """Wait until the time to renew, or until the source has something new."""
        svid = held.svid
        if svid is None:
            raise AssertionError("renewed before it was held")
        due = svid.renew_at if tries == 0 else self._clock.now() + _backoff(svid, tries)
        while (left := (due - self._clock.now()).total_seconds()) > 0 and not held.nudge.is_set():
            await self._sleep_or_nudge(held, min(left, MAX_SLEEP_SECONDS))
        held.nudge.clear()

    async def _sleep_or_nudge(self, held: _HeldIdentity, seconds: float) -> None:
        waiting = [
            asyncio.ensure_future(self._clock.sleep(seconds)),
            asyncio.ensure_future(held.nudge.wait()),
        ]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def _on_change(self, change: IdentityChange) -> None:
        if isinstance(change, SvidsRenewed):
            for held in self._held.values():
                if change.concerns(held.identity):
                    held.nudge.set()

    def _report_failure(self, identity: str, error: Exception) -> None:
        _log.warning("the SVID of %s could not be renewed: %s", identity, error, extra=_fields(identity, "trouble"))
        if self._on_failure is not None:
            try:
                self._on_failure(identity, error)
            except Exception:
                _log.exception("the callback for failed renewals failed")


def _fields(identity: str, state: str) -> dict[str, str]:
    return {"identity": identity, state: "an SVID that is not renewed"}


def _check_valid(svid: Svid, now: datetime) -> Svid:
    if svid.expired(now):
        raise SvidExpiredError(
            f"the SVID of {svid.identity!r} expired at {svid.not_after:%Y-%m-%d %H:%M:%S} UTC and has not been renewed"
        )
    return svid


def _backoff(svid: Svid, tries: int) -> timedelta:
    """Return an exponential backoff, capped by a fraction of the SVID's lifetime."""
    lifetime = (svid.not_after - svid.obtained).total_seconds()
    first, last = min(_FIRST_RETRY_SECONDS, lifetime / 20), min(_MAX_RETRY_SECONDS, lifetime / 4)
    return timedelta(seconds=min(last, first * 2 ** min(tries - 1, 10)))
