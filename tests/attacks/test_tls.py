"""Certificates and handshakes at every placement."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.attacks import placements
from tests.attacks.frames import Answers, opening, request
from tests.attacks.placements import PLACEMENTS, Attacked, Placement, Trust
from tests.attacks.policies import all_but_accounts, only_accounts
from tests.attacks.tls import CertificateTry, account, certificate_tries
from tests.differential.asking import TRUST_DOMAIN, Http
from tests.differential.bench import Bench
from tests.faults.certificates import Forge, tls_context

_REQUEST = b"GET /api/x HTTP/1.1\r\nhost: a\r\n\r\n"
_HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"


@dataclass
class Forged:
    """A placement whose CA signs the certificates of a test."""

    placement: Placement
    forge: Forge
    attacked: Attacked

    def tls(self, chain_and_key: tuple[str, str], *, weak: bool = False) -> ssl.SSLContext:
        return tls_context(self.forge.authority.bundles, chain_and_key, weak=weak)

    def served(self, tls: ssl.SSLContext) -> bool:
        """Return whether a request after this handshake is served."""
        try:
            with self.attacked.connect() as raw, tls.wrap_socket(raw) as wrapped:
                wrapped.sendall(_REQUEST)
                return wrapped.recv(65536).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


@pytest.fixture(scope="module")
def forging() -> Iterator[tuple[Forge, Bench]]:
    forge = Forge.of(TRUST_DOMAIN)
    with placements.bench(Trust(source=forge.authority)) as running:
        yield forge, running


@pytest.fixture(scope="module", params=PLACEMENTS, ids=str)
def forged(request: pytest.FixtureRequest, forging: tuple[Forge, Bench]) -> Forged:
    forge, running = forging
    return Forged(request.param, forge, request.param.at(running))


def test_no_certificate_is_taken_that_is_not_for_a_client(forged: Forged) -> None:
    tries = list(certificate_tries(forged.forge))
    known = forged.placement.certificates
    for level in ("NETWORK", "APPLICATION"):
        forged.attacked.enforce(only_accounts("alice", level=level))
        assert _served(forged, tries) == {one.name for one in tries if known and one.alice}
    forged.attacked.enforce(all_but_accounts("bob"))
    is_let_in = {one.name for one in tries if known and (one.alice or one.stranger)}
    assert _served(forged, tries) == is_let_in | forged.placement.ignored_certificates


def _served(forged: Forged, tries: list[CertificateTry]) -> set[str]:
    with ThreadPoolExecutor(8) as threads:
        served = threads.map(lambda one: forged.served(forged.tls(one.chain_and_key, weak=True)), tries)
        return {one.name for one, was in zip(tries, served, strict=True) if was}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_not_taken_up_again(forged: Forged, version: ssl.TLSVersion) -> None:
    forged.attacked.enforce(only_accounts("alice", level="NETWORK"))
    tls = forged.tls(forged.forge.forged(account("alice")))
    tls.minimum_version = tls.maximum_version = version
    if not forged.placement.certificates:
        assert not forged.served(tls)
        return
    session, _ = _shaken(forged.attacked, tls, None)
    assert session is not None
    assert not session.has_ticket
    _, again = _shaken(forged.attacked, tls, session)
    assert not again


def _shaken(
    attacked: Attacked, tls: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[ssl.SSLSession | None, bool]:
    """Send a request on a connection that offers a TLS session. Return the new session, and whether it was resumed."""
    with attacked.connect() as raw, tls.wrap_socket(raw, session=session) as wrapped:
        wrapped.sendall(_REQUEST)
        assert wrapped.recv(65536).startswith(b"HTTP/1.1 200")
        return wrapped.session, bool(wrapped.session_reused)


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


def test_names_and_protocols_of_a_handshake_do_not_change_the_identity(forged: Forged) -> None:
    forged.attacked.enforce(only_accounts("alice", level="NETWORK"))
    for name, let_in in (("alice", forged.placement.certificates), ("bob", False)):
        tls = forged.tls(forged.forge.forged(account(name)))
        for protocols, server in itertools.product(_PROTOCOLS, _NAMES):
            tls.set_alpn_protocols(protocols)
            assert _is_accepted(forged, tls, server) is let_in, (name, protocols, server)


def _is_accepted(forged: Forged, tls: ssl.SSLContext, name: str | None) -> bool:
    """Return whether a connection is accepted, or a request if the placement accepts all connections."""
    try:
        with forged.attacked.connect() as raw, tls.wrap_socket(raw, server_hostname=name) as wrapped:
            is_http2 = wrapped.selected_alpn_protocol() == "h2"
            if forged.placement.refuses_connections:
                wrapped.sendall(_HTTP_2 if is_http2 else _REQUEST)
                return bool(wrapped.recv(1))
            if not is_http2:
                wrapped.sendall(_REQUEST)
                return wrapped.recv(65536).startswith(b"HTTP/1.1 200")
            answers = Answers()
            wrapped.sendall(opening() + request(*Http(target="/api/x", host="a").fields()))
            while 1 not in answers.ended and (data := wrapped.recv(65536)):
                answers.hear(data)
            return answers.status(1) == 200
    except OSError:
        return False
