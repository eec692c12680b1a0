"""Questions to external authorizers, for tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from eastgate.cluster.ends import Source, SpiffeId
from eastgate.control.authorizer.external import ExternalAuthorizers, ServiceAddress
from eastgate.ir import AuthorizerName, ExternalAuthorizer, ExternalProtocol, Ruling

_AGENT = SpiffeId("spiffe://cluster.local/ns/prod/sa/agent")


@dataclass(frozen=True)
class GivenBody:
    content: bytes
    complete: bool = True


@dataclass(frozen=True)
class GivenCheck:
    source: Source = _AGENT
    method: str | None = "GET"
    path: str | None = "/allow"
    host: str | None = "shop.example"
    headers: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    http_protocol: str | None = "HTTP/1.1"
    scheme: str | None = "https"
    sni: str | None = None
    address: str | None = "10.1.2.3"
    body: GivenBody | None = None
    is_without_body: bool = False
    shown_headers: frozenset[str] | None = None

    def knows_headers(self, names: Collection[str] | None) -> bool:
        return self.shown_headers is None or (names is not None and self.shown_headers.issuperset(names))


def service(protocol: ExternalProtocol, **how: object) -> AuthorizerName:
    """Return the name of a service, which depends on how it is called."""
    return AuthorizerName(ExternalAuthorizer("security", "fraud", 9000, protocol, **how))  # type: ignore[arg-type]


class Asking:
    """Calls one service at a port of loopback."""

    def __init__(self, port: int, **limits: float) -> None:
        self.address: ServiceAddress | None = ServiceAddress("127.0.0.1", port)
        self.externals = ExternalAuthorizers(lambda _: self.address, **limits)  # type: ignore[arg-type]

    def __call__(self, name: str, **check: object) -> Ruling:
        return self.externals.ask(name, GivenCheck(**check))  # type: ignore[arg-type]
