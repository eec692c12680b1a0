"""HTTPS listeners that share a port: the listener of the handshake decides all requests of the connection."""

from __future__ import annotations

import itertools
import ssl
import warnings
from collections.abc import Iterator

import pytest

from eastgate import Question
from tests.attacks.edge import ANY_CLIENT_GATEWAY, OPEN, WITH_CA, Edge, client, client_certificates, status_on
from tests.differential.bench import authority_of
from tests.differential.world import SETTINGS

_NAMES = (
    None,
    *(
        "a.example",
        "A.EXAMPLE",
        "a.example.",
        "xa.example",
        "x.w.example",
        "y.x.w.example",
        "w.example",
        "x.w.example.",
    ),
    *("b.example", "127.0.0.1"),
)
_HOSTS = ("a.example", "A.example.:443", "x.w.example", "y.x.w.example", "w.example", "b.example", "c")
_VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
_GOOD = next(one for name, one, _ in client_certificates() if name == "without a name")


@pytest.fixture
def open_to_clients(edge: Edge) -> Iterator[Edge]:
    yield edge
    edge.become()


@pytest.mark.parametrize("alpn", [(), ("h2",)], ids=["HTTP/1.1", "HTTP/2"])
def test_a_host_is_served_by_the_listener_of_the_handshake_alone(edge: Edge, alpn: tuple[str, ...]) -> None:
    edge.routes()  # of other tests
    authority = authority_of(edge.world, SETTINGS)
    for port, sni, host in itertools.product((OPEN, WITH_CA), _NAMES, _HOSTS):
        tls = client(_GOOD if port == WITH_CA else None, alpn=alpn)
        status, routes = edge.status(port, host, tls, sni), edge.routes()
        asked = Question.of(
            "anonymous",
            "gateway:a/gw",
            port=port,
            method="GET",
            path="/x",
            host=host,
            sni=sni if sni != "127.0.0.1" else "",
        )
        case = (port, sni, host, routes)
        assert authority.decide(asked if sni is not None else _without_sni(asked)).allowed is (status == 200), case
        assert len(routes) == (status == 200), case
        if routes == ["a"]:
            assert (sni or "").lower() == "a.example", case
        if routes == ["w"]:
            assert (sni or "").endswith(".w.example"), case


def _without_sni(asked: Question) -> Question:
    return Question.of(
        asked.source, asked.destination, port=asked.port, method=asked.method, path=asked.path, host=asked.host, sni=""
    )


@pytest.mark.parametrize("version", _VERSIONS)
def test_where_a_certificate_is_required_no_other_is_taken(edge: Edge, version: ssl.TLSVersion) -> None:
    edge.routes()
    for (name, certificate, good), sni in itertools.product(client_certificates(), ("a.example", "b.example", None)):
        host = sni or "b.example"
        assert (edge.status(WITH_CA, host, client(certificate, version), sni) == 200) is good, (name, sni)
        assert len(edge.routes()) == good, (name, sni)


def test_without_tls_or_with_an_old_version_of_it_nothing_is_served(edge: Edge) -> None:
    for port in (OPEN, WITH_CA):
        assert edge.status(port, "a.example") == 0
        tls = client(_GOOD if port == WITH_CA else None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_1
        assert edge.status(port, "a.example", tls, "a.example") == 0
    assert edge.routes() == []


@pytest.mark.parametrize("version", _VERSIONS)
def test_no_session_of_one_listener_is_taken_up_at_another(edge: Edge, version: ssl.TLSVersion) -> None:
    tls = client(_GOOD, version)
    with edge.connect(WITH_CA, tls, "a.example") as first:
        assert isinstance(first, ssl.SSLSocket)
        assert status_on(first, "a.example") == 200
        session = first.session
    site = edge.mesh.gateways["gateway:a/gw"]
    for port, sni in ((WITH_CA, "a.example"), (WITH_CA, "b.example")):
        raw = edge.connect(port)
        assert raw.getpeername() == (site.address, site.ports[port])
        with tls.wrap_socket(raw, server_hostname=sni, session=session) as again:
            assert status_on(again, sni) == 200
            assert not again.session_reused


def test_a_connection_ends_when_its_certificate_does_not_count_any_more(open_to_clients: Edge) -> None:
    edge = open_to_clients
    edge.become(ANY_CLIENT_GATEWAY)
    nobody, other = edge.connect(WITH_CA, client(), "a.example"), edge.connect(OPEN, client(), "a.example")
    with nobody, other:
        assert [status_on(each, "a.example") for each in (nobody, other)] == [200, 200]
        edge.become()
        assert [status_on(each, "a.example") for each in (nobody, other)] == [0, 200]
    with edge.connect(WITH_CA, client(_GOOD), "a.example") as vouched:
        assert status_on(vouched, "a.example") == 200
        edge.become(authority="others")
        assert status_on(vouched, "a.example") == 0
    assert edge.status(WITH_CA, "a.example", client(_GOOD), "a.example") == 0
