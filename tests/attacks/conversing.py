"""A request over HTTP/2, and its answer."""

from __future__ import annotations

import asyncio

from eastgate.local.machine.connection import CallConnection
from tests.attacks.frames import ACK, SETTINGS, Answers, frame, opening, request
from tests.differential.asking import Http

__all__ = ["converse"]


async def converse(connection: CallConnection, http: Http, timeout: float) -> int:
    """Send one request over HTTP/2. Return the status of the answer, or 0 without an answer."""
    answers = Answers()
    await connection.send(opening() + request(*http.fields()))
    await _listen(connection, answers, 1, timeout)
    return answers.status(1)


async def _listen(connection: CallConnection, answers: Answers, stream: int, timeout: float) -> None:
    """Receive until the stream or the connection ends, or until the timeout."""
    ends = asyncio.get_running_loop().time() + timeout
    while not answers.gone and stream not in answers.ended:
        left = ends - asyncio.get_running_loop().time()
        data = (await connection.raw(left, enough=1)).body if left > 0 else b""
        if not data:
            return
        answers.hear(data)
        if answers.wants_ack:
            answers.wants_ack = False
            await connection.send(frame(SETTINGS, ACK, 0))
