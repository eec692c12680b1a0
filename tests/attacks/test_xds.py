"""A hostile client of the control plane gets only its own resources, and the other clients are still served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest

from eastgate.envoy.server import EXTENSION, LISTENER, SECRET, Limits
from tests.attacks.xds import METHODS, MINE, THEIRS, Metadata, impostors, messages, random_messages
from tests.envoy.server.client import METHOD, Client, Plane, client, plane
from tests.envoy.server.fake import content, resource

_SECRET = "what-is-theirs"  # noqa: S105 - it is only looked for


@asynccontextmanager
async def _served() -> AsyncIterator[tuple[Plane, Client, str]]:
    """Yield a control plane, a proxy that has the secret resources, and its token."""
    async with plane(Limits(streams=2000)) as p, client(p, THEIRS, token := p.tokens.issue(THEIRS)) as victim:
        p.store.put(MINE, [resource(LISTENER, "own", "1"), resource(SECRET, "own", "1")])
        p.store.put(
            THEIRS, [resource(kind, name, _SECRET) for kind in (SECRET, LISTENER, EXTENSION) for name in ("key", "l")]
        )
        await victim.say(SECRET, "key")
        assert content(await victim.take()) == ({"key": _SECRET.encode()}, [])
        yield p, victim, token
        p.store.update(THEIRS, [resource(SECRET, "key", "changed")])
        assert content(await victim.take()) == ({"key": b"changed"}, [])


async def _received(address: str, method: str, metadata: Metadata, sent: Iterable[bytes]) -> list[bytes]:
    """Send messages, and return all answers until the server ends the stream or is silent."""
    found: list[bytes] = []
    async with grpc.aio.insecure_channel(address) as channel:
        opened: Any = channel.stream_stream(method, None, None)
        call = opened(metadata=metadata)
        try:
            for data in sent:
                await call.write(data)
            while (response := await asyncio.wait_for(call.read(), 0.3)) is not grpc.aio.EOF:
                found.append(response)
        except (grpc.RpcError, TimeoutError, asyncio.InvalidStateError):
            pass
        finally:
            call.cancel()
    return found


async def _all(tries: Sequence[tuple[str, Any]]) -> dict[str, list[bytes]]:
    slots = asyncio.Semaphore(32)

    async def limited(task: Any) -> list[bytes]:
        async with slots:
            found: list[bytes] = await task
            return found

    received = await asyncio.gather(*(limited(task) for _, task in tries))
    return dict(zip([name for name, _ in tries], received, strict=True))


async def test_no_client_gets_resources_in_the_name_of_another_node() -> None:
    _, asked = next(messages())
    async with _served() as (p, _, theirs):
        revoked = p.tokens.issue("gone")
        p.tokens.revoke("gone")
        mine = p.tokens.issue(MINE)
        assert await _received(p.address, METHOD, (("authorization", f"Bearer {mine}"),), asked)
        tries = impostors(mine, theirs, revoked)
        received = await _all(
            [(name, _received(p.address, METHOD, metadata, _as(node, asked))) for name, node, metadata in tries]
        )
        assert {name: found for name, found in received.items() if found} == {}


def _as(node: str, sent: Iterable[bytes]) -> list[bytes]:
    """Return the same messages with another node."""
    changed = [DeltaDiscoveryRequest.FromString(data) for data in sent]
    for one in changed:
        one.node.id = node
    return [one.SerializeToString() for one in changed]


async def test_no_message_gets_resources_of_another_node() -> None:
    """Each try has its own node, because a newer stream of a node ends the older one."""
    async with _served() as (p, _, _):
        tries = []
        for number, (name, sent) in enumerate([*messages(), *random_messages(13, 100)]):
            node = f"m{number:03}"
            assert len(node) == len(MINE)
            p.store.put(node, [resource(LISTENER, "own", "1"), resource(SECRET, "own", "1")])
            metadata = (("authorization", f"Bearer {p.tokens.issue(node)}"),)
            own = [data.replace(MINE.encode(), node.encode()) for data in sent]
            tries.append((name, _received(p.address, METHOD, metadata, own)))
        received = await _all(tries)
        assert [name for name, found in received.items() if _SECRET.encode() in b"".join(found)] == []
        assert sum(map(bool, received.values())) > len(tries) / 4  # many tries get their own resources


@pytest.mark.parametrize("method", METHODS)
async def test_nothing_else_is_served(method: str) -> None:
    _, sent = next(messages())
    async with _served() as (p, _, _):
        metadata = (("authorization", f"Bearer {p.tokens.issue(MINE)}"),)
        assert await _received(p.address, method, metadata, sent) == []


async def test_clients_that_never_read_or_never_finish_disturb_no_other_client() -> None:
    async with _served() as (p, victim, _), client(p, MINE) as lazy:
        for _ in range(300):
            await lazy.say(SECRET, "own", "*")
        for number in range(50):
            p.store.update(MINE, [resource(SECRET, "own", f"{number}" * 10_000)])
            p.store.update(THEIRS, [resource(SECRET, "key", f"{_SECRET}{number}")])
            assert content(await victim.take()) == ({"key": f"{_SECRET}{number}".encode()}, [])
