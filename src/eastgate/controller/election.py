"""Leader election: of several replicas, the holder of a Lease writes, and renews the Lease.

It works like the election of Kubernetes' own controllers. Clocks are not compared: a Lease has expired if it was not
seen to change for its own duration. A leader that cannot renew in time stops before another replica can begin.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.reading.kubernetes import ApiError, Connection, JsonObject, Resource, UnreachableError

# A heartbeat of the event loop: its delay, and the time since the last beat.


_BEAT_SECONDS: Final = 1.0


class Heartbeat:
    """A heartbeat once a second. Use it with `async with`."""

    def __init__(self) -> None:
        self._beaten_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self.lag = 0.0
        """The delay of the last beat in seconds."""

    async def __aenter__(self) -> Heartbeat:
        self._beaten_at = time.monotonic()
        self._task = asyncio.create_task(self._beat(), name="heartbeat")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def age(self) -> float:
        """Return the seconds since the last beat."""
        return time.monotonic() - self._beaten_at

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = time.monotonic()
            self.lag = max(0.0, now - self._beaten_at - _BEAT_SECONDS)
            self._beaten_at = now


LEASES: Final = Resource("coordination.k8s.io", "v1", "leases", "Lease")
_ELECTION: Final = "the election of a leader"
_MAX_TRANSITIONS: Final = 2**31 - 1  # the limit of the API server


@dataclass(frozen=True, slots=True)
class ElectionTimes:
    """Times in seconds: the duration of a Lease, the time to renew it, and the pause between tries."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    @classmethod
    def of_lease(cls, seconds: float) -> ElectionTimes:
        """Return the times for a Lease of this duration."""
        return cls(seconds, seconds * 2 / 3, seconds * 2 / 15)


_LEASE = "eastgate"


class Election:
    """A participant of an election. `identity` distinguishes replicas."""

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        identity: str,
        *,
        times: ElectionTimes | None = None,
        on_trouble: Callable[[str, Exception], None] = lambda _what, _error: None,
        on_recovery: Callable[[str], None] = lambda _what: None,
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self.identity = identity
        self._times = times or ElectionTimes()
        self._on_trouble = on_trouble
        self._on_recovery = on_recovery
        self._seen: JsonObject = {}  # the last state of the Lease
        self._seen_at = 0.0  # the time of its last change, by the monotonic clock
        self.leads = False
        self.leader: str | None = None

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Take part until cancelled. `lead` runs while this replica leads, and is cancelled afterwards."""
        try:
            while True:
                await self._lead(lead, await self._wait_until_elected())
        finally:
            await self._release()

    async def _wait_until_elected(self) -> float:
        """Return the start time of the Lease: the time of the request, since the answer of the server may be late."""
        while True:
            asked = time.monotonic()
            if await self._try() and time.monotonic() - asked < self._times.renew:
                return asked
            await asyncio.sleep(self._times.retry * random.uniform(1.0, 1.2))  # noqa: S311 - no secret

    async def _lead(self, lead: Callable[[], Awaitable[None]], elected: float) -> None:
        self.leads = True
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew(elected))
        try:
            await asyncio.wait([leading, renewing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.leads = False
            for task in (leading, renewing):
                task.cancel()
            await asyncio.wait([leading, renewing])
        for name, task in (("leading", leading), ("renewing the Lease", renewing)):
            if not task.cancelled() and (error := task.exception()) is not None:
                self._on_trouble(name, error if isinstance(error, Exception) else RuntimeError(str(error)))
                await asyncio.sleep(self._times.retry)

    async def _renew(self, renewed: float) -> None:
        """Renew the Lease until that fails for too long."""
        while (left := self._times.renew - (time.monotonic() - renewed)) > 0:
            await asyncio.sleep(min(self._times.retry, left))
            asked = time.monotonic()
            left = self._times.renew - (asked - renewed)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(left, 0.01)):
                    renewed = asked if await self._try() else renewed
            if self.leader != self.identity:
                return

    async def _try(self) -> bool:
        """Take or renew the Lease; return whether this replica holds it."""
        try:
            lease = await self._get()
            self._observe(lease)
            spec = lease.get("spec") or {}
            holder = spec.get("holderIdentity") or None
            if holder not in (None, self.identity) and not self._has_run_out(spec):
                self._on_recovery(_ELECTION)
                return False
            written = await self._write(lease, spec, holder)
        except (ApiError, UnreachableError) as error:
            if not (isinstance(error, ApiError) and error.is_conflict):
                self._on_trouble(_ELECTION, error)
            return False
        self._observe(written)
        self._on_recovery(_ELECTION)
        return True

    async def _get(self) -> JsonObject:
        try:
            return await self._connection.get(LEASES, _LEASE, self._namespace)
        except ApiError as error:
            if not error.is_missing:
                raise
        empty = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": _LEASE, "namespace": self._namespace},
        }
        return await self._connection.create(LEASES, empty)

    async def _write(self, lease: JsonObject, spec: dict[str, Any], holder: str | None) -> JsonObject:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        ours = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, round(self._times.lease)),
            "renewTime": now,
            "acquireTime": spec.get("acquireTime") if holder == self.identity else now,
            "leaseTransitions": min((spec.get("leaseTransitions") or 0) + (holder != self.identity), _MAX_TRANSITIONS),
        }
        return await self._connection.replace(LEASES, {**lease, "spec": {**spec, **ours}})

    def _observe(self, lease: JsonObject) -> None:
        spec = lease.get("spec") or {}
        if spec != self._seen:
            self._seen, self._seen_at = spec, time.monotonic()
        self.leader = spec.get("holderIdentity") or None

    def _has_run_out(self, spec: dict[str, Any]) -> bool:
        seconds = spec.get("leaseDurationSeconds") or self._times.lease
        return time.monotonic() - self._seen_at > seconds

    async def _release(self) -> None:
        """Release the Lease, so that another replica can begin at once."""
        if self.leader != self.identity:
            return
        with contextlib.suppress(ApiError, UnreachableError, TimeoutError):
            async with asyncio.timeout(self._times.retry):
                lease = await self._connection.get(LEASES, _LEASE, self._namespace)
                spec = lease.get("spec") or {}
                if spec.get("holderIdentity") == self.identity:
                    free = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._connection.replace(LEASES, {**lease, "spec": free})
