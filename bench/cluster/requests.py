"""Requests to an API server over connections that stay open. Each is cheap: a run sends tens of thousands."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from tests.programs import ApiServer

from bench.cluster.objects import App, namespaces, nodes, objects_of_app, pod_status

__all__ = ["Channel", "Channels", "fill"]

_CONNECTIONS = 8
_IDLE_SECONDS = 30.0  # after this time a connection is reopened: the server closes idle ones


class Channel:
    """One connection, as an administrator."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._context = ssl.create_default_context(cafile=str(server.certificate))

    async def __aenter__(self) -> Channel:
        await self._open()
        return self

    async def _open(self) -> None:
        url = urlsplit(self._server.url)
        self._reader, self._writer = await asyncio.open_connection(
            url.hostname, url.port, ssl=self._context, limit=2**24
        )
        self._head = f"Host: {url.netloc}\r\nAuthorization: Bearer {self._server.token}\r\n"
        self._used_at = time.monotonic()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    async def send(self, method: str, path: str, body: object = None) -> bytes:
        """Send one request, and return the body of the answer. Fails on an error, except if the object exists."""
        if time.monotonic() > self._used_at + _IDLE_SECONDS:
            self._writer.close()
            await self._open()
        status, content = await self._exchange(method, path, body)
        self._used_at = time.monotonic()
        assert status < 300 or (method, status) == ("POST", 409), f"{method} {path}: {content.decode(errors='replace')}"
        return content

    async def _exchange(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        status, headers = await self._ask(method, path, body)
        if headers.get(b"transfer-encoding") != b"chunked":
            return status, await self._reader.readexactly(int(headers.get(b"content-length", b"0")))
        chunks = [chunk async for chunk in self._chunks()]
        return status, b"".join(chunks)

    async def _ask(self, method: str, path: str, body: object) -> tuple[int, dict[bytes, bytes]]:
        content = b"" if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        self._writer.write(head.encode() + content)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        return int(lines[0].split()[1]), headers

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int((await self._reader.readline()).split(b";")[0], 16):
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)

    async def watch(self, path: str) -> AsyncIterator[Any]:
        """Watch the collection at `path`, and yield its events. The connection cannot be used for anything else."""
        status, _ = await self._ask("GET", path, None)
        assert status == 200, path
        rest = b""
        async for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)


class Channels:
    """Several connections that share the requests."""

    def __init__(self, channels: list[Channel]) -> None:
        self._channels = channels

    @classmethod
    @asynccontextmanager
    async def open(cls, server: ApiServer) -> AsyncIterator[Channels]:
        async with AsyncExitStack() as stack:
            yield cls([await stack.enter_async_context(Channel(server)) for _ in range(_CONNECTIONS)])

    async def send_all(self, requests: Iterable[tuple[str, str, object]]) -> list[bytes]:
        """Send requests in any order. Return the answers in the order of the requests."""
        waiting = enumerate(requests)
        answers: dict[int, bytes] = {}

        async def work(channel: Channel) -> None:
            for number, request in waiting:
                answers[number] = await channel.send(*request)

        await asyncio.gather(*(work(channel) for channel in self._channels))
        return [answers[number] for number in sorted(answers)]


async def fill(channels: Channels, of: list[App]) -> None:
    """Create all objects of applications, and mark their pods as running."""
    created = [("POST", "/api/v1/namespaces", each) for each in namespaces(of)]
    created += [("POST", "/api/v1/nodes", each) for each in nodes(of)]
    await channels.send_all(created)
    await channels.send_all(("POST", path, obj) for app in of for path, obj in objects_of_app(app))
    await channels.send_all(
        ("PATCH", f"/api/v1/namespaces/{app.namespace}/pods/{name}/status", pod_status(app.address(number)))
        for app in of
        for number, name in enumerate(app.pods)
    )
