"""External authorizers in a mesh: called over mutual TLS, with identities that are not host names."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from eastgate.control.authorizer.external import ServiceAddress
from eastgate.control.identity import EmbeddedCa, client_context, server_context, verify_connection
from eastgate.ir import ExternalProtocol
from tests.control.authorizer.asking import Asking, service
from tests.control.authorizer.test_external_grpc import is_open
from tests.programs.processes import Processes, free_port

pytestmark = pytest.mark.real

CA = EmbeddedCa("cluster.local")
STRANGER = EmbeddedCa("cluster.local")
SERVER = "spiffe://cluster.local/ns/security/sa/fraud"
CLIENT = "spiffe://cluster.local/ns/eastgate/sa/authorizer"
GRPC = service(ExternalProtocol.GRPC)
HTTP = service(ExternalProtocol.HTTP)


def address(port: int, ca: EmbeddedCa = CA, expected: str = SERVER) -> ServiceAddress:
    context = client_context(ca.issue(CLIENT), ca.bundles)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return ServiceAddress(
        "127.0.0.1", port, context, None, partial(verify_connection, bundles=CA.bundles, expected=expected)
    )


class SecuredCheckServer(Processes):
    """The authorizer of `check_server`, with an SVID."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port = free_port()

    def start(self) -> None:
        svid = CA.issue(SERVER)
        contents = {"key.pem": svid.private_key, "chain.pem": svid.chain, "roots.pem": CA.bundles.pem("cluster.local")}
        for name, content in contents.items():
            (self.folder / name).write_text(content)
        self.run([sys.executable, "-m", "tests.programs.check_server", str(self.port), str(self.folder)])
        self.wait_until(lambda: is_open(self.port))


@pytest.fixture(scope="module")
def grpc_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with SecuredCheckServer(tmp_path_factory.mktemp("server")) as running:
        yield running.port


@pytest.fixture
def http_port() -> Iterator[int]:
    context = server_context(CA.issue(SERVER), CA.bundles)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                end, _ = listener.accept()
            except OSError:
                return
            try:
                with context.wrap_socket(end, server_side=True) as secured:
                    while secured.recv(65536):
                        secured.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            except OSError:
                end.close()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def asking(where: ServiceAddress, seconds: float = 20) -> Asking:
    made = Asking(where.port, seconds=seconds)
    made.address = where
    return made


@pytest.mark.parametrize("name", [GRPC, HTTP], ids=["grpc", "http"])
def test_the_right_service_is_asked(grpc_port: int, http_port: int, name: str) -> None:
    ask = asking(address(grpc_port if name is GRPC else http_port))
    assert [ask(name).allowed for _ in range(3)] == [True] * 3
    assert name is HTTP or not ask(name, path="/deny").allowed
    ask.externals.close()


@pytest.mark.parametrize("name", [GRPC, HTTP], ids=["grpc", "http"])
@pytest.mark.parametrize(
    ("ca", "expected"), [(CA, SERVER.replace("fraud", "other")), (STRANGER, SERVER)], ids=["identity", "authority"]
)
def test_another_identity_is_not_trusted(
    grpc_port: int, http_port: int, name: str, ca: EmbeddedCa, expected: str
) -> None:
    ask = asking(address(grpc_port if name is GRPC else http_port, ca, expected), seconds=3)
    assert not ask(name).allowed
    ask.externals.close()


@pytest.mark.parametrize("name", [GRPC, HTTP], ids=["grpc", "http"])
def test_a_service_without_tls_is_not_asked(name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ask = asking(address(listener.getsockname()[1]), seconds=0.5)
        assert not ask(name).allowed
        ask.externals.close()


def test_a_new_svid_replaces_the_old_one(grpc_port: int) -> None:
    ask = asking(address(grpc_port))
    assert ask(GRPC).allowed
    ask.address = address(grpc_port)
    assert ask(GRPC).allowed
    ask.externals.close()


def test_the_socket_that_leads_there_is_for_this_user_alone(grpc_port: int) -> None:
    from eastgate.control.authorizer.external_clients import TlsTunnel

    tunnel = TlsTunnel(address(grpc_port), 5)
    folder = Path(tunnel.target.removeprefix("unix:")).parent
    assert folder.stat().st_mode & 0o077 == 0
    tunnel.close()
    assert not folder.exists()
    assert isinstance(address(grpc_port).tls, ssl.SSLContext)
