"""Requests over HTTP/2, one behind the other on one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eastgate.mesh.local.connection import Connection
from tests.attacks.frames import ACK, SETTINGS, Answers, frame, opening, request
from tests.differential.asking import Http

__all__ = ["converse", "listen"]


async def converse(connection: Connection, requests: Sequence[Http], timeout: float) -> list[int]:
    """Return the statuses of the first requests, at least one; 0 where there was no answer."""
    answers, statuses = Answers(), list[int]()
    await connection.send(opening())
    for number, http in enumerate(requests):
        stream = 2 * number + 1
        await connection.send(request(*http.fields(), stream=stream))
        await listen(connection, answers, [stream], timeout)
        if not answers.status(stream) and statuses:
            break  # it is asked again, on a connection of its own
        statuses.append(answers.status(stream))
        if not statuses[-1]:
            break
    return statuses or [0]


async def listen(connection: Connection, answers: Answers, streams: Sequence[int], timeout: float) -> None:
    """Take what comes until these streams have ended, the connection has, or the time is over."""
    ends = asyncio.get_running_loop().time() + timeout
    while not answers.gone and not answers.ended.issuperset(streams):
        left = ends - asyncio.get_running_loop().time()
        data = (await connection.raw(left, enough=1)).body if left > 0 else b""
        if not data:
            return
        answers.hear(data)
        if answers.wants_ack:
            answers.wants_ack = False
            await connection.send(frame(SETTINGS, ACK, 0))
