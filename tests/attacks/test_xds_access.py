"""Access to the control plane: the clients that may connect, and the resources that they get."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from envoy.service.accesslog.v3 import als_pb2

from eastgate.envoy.server import EXTENSION, LISTENER, SECRET, AdsServer, Limits, Store, Tokens
from eastgate.envoy.server.access_logs import LOG_METHOD, LOG_SERVICE
from tests.envoy.server.client import client, plane, run
from tests.envoy.server.fake import content, resource
from tests.patience import PATIENCE


@pytest.mark.parametrize("token", [None, "wrong", "x" * 5000])
def test_without_a_token_that_was_issued_nothing_is_sent(token: str | None) -> None:
    async def test() -> None:
        async with plane() as p, client(p, token=token) as stranger:
            p.tokens.issue("n")
            p.store.put("n", [resource(LISTENER, "a", "1")])
            assert await stranger.code() is grpc.StatusCode.UNAUTHENTICATED
            assert p.events == []
            assert p.count("refused_streams_total", reason="unauthenticated") == 1

    run(test())


@pytest.mark.parametrize("claimed", ["n", "unknown", ""])
def test_the_token_of_another_node_opens_nothing(claimed: str) -> None:
    async def test() -> None:
        async with plane() as p:
            p.tokens.issue("n")
            p.store.put("n", [resource(LISTENER, "a", "1")])
            async with client(p, node=claimed, token=p.tokens.issue("other")) as stranger:
                await stranger.say(LISTENER)
                assert await stranger.code() is grpc.StatusCode.UNAUTHENTICATED
            assert p.events == []
            assert p.count("responses_total", type="Listener") == 0

    run(test())


def test_a_node_sees_its_own_resources_only() -> None:
    async def test() -> None:
        async with plane() as p, client(p, "mine") as proxy:
            p.store.put("mine", [resource(SECRET, "own", "1")])
            p.store.put("theirs", [resource(SECRET, "key", "secret"), resource(LISTENER, "l", "secret")])
            await proxy.say(SECRET, "own", "key", "theirs", "*")
            assert content(await proxy.take()) == ({}, ["key", "theirs"])
            assert content(await proxy.take()) == ({"own": b"1"}, [])
            await proxy.say(LISTENER)
            assert content(await proxy.take()) == ({}, [])
            p.store.update("theirs", [resource(SECRET, "key", "secret 2")])
            assert await proxy.hears_nothing()

    run(test())


def test_a_stream_cannot_become_another_nodes() -> None:
    async def test() -> None:
        async with plane() as p, client(p, "mine") as proxy:
            p.store.put("mine", [])
            p.store.put("theirs", [resource(LISTENER, "l", "secret")])
            await proxy.say(LISTENER)
            await proxy.take()
            proxy.node = "theirs"
            await proxy.say(EXTENSION, "l")
            assert await proxy.code() is grpc.StatusCode.INVALID_ARGUMENT

    run(test())


def test_who_is_revoked_is_cut_off_at_once() -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:
            p.store.put("n", [])
            await proxy.say(LISTENER)
            await proxy.take()
            await p.server.wait_settled("n")
            p.tokens.revoke("n")
            p.store.put("n", [resource(LISTENER, "a", "1")])
            assert await proxy.code() is grpc.StatusCode.UNAUTHENTICATED
            assert p.server.status("n") is None
            assert p.count("responses_total", type="Listener") == 1

    run(test())


def test_a_stream_that_does_not_say_whose_it_is_is_ended() -> None:
    async def test() -> None:
        async with plane(Limits(first_message=0.1)) as p, client(p) as silent:
            assert await silent.code() is grpc.StatusCode.DEADLINE_EXCEEDED

    run(test())


def test_streams_are_bounded() -> None:
    async def test() -> None:
        async with plane(Limits(streams=1)) as p, client(p, "one") as one:
            p.store.put("one", [])
            await one.say(LISTENER)
            await one.take()
            async with client(p, "two") as two:
                assert await two.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            await one.close()
            async with asyncio.timeout(10):
                while p.server._open:
                    await asyncio.sleep(0.01)
            async with client(p, "two") as two:
                p.store.put("two", [])
                await two.say(LISTENER)
                await two.take()

    run(test())


def test_messages_and_subscriptions_are_bounded() -> None:
    async def test() -> None:
        async with plane(Limits(message=10_000, subscriptions=100)) as p:
            p.store.put("n", [])
            async with client(p) as proxy:
                await proxy.say(EXTENSION, "x" * 20_000)
                assert await proxy.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            async with client(p) as proxy:
                await proxy.say(EXTENSION, *(str(number) for number in range(101)))
                assert await proxy.code() is grpc.StatusCode.INVALID_ARGUMENT

    run(test())


def test_a_token_is_for_one_node_and_a_new_one_takes_its_place() -> None:
    tokens = Tokens()
    first, other = tokens.issue("n"), tokens.issue("other")
    assert tokens.accepts("n", first)
    assert not tokens.accepts("other", first)
    assert not tokens.accepts("unknown", first)
    second = tokens.issue("n")
    assert not tokens.accepts("n", first)
    assert not tokens.issued(first)
    assert tokens.accepts("n", second)
    tokens.revoke("n")
    assert not tokens.accepts("n", second)
    assert tokens.accepts("other", other)
    assert not any(first in repr(value) or other in repr(value) for value in vars(tokens).values())
    with pytest.raises(ValueError, match="a name"):
        tokens.issue("")


def test_one_proxy_cannot_take_the_streams_of_access_logs_of_others() -> None:
    async def test() -> None:
        records: list[str] = []
        tokens, limits = Tokens(), Limits(log_streams=4, log_streams_of_proxy=2)
        server = AdsServer(Store(), tokens, limits=limits, on_record=lambda proxy, _record: records.append(proxy.name))
        port = await server.start("127.0.0.1:0")
        greedy, other = tokens.issue("greedy"), tokens.issue("other")

        async def until_recorded(*names: str) -> None:
            async with asyncio.timeout(PATIENCE):
                while sorted(records) != sorted(names):
                    await asyncio.sleep(0.01)

        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            try:
                streams = [await _log(channel, "greedy", greedy) for _ in range(2)]
                await until_recorded("greedy", "greedy")
                refused = await _log(channel, "greedy", greedy)
                assert await refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                streams.append(await _log(channel, "other", other))
                await until_recorded("greedy", "greedy", "other")
                assert not any(stream.done() for stream in streams)
            finally:
                await server.stop(0)

    run(test())


async def _log(channel: grpc.aio.Channel, node: str, token: str) -> Any:
    """Open a stream of access logs, and send one record."""
    method: Any = channel.stream_stream(f"/{LOG_SERVICE}/{LOG_METHOD}")
    call = method(metadata=(("authorization", f"Bearer {token}"),))
    message = als_pb2.StreamAccessLogsMessage()
    message.identifier.node.id = node
    message.tcp_logs.log_entry.add()
    await call.write(message.SerializeToString())
    return call
