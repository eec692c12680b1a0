"""The server over gRPC, with a client that plays the proxy."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

import grpc
import pytest

from eastgate.envoy.server import (
    CLUSTER,
    EXTENSION,
    LISTENER,
    ROUTE,
    Acked,
    AdsServer,
    Connected,
    Disconnected,
    Limits,
    ResourceRejected,
    Settled,
    Store,
    Tokens,
)
from tests.envoy.server.client import Client, client, plane, run
from tests.envoy.server.fake import content, resource


async def until(happened: object, events: list[object]) -> None:
    async with asyncio.timeout(10):
        while happened not in events:
            await asyncio.sleep(0.005)


def test_a_change_is_sent_accepted_counted_and_settled() -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:
            p.store.put("n", [resource(LISTENER, "a", "1"), resource(LISTENER, "b", "1")])
            await proxy.say(LISTENER)
            assert content(await proxy.take()) == ({"a": b"1", "b": b"1"}, [])
            await p.server.wait_settled("n")
            p.store.update("n", [resource(LISTENER, "a", "2")])
            waiting = asyncio.create_task(p.server.wait_settled())
            response = await proxy.hear()
            assert content(response) == ({"a": b"2"}, [])
            assert not waiting.done()
            await proxy.reply(response)
            await waiting
            assert p.events[0] == Connected("n")
            assert p.events[-2:] == [Acked("n", LISTENER, (("a", resource(LISTENER, "a", "2").version),)), Settled("n")]
            assert p.count("responses_total", type="Listener") == p.count("acks_total", type="Listener") == 2
            assert p.count("sent_bytes_total", type="Listener") > 100
            assert p.count("connected_proxies") == 1
            assert p.count("change_to_ack_seconds_count", type="Listener") == 1

    run(test())


def test_settled_comes_with_each_answer() -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:
            p.store.put("n", [resource(EXTENSION, "e", "0")])
            await proxy.say(EXTENSION, "e")
            await proxy.take()
            for number in range(50):
                p.store.update("n", [resource(EXTENSION, "e", str(number + 1))])
                await asyncio.gather(p.server.wait_settled("n"), proxy.take())

    run(test())


def test_settled_waits_for_a_proxy_that_is_named_and_for_no_other() -> None:
    async def test() -> None:
        async with plane() as p:
            p.store.put("n", [])
            await p.server.wait_settled()
            with pytest.raises(TimeoutError):
                await p.server.wait_settled("n", timeout=0.05)
            async with client(p) as proxy:
                waiting = asyncio.create_task(p.server.wait_settled("n"))
                await proxy.say(LISTENER)
                await proxy.take()
                await waiting
                p.store.update("n", [resource(LISTENER, "a", "1")])
                waiting = asyncio.create_task(p.server.wait_settled())
                await proxy.hear()
            await waiting  # a disconnected proxy is not waited for

    run(test())


def test_a_rejection_names_the_policy_and_others_go_on() -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:
            p.store.put("n", [resource(ROUTE, "a", "1", "first"), resource(ROUTE, "b", "1")])
            await proxy.say(ROUTE, "a", "b")
            await proxy.take()
            p.store.update("n", [resource(ROUTE, "a", "bad", "first", "second"), resource(ROUTE, "b", "2")])
            waiting = asyncio.create_task(p.server.wait_settled("n"))
            await proxy.reply(await proxy.hear(), "something")
            response = await proxy.hear()
            assert content(response) == ({"a": b"bad"}, [])
            await proxy.reply(response, "something about a")
            assert content(await proxy.take()) == ({"b": b"2"}, [])
            await waiting
            status = p.server.status("n")
            assert status is not None
            assert status == p.server.proxies()[0]
            assert status.settled is True
            assert status.connected_since is not None
            (found,) = status.rejected
            assert found.rejection is not None
            assert (found.name, found.rejection.message) == ("a", "something about a")
            assert found.rejection.policies == {"second"}
            assert [one.accepted == one.wanted for one in status.resources] == [False, True]
            assert [event for event in p.events if isinstance(event, ResourceRejected)] == [
                ResourceRejected("n", ROUTE, "a", found.rejection)
            ]
            assert p.count("nacks_total", type="RouteConfiguration") == 2
            assert p.count("rejections_total", type="RouteConfiguration", policy="second") == 1

    run(test())


def test_a_slow_proxy_costs_no_memory_and_gets_only_the_last_state() -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:
            p.store.put("n", [resource(EXTENSION, "e", "start" * 2000)])
            await proxy.say(EXTENSION, "e")
            response = await proxy.hear()
            gc.collect()
            tracemalloc.start()
            try:
                for number in range(1000):
                    p.store.update("n", [resource(EXTENSION, "e", f"{number:05}" * 2000)])
                    await asyncio.sleep(0)
                gc.collect()
                grown, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert grown < 300_000  # ten million in all
            await proxy.reply(response)
            assert content(await proxy.take()) == ({"e": b"00999" * 2000}, [])
            await p.server.wait_settled("n")
            assert p.count("responses_total", type="TypedExtensionConfig") == 2

    run(test())


def test_a_proxy_that_does_not_read_does_not_block_others() -> None:
    async def test() -> None:
        async with plane() as p, client(p, "deaf") as deaf, client(p, "n") as proxy:
            p.store.put("deaf", [resource(ROUTE, f"e{one}", str(one) * 900_000) for one in range(9)])
            p.store.put("n", [resource(ROUTE, "e", "1")])
            await deaf.say(ROUTE, *(f"e{one}" for one in range(9)))
            await proxy.say(ROUTE, "e")
            await proxy.take()
            await p.server.wait_settled("n")
            assert p.count("responses_total", type="RouteConfiguration") == 2

    run(test())


def test_after_a_reconnect_nothing_is_sent_that_the_proxy_has() -> None:
    async def test() -> None:
        async with plane() as p:
            first = [resource(LISTENER, "a", "1"), resource(LISTENER, "b", "1")]
            p.store.put("n", first)
            async with client(p) as proxy:
                await proxy.say(LISTENER)
                await proxy.take()
                await p.server.wait_settled("n")
            await until(Disconnected("n"), p.events)
            async with client(p) as proxy:
                await proxy.say(LISTENER, initial_resource_versions={one.name: one.version for one in first})
                await p.server.wait_settled("n")
                assert p.count("responses_total", type="Listener") == 1
                p.store.update("n", [resource(LISTENER, "b", "2")])
                assert content(await proxy.take()) == ({"b": b"2"}, [])

    run(test())


def test_a_newer_stream_takes_over() -> None:
    async def test() -> None:
        async with plane() as p:
            p.store.put("n", [resource(LISTENER, "a", "1")])
            token = p.tokens.issue("n")
            async with client(p, token=token) as old, client(p, token=token) as new:
                await old.say(LISTENER)
                await old.take()
                await new.say(LISTENER)
                await new.take()
                assert await old.code() is grpc.StatusCode.ABORTED
                await p.server.wait_settled("n")
                assert p.events.count(Connected("n")) == 2
                assert p.events.count(Disconnected("n")) == 1
                p.store.put("n", [resource(LISTENER, "a", "2")])
                assert content(await new.take()) == ({"a": b"2"}, [])

    run(test())


def test_a_storm_of_reconnects_leaves_nothing_behind() -> None:
    async def test() -> None:
        async with plane() as p:
            p.store.put("n", [resource(LISTENER, "a", "1"), resource(CLUSTER, "c", "1")])
            token = p.tokens.issue("n")
            before = len(asyncio.all_tasks())
            for number in range(200):
                proxy = Client(p.address, "n", token)
                await proxy.say(LISTENER)
                if number % 3:
                    await proxy.hear()
                await proxy.close()
            async with client(p, token=token) as last:
                await last.say(CLUSTER)
                await last.take()
                await last.say(LISTENER)
                await last.take()
                await p.server.wait_settled("n")
            async with asyncio.timeout(10):
                while p.count("connected_proxies") or len(asyncio.all_tasks()) > before:
                    await asyncio.sleep(0.01)
            assert p.server._open == 0
            assert not p.store._watchers
            assert p.events.count(Connected("n")) == p.events.count(Disconnected("n"))

    run(test())


def test_a_half_open_stream_is_dropped() -> None:
    async def test() -> None:
        async with plane(Limits(keepalive=0.5, keepalive_timeout=0.5)) as p:
            p.store.put("n", [resource(LISTENER, "a", "1")])
            frozen = asyncio.Event()
            relay_path = p.address.removeprefix("unix:") + ".relay"

            async def pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
                while (data := await source.read(65536)) and not frozen.is_set():
                    to.write(data)
                    await to.drain()
                await asyncio.sleep(60)

            tasks: list[asyncio.Task[None]] = []
            writers: list[asyncio.StreamWriter] = []

            async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                up_reader, up_writer = await asyncio.open_unix_connection(p.address.removeprefix("unix:"))
                writers.extend((writer, up_writer))
                tasks.append(asyncio.create_task(pass_on(reader, up_writer)))
                tasks.append(asyncio.create_task(pass_on(up_reader, writer)))

            middle = await asyncio.start_unix_server(relay, relay_path)
            proxy = Client(f"unix:{relay_path}", "n", p.tokens.issue("n"))
            try:
                await proxy.say(LISTENER)
                await proxy.take()
                await p.server.wait_settled("n")
                frozen.set()
                await until(Disconnected("n"), p.events)
                assert p.count("connected_proxies") == 0
            finally:
                await proxy.close()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                for writer in writers:
                    writer.close()
                middle.close()

    run(test())


def test_a_server_that_stops_ends_its_streams_and_can_be_followed_by_another() -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:
            p.store.put("n", [])
            await proxy.say(LISTENER)
            await proxy.take()
            await p.server.stop()
            assert await proxy.code() is grpc.StatusCode.UNAVAILABLE
            again = AdsServer(p.store, p.tokens)
            await again.start(p.address)
            try:
                async with client(p) as another:
                    await another.say(LISTENER)
                    await another.take()
                    await again.wait_settled("n")
            finally:
                await again.stop(0)

    run(test())


def test_a_failing_listener_does_not_disturb_others(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with plane() as p, client(p) as proxy:

            def fail(_event: object) -> None:
                raise RuntimeError("oops")

            stop = p.server.listen(fail)
            p.store.put("n", [])
            await proxy.say(LISTENER)
            await proxy.take()
            await p.server.wait_settled("n")
            stop()

    run(test())
    assert "a listener failed on Connected" in caplog.text


@pytest.mark.parametrize("address", ["0.0.0.0:0", "example.com:443", "[::]:0"])
def test_tokens_do_not_go_over_a_network_in_clear(address: str) -> None:
    async def test() -> None:
        with pytest.raises(ValueError, match="needs credentials"):
            await AdsServer(Store(), Tokens()).start(address)

    run(test())


def test_a_port_of_this_machine_will_do() -> None:
    async def test() -> None:
        server = AdsServer(Store(), tokens := Tokens())
        port = await server.start("127.0.0.1:0")
        server.store.put("n", [])
        proxy = Client(f"127.0.0.1:{port}", "n", tokens.issue("n"))
        try:
            await proxy.say(LISTENER)
            await proxy.take()
        finally:
            await proxy.close()
            await server.stop(0)

    run(test())
