"""The server with a real Envoy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager

import pytest
from envoy.extensions.transport_sockets.tls.v3.secret_pb2 import Secret

from eastgate.envoy.server import CLUSTER, EXTENSION, LISTENER, SECRET, AdsServer, ResourceState, XdsResource
from tests.envoy.server.client import Plane, plane, run
from tests.envoy.server.envoy import Connection, certificate, free_port, listener, rbac, running
from tests.patience import PATIENCE


@asynccontextmanager
async def enforcing(port: int) -> AsyncIterator[Plane]:
    """A control plane and an Envoy that has settled, with one listener that allows all callers."""
    async with plane() as p:
        p.store.put("n", [listener("web", port, "one", "web"), rbac("ALLOW", "open"), certificate("first")])
        with running("n", p.tokens.issue("n"), p.address) as process:
            await p.server.wait_settled("n", PATIENCE)
            assert process.poll() is None
            yield p


@contextmanager
def connected(port: int) -> Iterator[Connection]:
    with closing(Connection(port)) as connection:
        yield connection


def states(server: AdsServer) -> dict[str, ResourceState]:
    status = server.status("n")
    assert status is not None
    return {one.name: one.state for one in status.resources}


def test_a_change_is_enforced_on_an_open_connection_once_it_is_settled() -> None:
    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            assert set(states(p.server).values()) == {ResourceState.ACCEPTED}
            with connected(port) as connection:
                assert await connection.get() == (200, "one")
                opened = connection.source()
                for _ in range(10):
                    p.store.update("n", [rbac("DENY", "shut")])
                    await p.server.wait_settled("n", PATIENCE)
                    assert (await connection.get())[0] == 403
                    p.store.update("n", [rbac("ALLOW", "open")])
                    await p.server.wait_settled("n", PATIENCE)
                    assert await connection.get() == (200, "one")
                assert connection.source() == opened
                assert p.count("responses_total", type="TypedExtensionConfig") == 21
                assert p.count("responses_total", type="Listener") == 1

    run(test())


def test_a_new_secret_is_shown_to_the_next_connection() -> None:
    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            with connected(port) as old:
                await old.get()
                p.store.update("n", [certificate("second")])
                await p.server.wait_settled("n", PATIENCE)
                with connected(port) as new:
                    await new.get()
                    assert (old.subject(), new.subject()) == ("first", "second")
                assert await old.get() == (200, "one")

    run(test())


def test_what_envoy_rejects_is_known_with_its_policy_and_the_old_stays() -> None:
    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            p.store.update("n", [rbac("BAD", "open", "broken")])
            await p.server.wait_settled("n", PATIENCE)
            status = p.server.status("n")
            assert status is not None
            (found,) = status.rejected
            assert found.rejection is not None
            assert (found.type_url, found.name, found.rejection.policies) == (EXTENSION, "rbac", frozenset({"broken"}))
            assert "regex" in found.rejection.message or "missing )" in found.rejection.message
            assert found.accepted == rbac("ALLOW").version
            with connected(port) as connection:
                assert await connection.get() == (200, "one")
                p.store.update("n", [rbac("DENY")])
                await p.server.wait_settled("n", PATIENCE)
                assert (await connection.get())[0] == 403
            assert set(states(p.server).values()) == {ResourceState.ACCEPTED}

    run(test())


def test_of_two_listeners_the_good_one_is_applied_and_the_bad_one_is_found() -> None:
    async def test() -> None:
        port, other = free_port(), free_port()
        async with enforcing(port) as p:
            p.store.update("n", [listener("web", port, "two", "web", bad=True), listener("good", other, "good", "g")])
            await p.server.wait_settled("n", PATIENCE)
            assert states(p.server)["web"] is ResourceState.REJECTED
            assert states(p.server)["good"] is ResourceState.ACCEPTED
            assert p.count("rejections_total", type="Listener", policy="web") == 1
            assert p.count("rejections_total", type="Listener", policy="g") == 0
            with connected(port) as bad, connected(other) as good:
                assert await bad.get() == (200, "one")
                assert await good.get() == (200, "good")

    run(test())


def test_of_two_extensions_the_good_one_is_applied_whichever_comes_first() -> None:
    async def test() -> None:
        ports = {"a": free_port(), "b": free_port()}
        async with plane() as p:
            first = [listener(f"listener-{name}", port, name, extension=name) for name, port in ports.items()]
            allowed = {name: rbac("ALLOW", name=name) for name in ports}
            p.store.put("n", [*first, *allowed.values(), certificate("c")])
            with running("n", p.tokens.issue("n"), p.address):
                await p.server.wait_settled("n", PATIENCE)
                for bad, good in (("a", "b"), ("b", "a")):
                    p.store.update("n", [rbac("BAD", "p", name=bad), rbac("DENY", name=good)])
                    await p.server.wait_settled("n", PATIENCE)
                    assert states(p.server)[bad] is ResourceState.REJECTED
                    with connected(ports[bad]) as old, connected(ports[good]) as new:
                        assert (await old.get())[0] == 200
                        assert (await new.get())[0] == 403
                    p.store.update("n", allowed.values())
                    await p.server.wait_settled("n", PATIENCE)
                    assert p.server.proxies()[0].rejected == ()

    run(test())


def test_a_listener_that_is_removed_is_gone_once_that_is_settled() -> None:
    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            p.store.put("n", [])
            await p.server.wait_settled("n", PATIENCE)
            status = p.server.status("n")
            assert status is not None
            assert not [one for one in status.resources if one.type_url == LISTENER]
            with connected(port) as connection:
                for _ in range(100):  # the worker closes the socket a moment after the answer
                    try:
                        await connection.get()
                    except OSError:
                        return
                    connection.close()
                    await asyncio.sleep(0.02)
            raise AssertionError("still there")

    run(test())


def test_after_a_restart_of_the_control_plane_nothing_is_sent_that_envoy_has() -> None:
    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            await p.server.stop(0)
            with connected(port) as connection:
                assert await connection.get() == (200, "one")
                again = AdsServer(p.store, p.tokens)
                await again.start(p.address)
                try:
                    await again.wait_settled("n", PATIENCE)
                    for kind in (LISTENER, EXTENSION, SECRET, CLUSTER):
                        name = kind.rpartition(".")[2]
                        sent = again.metrics.registry.get_sample_value("eastgate_xds_responses_total", {"type": name})
                        assert sent == (1 if kind == CLUSTER else None)  # there are none, and this is reported
                    p.store.update("n", [rbac("DENY", "shut"), certificate("second")])  # these have new spellings
                    await again.wait_settled("n", PATIENCE)
                    assert (await connection.get())[0] == 403
                    with connected(port) as new:
                        await new.get()
                        assert new.subject() == "second"
                finally:
                    await again.stop(0)

    run(test())


def test_a_rejection_is_known_after_a_reconnect_and_never_taken_for_accepted() -> None:
    """Envoy accepts a rejected resource when it is sent again, but does not apply it."""

    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            p.store.update("n", [rbac("BAD", "broken")])
            await p.server.wait_settled("n", PATIENCE)
            sent = p.count("responses_total", type="TypedExtensionConfig")
            await p.server.stop(0)
            await p.server.start(p.address)
            await p.server.wait_settled("n", PATIENCE)
            assert states(p.server)["rbac"] is ResourceState.REJECTED
            assert p.count("responses_total", type="TypedExtensionConfig") == sent
            await p.server.stop(0)
            forgetful = AdsServer(p.store, p.tokens)
            await forgetful.start(p.address)
            try:
                await forgetful.wait_settled("n", PATIENCE)
                (found,) = (one for one in forgetful.proxies()[0].resources if one.type_url == EXTENSION)
                assert found.state is ResourceState.REJECTED
                with connected(port) as connection:
                    assert await connection.get() == (200, "one")
            finally:
                await forgetful.stop(0)

    run(test())


def test_an_envoy_with_a_wrong_token_gets_nothing() -> None:
    async def test() -> None:
        port = free_port()
        async with plane() as p:
            p.tokens.issue("n")
            p.store.put("n", [listener("web", port, "one")])
            with running("n", "wrong", p.address):
                async with asyncio.timeout(PATIENCE):
                    while not p.count("refused_streams_total", reason="unauthenticated"):
                        await asyncio.sleep(0.02)
            assert p.events == []

    run(test())


@pytest.mark.parametrize("kind", [SECRET, EXTENSION])
def test_what_envoy_rejects_is_rejected_again_after_it_was_removed(kind: str) -> None:
    """Envoy acknowledges the removal of a secret, and keeps it."""

    async def test() -> None:
        port = free_port()
        async with enforcing(port) as p:
            bad = rbac("BAD", "broken") if kind == EXTENSION else _broken_certificate()
            for _ in range(2):
                p.store.update("n", [bad])
                await p.server.wait_settled("n", PATIENCE)
                assert states(p.server)[bad.name] is ResourceState.REJECTED
                p.store.update("n", remove=[bad.key])
                await p.server.wait_settled("n", PATIENCE)

    run(test())


def _broken_certificate() -> XdsResource:
    secret = Secret.FromString(certificate("broken").body)
    secret.tls_certificate.certificate_chain.inline_bytes = b"no certificate"
    return XdsResource(SECRET, secret.name, secret.SerializeToString())
