"""The tries of an attack, and the rules that none of them may break.

- Policies allow each request that reaches the application, *as it arrived*.
- The application cannot read it as a forbidden request.
- No client gets an answer to the request of another client.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from eastgate.local.machine.connection import CallConnection, HttpRequest
from eastgate.local.machine.http1 import Malformed
from tests.attacks.application import MARK, SAW, Arrived
from tests.attacks.placements import Attacked
from tests.differential.asking import Http
from tests.patience import PATIENCE

__all__ = ["Reading", "Try", "attack", "compare", "send_and_receive", "wrong_arrival"]

Reading = Callable[[Arrived], str | None]  # the reason why the application must not get it, or None

_MAX_CONCURRENT_TRIES = 256
_FIRST_BYTE_SECONDS, _QUIET_SECONDS = 0.6, 0.2  # the waits of a try for the first byte, and for further bytes


@dataclass(frozen=True, slots=True)
class Try:
    """Bytes on their own connection. A pause between the pieces makes a proxy read them one by one."""

    name: str
    pieces: tuple[bytes, ...]
    alpn: tuple[str, ...] = ()


def attack(attacked: Attacked, tries: Sequence[Try], reading: Reading) -> list[str]:
    """Make all tries, while a victim uses the same application. Return the violations."""
    found = _some(attacked, tries, reading)
    if found:
        found.append(f"a try that does it alone: {_culprit(attacked, tries, reading)}")
    return found


def _culprit(attacked: Attacked, tries: Sequence[Try], reading: Reading) -> Try | None:
    """Return a try that causes a violation alone, or None if it takes several tries."""
    while len(tries) > 1:
        half = len(tries) // 2
        halves = (tries[:half], tries[half:])
        guilty = next((some for some in halves if _some(attacked, some, reading)), None)
        if guilty is None:
            return None
        tries = guilty
    return tries[0]


def _some(attacked: Attacked, tries: Sequence[Try], reading: Reading) -> list[str]:
    before = len(attacked.application.arrived)
    malformed = len(attacked.application.malformed)
    nonce = secrets.token_hex(8)
    found = attacked.run(_all(attacked, tries, nonce))
    for arrived in attacked.application.arrived[before:]:
        if nonce not in (arrived.mark or ""):
            problem = wrong_arrival(attacked, arrived, reading)
            if problem is not None:
                found.append(problem)
    found += [
        f"the application got bytes that are not HTTP: {one}" for one in attacked.application.malformed[malformed:]
    ]
    return found


def wrong_arrival(attacked: Attacked, arrived: Arrived, reading: Reading) -> str | None:
    """Return the violation by a request that arrived, or None."""
    why = reading(arrived)
    if why is not None:
        return f"{why}: {arrived}"
    plain = tuple((name, value) for name, value in arrived.headers if not name.startswith(":"))
    first, *others = arrived.hosts or ("",)
    headers = tuple((name, value) for name, value in plain if name.lower() != "host")
    more = tuple(("host", host) for host in others if host != first)
    denial = attacked.denial(Http(arrived.method, arrived.target, first, (*headers, *more)))
    return None if denial is None else f"arrived, though {denial}: {arrived}"


async def _all(attacked: Attacked, tries: Sequence[Try], nonce: str) -> list[str]:
    slots, found = asyncio.Semaphore(_MAX_CONCURRENT_TRIES), list[str]()

    async def make(one: Try) -> None:
        async with slots:
            received = await _make(attacked, one)
        if nonce.encode() in received:
            found.append(f"{one.name}: got the answer to a request of another client")

    serving = asyncio.create_task(_victim(attacked, nonce))
    try:
        await asyncio.gather(*(make(one) for one in tries))
    finally:
        serving.cancel()
        await asyncio.wait([serving])
    if not serving.cancelled() and (error := serving.exception()) is not None:
        found.append(f"another client was disturbed: {error!r}")
    return found


async def _make(attacked: Attacked, one: Try) -> bytes:
    return await send_and_receive(attacked.open(one.alpn), one.pieces)


async def send_and_receive(
    opening: Awaitable[CallConnection],
    pieces: Sequence[bytes],
    first: float = _FIRST_BYTE_SECONDS,
    quiet: float = _QUIET_SECONDS,
) -> bytes:
    """Send the pieces one after the other, and return all bytes that come back.

    `first` and `quiet`: the seconds to wait for the first byte, and for further bytes.
    """
    received = b""
    try:
        async with await opening as connection:
            for piece in pieces[:-1]:
                await connection.send(piece)
                await asyncio.sleep(0.02)
            await connection.send(pieces[-1])
            wait = first
            while data := (await connection.raw(wait, enough=1)).body:
                received += data
                wait = quiet
    except OSError:  # a proxy may close before it has read everything
        pass
    return received


async def _victim(attacked: Attacked, nonce: str) -> None:
    """Send requests all the time, and check that every answer is for its request. A server may close between two."""
    number = 0
    while True:
        try:
            opened = await attacked.open(victim=True)
        except OSError:  # on a busy machine the handshake may time out
            await asyncio.sleep(0.1)
            continue
        async with opened as connection:
            for _ in range(20):
                number += 1
                mark = f"{nonce}-{number}"
                saw = await _ask(connection, mark)
                assert saw == mark, f"asked {mark}, got the answer to {saw}"
                await asyncio.sleep(0.01)


async def _ask(connection: CallConnection, mark: str) -> str | None:
    try:
        await connection.send(HttpRequest(path="/api/victim", headers=((MARK, mark),)))
        return (await connection.response(PATIENCE)).header(SAW)
    except (Malformed, EOFError) as error:
        raise AssertionError(f"no answer to {mark}: {error!r}") from error


def compare(attacked: Attacked, requests: Iterable[Http], reading: Reading) -> Iterator[str]:
    """Send these requests, and yield each disagreement of engine and proxy, and each wrong arrival.

    A proxy may refuse a malformed request. It must never pass on a request that the engine denies.
    """
    tried = list(requests)
    for http, verdict in zip(tried, attacked.verdicts(tried), strict=True):
        denial = attacked.denial(http)
        arrived = verdict.arrived
        if arrived is not None and (problem := wrong_arrival(attacked, arrived, reading)) is not None:
            yield f"{http}: {problem}"
        elif arrived is not None and denial is not None:
            yield f"{http}: the proxy allows ({verdict.log_entry}), but the engine denies ({denial})"
        elif arrived is not None and not verdict.status:
            yield f"{http}: arrived, and its answer was lost"
        elif arrived is None and denial is None and not verdict.refused:
            yield f"{http}: the proxy denies ({verdict.status} {verdict.log_entry}), but the engine allows"
