"""Certificates and handshakes, tried on a real proxy."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl

import pytest

from eastgate.mesh.local.calling import HttpRequest, call
from tests.attacks.tls import certificate_tries
from tests.faults.certificates import Forge, tls_context
from tests.faults.conftest import runtime as runtime  # a folder for the mesh, for each test here
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, RAW, allow, deny, sa, world


def test_a_proxy_takes_no_certificate_that_is_not_for_a_client() -> None:
    asyncio.run(_certificates())


async def _certificates() -> None:
    forge = Forge.of()
    open_but_for_bob = [allow("all", ports=[RAW]), deny("not-bob", "bob", ports=[RAW])]
    async with running(*world(HTTP, RAW), allow("named", "alice"), *open_but_for_bob, source=forge.authority) as mesh:
        wrong = {}
        for one in certificate_tries(forge):
            tls = tls_context(forge.authority.bundles, one.chain_and_key, weak=True)
            named = (await call(mesh.target(), tls=tls, request=HttpRequest(), timeout=30)).status == 200
            anyone = bool((await call(mesh.target(RAW), tls=tls, request=b"x", enough=1, timeout=30)).body)
            if (named, anyone) != (one.alice, one.alice or one.stranger):
                wrong[one.name] = (named, anyone)
        assert not wrong


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_not_taken_up_again(version: ssl.TLSVersion) -> None:
    async def run() -> None:
        forge = Forge.of()
        async with running(*world(), allow("named", "alice"), source=forge.authority) as mesh:
            tls = tls_context(forge.authority.bundles, forge.forged(sa("alice")))
            tls.minimum_version = tls.maximum_version = version
            status, session, _ = await asyncio.to_thread(_shaken, mesh, tls, None)
            assert (status, session is not None and session.has_ticket) == (200, False)
            status, _, again = await asyncio.to_thread(_shaken, mesh, tls, session)
            assert (status, again) == (200, False)

    asyncio.run(run())


def _shaken(
    mesh: Running, tls: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[int, ssl.SSLSession | None, bool]:
    """A request on a connection that offers a session: its status, its own session, whether it took up that one."""
    target = mesh.target()
    with (
        socket.create_connection((target.address, target.port), timeout=30) as raw,
        tls.wrap_socket(raw, session=session) as wrapped,
    ):
        wrapped.sendall(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        answer = wrapped.recv(65536)
        return int(answer.split()[1]) if answer else 0, wrapped.session, bool(wrapped.session_reused)


_PROTOCOLS: tuple[list[str], ...] = (
    [],
    ["h2"],
    ["http/1.1"],
    ["http/1.0"],
    ["spdy/3", "x"],
    ["istio", "h2"],
    ["x" * 255],
)
_NAMES = (None, "cart.shop", "alice", "x" * 63)


def test_what_a_handshake_asks_for_says_nothing_of_who_it_is() -> None:
    async def run() -> None:
        forge = Forge.of()
        async with running(*world(), allow("named", "alice"), source=forge.authority) as mesh:
            for account, let_in in (("alice", True), ("bob", False)):
                tls = tls_context(forge.authority.bundles, forge.forged(sa(account)))
                for protocols, name in itertools.product(_PROTOCOLS, _NAMES):
                    tls.set_alpn_protocols(protocols)
                    assert await asyncio.to_thread(_let_in, mesh, tls, name) is let_in, (account, protocols, name)

    asyncio.run(run())


def _let_in(mesh: Running, tls: ssl.SSLContext, name: str | None) -> bool:
    target = mesh.target()
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
    try:
        with (
            socket.create_connection((target.address, target.port), timeout=30) as raw,
            tls.wrap_socket(raw, server_hostname=name) as wrapped,
        ):
            h2 = wrapped.selected_alpn_protocol() == "h2"
            wrapped.sendall(preface if h2 else b"GET / HTTP/1.1\r\nhost: h\r\n\r\n")
            return bool(wrapped.recv(1))
    except OSError:
        return False
