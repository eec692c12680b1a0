"""A gateway with HTTPS listeners that share ports and Secrets, some with client certificates, and with a gRPC route.

`a.example` has its own listener, and so have the hosts below `w.example`. All other hosts share a listener. Port 9443
requires a certificate of a CA. Each route adds its name in a header.
"""

from __future__ import annotations

import base64
import os
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from eastgate.control.identity.certificates import key_pem
from tests.attacks.agents import gateway
from tests.attacks.frames import Answers, Field, opening, request
from tests.attacks.tls import CLIENT, SERVER, Leaf, account, pem
from tests.certificates import self_signed
from tests.differential.bench import Bench
from tests.differential.world import Manifest, pod
from tests.patience import PATIENCE

__all__ = ["CLEAR", "OPEN", "ROUTE", "WITH_CA", "Edge", "client_certificates"]

ROUTE = "x-route"
OPEN, WITH_CA, CLEAR = 8443, 9443, 8080  # ports
_API = "gateway.networking.k8s.io/v1"
_CA, _OTHER_CA = "clients", "others"
_KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in (_CA, _OTHER_CA)}


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _authority(name: str, issuer: str | None = None) -> tuple[Any, x509.Certificate]:
    """Return a CA: one of the root CAs above, or an intermediate CA below one."""
    key = _KEYS.get(name) or ec.generate_private_key(ec.SECP256R1())
    usage = frozenset({"key_cert_sign"})
    leaf = Leaf(uris=(), purposes=None, ca=True, usage=usage, common_name=name, key=key)
    return key, leaf.signed(_name(issuer or name), _KEYS[issuer or name])


def _of(leaf: Leaf, issuer: str, signer: Any, *above: x509.Certificate) -> tuple[str, str]:
    chain = (leaf.signed(_name(issuer), signer), *above)
    return "".join(map(pem, chain)), key_pem(leaf.key)


def client_certificates() -> Iterator[tuple[str, tuple[str, str] | None, bool]]:
    """Yield client certificates: a name, the chain and key, and whether the CA signed the certificate."""
    own, other = _KEYS[_CA], _KEYS[_OTHER_CA]
    yield "none", None, False
    for name, leaf, good in (
        ("without a name", Leaf(uris=()), True),
        ("with the name of an account", Leaf(uris=(account("alice"),)), True),
        ("for anything", Leaf(uris=(), purposes=None), True),
        ("for clients", Leaf(uris=(), purposes=(CLIENT,)), True),
        ("for servers", Leaf(uris=(), purposes=(SERVER,)), False),
        ("expired", Leaf(uris=(), ends=timedelta(seconds=-5)), False),
        ("not valid yet", Leaf(uris=(), begins=timedelta(hours=1), ends=timedelta(hours=2)), False),
        ("an authority", Leaf(uris=(), ca=True, usage=frozenset({"digital_signature", "key_cert_sign"})), False),
    ):
        yield name, _of(leaf, _CA, own), good
    yield "of another CA", _of(Leaf(uris=()), _OTHER_CA, other), False
    yield "of another CA with this name", _of(Leaf(uris=()), _CA, other), False
    yield "signed by itself", _of(alone := Leaf(uris=()), "forged", alone.key), False
    between, certificate = _authority("between", _CA)
    yield "of an intermediate CA", _of(Leaf(uris=()), "between", between, certificate), True
    yield "of an intermediate CA that is not shown", _of(Leaf(uris=()), "between", between), False
    leaf = Leaf(uris=(), common_name="leaf")
    signed = leaf.signed(_name(_CA), own)
    yield "signed by a leaf", _of(Leaf(uris=()), "leaf", leaf.key, signed), False


def _secret(name: str, kind: str, **data: bytes) -> Manifest:
    encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": encoded}


def _certificate(name: str) -> Manifest:
    chain, key = self_signed(f"{name}.example")
    return _secret(name, "kubernetes.io/tls", tls_crt=chain, tls_key=key)


def ca_secret(name: str) -> Manifest:
    """Return the Secret with the CA of clients that has this name."""
    return _secret("ca", "Opaque", ca_crt=pem(_authority(name)[1]).encode())


def _listener(name: str, port: int, certificate: str, hostname: str | None = None) -> Manifest:
    tls = {"certificateRefs": [{"name": certificate}]}
    named = {} if hostname is None else {"hostname": hostname}
    return {"name": name, "port": port, "protocol": "HTTPS", "tls": tls, **named}


def _gateway(frontend: Mapping[str, Any]) -> Manifest:
    made = gateway(
        "gw",
        _listener("a", OPEN, "own", "a.example"),
        _listener("w", OPEN, "shared", "*.w.example"),
        _listener("rest", OPEN, "shared"),
        _listener("a-ca", WITH_CA, "own", "a.example"),
        _listener("rest-ca", WITH_CA, "shared"),
        {"name": "grpc", "port": CLEAR, "protocol": "HTTP"},
    )
    made["spec"]["tls"] = {"frontend": dict(frontend)}
    return made


def _route(kind: str, name: str, hostnames: Sequence[str], sections: Sequence[str], *matches: Manifest) -> Manifest:
    marker = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": ROUTE, "value": name}]}}
    rule: Manifest = {"filters": [marker], "backendRefs": [{"name": "server", "port": 80}]}
    spec = {
        "parentRefs": [{"name": "gw", "sectionName": section} for section in sections],
        "hostnames": list(hostnames),
        "rules": [rule | ({"matches": list(matches)} if matches else {})],
    }
    return {"apiVersion": _API, "kind": kind, "metadata": {"name": name, "namespace": "a"}, "spec": spec}


_VALIDATION = {"validation": {"caCertificateRefs": [{"group": "", "kind": "Secret", "name": "ca"}]}}
ANY_CLIENT_GATEWAY = _gateway({"default": {}})
CLIENT_CERTIFICATE_GATEWAY = _gateway({"default": {}, "perPort": [{"port": WITH_CA, "tls": _VALIDATION}]})
_WORLD: list[Manifest] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
    pod("server", "a", "server", {"app": "server"}),
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server", "namespace": "a"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 80}]},
    },
    _certificate("own"),
    _certificate("shared"),
    _route("HTTPRoute", "a", ["a.example"], ["a", "a-ca"]),
    _route("HTTPRoute", "w", ["x.w.example"], ["w"]),
    _route("HTTPRoute", "rest", ["b.example", "a.example", "x.w.example", "*.example"], ["rest", "rest-ca"]),
    _route(
        "GRPCRoute",
        "calls",
        ["g.example"],
        ["grpc"],
        {"method": {"service": "s.Users", "method": "Get"}},
        {"method": {"service": "s.Open"}},
        {"method": {"method": "Ping"}},
        {"method": {"type": "RegularExpression", "service": "s\\.R[a-z]", "method": "[A-C]+"}},
    ),
]


class Edge(Bench):
    """The gateway, with requests to it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, _WORLD)
        self.world = [*_WORLD, CLIENT_CERTIFICATE_GATEWAY, ca_secret(_CA)]
        self._base = self.world

    def become(self, gateway: Manifest = CLIENT_CERTIFICATE_GATEWAY, authority: str = _CA) -> None:
        """Enforce another Gateway, or another CA."""
        self.world = [*_WORLD, gateway, ca_secret(authority)]
        self.enforce(())

    def connect(self, port: int, tls: ssl.SSLContext | None = None, sni: str | None = None) -> socket.socket:
        """Connect to a port, with TLS if it is given."""
        site = self.mesh.gateways["gateway:a/gw"]
        raw = socket.create_connection((site.address, site.ports[port]), PATIENCE)
        try:
            return raw if tls is None else tls.wrap_socket(raw, server_hostname=sni)
        except OSError:
            raw.close()
            raise

    def status(self, port: int, host: str, tls: ssl.SSLContext | None = None, sni: str | None = None) -> int:
        """Return the status of a request on its own connection, or 0 without an answer."""
        try:
            with self.connect(port, tls, sni) as connection:
                return status_on(connection, host)
        except OSError:
            return 0

    def routes(self) -> list[str | None]:
        """Return the routes of the requests that have arrived since the last call."""
        came = [dict(each.headers).get(ROUTE) for each in self.application.arrived]
        self.application.arrived.clear()
        return came


def status_on(connection: socket.socket, host: str) -> int:
    """Return the status of a request on a connection, or 0 if it closes. The protocol is the one that ALPN chose."""
    is_http2 = isinstance(connection, ssl.SSLSocket) and connection.selected_alpn_protocol() == "h2"
    fields = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/x"), (b":authority", host.encode())]
    try:
        if is_http2:
            return http2_answers(connection, fields).status(1)
        connection.sendall(b"GET /x HTTP/1.1\r\nhost: %b\r\n\r\n" % host.encode())
        received = connection.recv(65536)
        return int(received[9:12]) if received else 0
    except OSError:
        return 0


def http2_answers(connection: socket.socket, fields: Sequence[Field], data: bytes | None = None) -> Answers:
    """Send one request over HTTP/2, and return the answers of the server."""
    answers = Answers()
    connection.sendall(opening() + request(*fields, data=data))
    while 1 not in answers.ended and not answers.gone and (received := connection.recv(65536)):
        answers.hear(received)
    return answers


def client(
    chain_and_key: tuple[str, str] | None = None,
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    alpn: Sequence[str] = (),
) -> ssl.SSLContext:
    """Return the TLS context of a client that has this certificate, and trusts every server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if chain_and_key is not None:
        with os.fdopen(os.memfd_create("client"), "w") as file:
            file.write("".join(chain_and_key))
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context
