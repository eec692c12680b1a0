"""A watch without events is restarted, and this is not reported as a problem."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from eastgate.reading.kubernetes import Connection, Put, Reflector, Replaced
from eastgate.reading.kubernetes.errors import SilenceError
from tests.authority.sources.objects import ACCOUNTS, service_account


class Silent:
    """A server whose first watch sends nothing."""

    def __init__(self) -> None:
        self.watches = 0

    async def list(self, *_: object, **__: object) -> tuple[list[dict[str, Any]], str]:
        return [], "1"

    @asynccontextmanager
    async def watch(self, _path: str, params: Mapping[str, str], _silence: float) -> AsyncIterator[Any]:
        self.watches += 1
        assert params["resourceVersion"] == "1"
        if self.watches == 1:
            raise SilenceError("nothing came")
        yield _events()


async def _events() -> AsyncIterator[dict[str, Any]]:
    account = service_account("shop", "web")
    account["metadata"]["resourceVersion"] = "2"
    yield {"type": "ADDED", "object": account}


def test_silence_is_no_trouble() -> None:
    async def run() -> None:
        troubles: list[Exception] = []
        server = Silent()
        reflector = Reflector(
            cast("Connection", server), ACCOUNTS, on_trouble=lambda _resource, error: troubles.append(error)
        )
        events = reflector.follow()
        assert isinstance(await anext(events), Replaced)
        assert isinstance(await anext(events), Put)
        assert server.watches == 2
        assert not troubles
        await events.aclose()

    asyncio.run(run())
