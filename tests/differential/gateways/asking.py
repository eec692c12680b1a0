"""A request to a gateway in the bytes that are sent, and the same request as questions to the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eastgate import Question
from eastgate.ir import Reply, Ruling
from eastgate.reading.mcp.messages import BadMessage
from eastgate.reading.mcp.requests import read_request
from tests.differential.asking import HTTP_2, Caller, Http
from tests.differential.gateways.world import GATEWAY, HTTPS
from tests.programs.drawn_answers import GRPC_HEADER, HTTP_HEADER, SLOW, STATUSES

__all__ = ["GatewayAsk"]

_RESPONSE = "notifications/response"
_AUTHORIZERS = {"authz.n:1": GRPC_HEADER, "authz.n:2": HTTP_HEADER}


@dataclass(frozen=True, slots=True)
class GatewayAsk:
    """A request of a caller at a port of the gateway. `sni` is the name in the handshake, if any."""

    caller: Caller
    port: int
    sni: str | None
    http: Http
    body: bytes | None = field(default=None)

    @property
    def is_tls(self) -> bool:
        """Return whether the request goes to an HTTPS listener."""
        return self.port in HTTPS

    @property
    def shares_connections(self) -> bool:
        """Return whether the request may follow another one on a connection."""
        return self.http.version != HTTP_2 and self.http.target.isascii()

    def to_bytes(self) -> bytes:
        """Return the request in HTTP/1."""
        return self.with_length.to_bytes() + (self.body or b"")

    @property
    def with_length(self) -> Http:
        """Return the head of the request, with the length of the body."""
        if self.body is None:
            return self.http
        return replace(self.http, headers=(*self.http.headers, ("content-length", str(len(self.body)))))

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.http.headers if key.lower() == name), None)

    @property
    def messages(self) -> list[tuple[str, str | None]] | None:
        """Return the method and name of each message in the body, or None if it cannot be parsed."""
        try:
            messages = read_request(self.http.method, self.http.headers, self.body or b"")
        except BadMessage:
            return None
        return [(message.method or _RESPONSE, message.name) for message in messages]

    @property
    def answers(self) -> Mapping[str, Reply | Ruling]:
        """Return the answers of the authorizers, which the request's headers choose."""
        return {name: _answer(self.header(header) or "deny") for name, header in _AUTHORIZERS.items()}

    def questions(self) -> list[Question]:
        """Return a question for each message. A message that cannot be parsed may be any message."""
        question = Question.of(
            self.caller.source,
            GATEWAY,
            port=self.port,
            method=self.http.method,
            path=self.http.target,
            host=self.http.hosts,
            sni=self.sni,
            headers=self.with_length.values(),
            source_ip=self.caller.address,
            http_protocol=self.http.version,
            external_auth=self.answers,  # type: ignore[arg-type]  # rulings are for those who know their statuses
        )
        messages = self.messages
        if not messages:
            return [question]
        return [replace(question, mcp_method=method, tool=name) for method, name in messages]


def _answer(word: str) -> Reply | Ruling:
    if word in ("allow", "error", SLOW):
        return Reply("error" if word == SLOW else word)
    return Ruling(False, STATUSES[word], word)
