"""Questions: may this source reach that destination, with this request?"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import field
from typing import Self, TypedDict

from eastgate.basics.records import dataclass, unfrozen
from eastgate.cluster.ends import DEFAULT_NAMESPACE, Destination, Source, parse_destination, parse_source
from eastgate.ir import RawRequest
from eastgate.ir.attributes import Headers, each_header


class RequestParts(TypedDict, total=False):
    """The parts of a question beside its ends, by name."""

    port: int | None
    method: str | None
    path: str | None
    host: str | None
    sni: str | None
    headers: Headers | None
    mcp_method: str | None
    tool: str | None
    source_ip: str | None
    http_protocol: str | None
    protocol: str | None
    forwarded_for: str | None
    plaintext: bool
    claims: Mapping[str, object] | None
    token: str | None
    certificate: str | None
    external_auth: Mapping[str, str]
    no_token: bool


_NO_ANSWERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Question:
    """May `source` reach `destination`? ALLOW needs every value of the attributes that it leaves out to be allowed.

    `Question.of` also accepts ends as a command line writes them.
    """

    source: Source
    destination: Destination
    port: int | None = None
    method: str | None = None
    path: str | None = None
    host: str | None = None
    sni: str | None = None
    headers: Headers | None = None
    mcp_method: str | None = None
    tool: str | None = None
    source_ip: str | None = None
    http_protocol: str | None = None
    """HTTP/1.0, HTTP/1.1, HTTP/2 or HTTP/3, as proxies write it; HTTP/1.1 by default."""
    protocol: str | None = None
    """The transport: tcp, udp or sctp; tcp by default."""
    forwarded_for: str | None = None
    """The address of the client, as proxies in front report it."""
    plaintext: bool = False
    """The connection has no mTLS, so that the caller has no identity."""
    claims: Mapping[str, object] | None = None
    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    external_auth: Mapping[str, str] = field(default_factory=dict)
    no_token: bool = False
    """The request has no token. Without `no_token`, claims and headers, the token is unknown."""

    @classmethod
    def of(
        cls,
        source: Source | str,
        destination: Destination | str,
        port: int | None = None,
        method: str | None = None,
        path: str | None = None,
        host: str | None = None,
        sni: str | None = None,
        headers: Headers | None = None,
        mcp_method: str | None = None,
        tool: str | None = None,
        source_ip: str | None = None,
        http_protocol: str | None = None,
        protocol: str | None = None,
        forwarded_for: str | None = None,
        plaintext: bool = False,
        claims: Mapping[str, object] | None = None,
        token: str | None = None,
        certificate: str | None = None,
        external_auth: Mapping[str, str] = _NO_ANSWERS,
        no_token: bool = False,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> Self:
        """Return a question with ends that may be texts: `sa:shop/web`, `service:shop/cart`.

        `namespace` is that of ends without one. Raises QuestionError for a text that names no end.

        The parameters have their names here, and the fields are set before the question is frozen. Questions are made
        often, and this takes half the time of passing on `**request`.
        """
        if isinstance(source, str):
            source = parse_source(source, namespace)
        if isinstance(destination, str):
            destination = parse_destination(destination, namespace)
        question: Self = unfrozen[cls](
            source,
            destination,
            port,
            method,
            path,
            host,
            sni,
            headers,
            mcp_method,
            tool,
            source_ip,
            http_protocol,
            protocol,
            forwarded_for,
            plaintext,
            claims,
            token,
            certificate,
            external_auth,
            no_token,
        )
        question.__class__ = cls
        return question

    @property
    def is_bare_message(self) -> bool:
        """Return whether the question has an MCP message and no HTTP attribute: a POST with unknown host and path."""
        if self.mcp_method is None and self.tool is None:
            return False
        return self.method is None and self.path is None and self.host is None and self.headers is None

    @property
    def is_http(self) -> bool:
        """Return whether the question has an attribute of HTTP; otherwise it is about bytes."""
        http = (self.method, self.path, self.host, self.headers, self.http_protocol, self.claims, self.token)
        return any(part is not None for part in (*http, self.mcp_method, self.tool))

    @property
    def raw(self) -> RawRequest:
        """Return the inputs of authorizers that are not attributes of the request."""
        return RawRequest(
            self.headers, self.http_protocol, self.claims, self.token, self.certificate, no_token=self.no_token
        )

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of a command line with this question, without manifests, tokens and certificates."""
        options: list[tuple[str, object]] = [
            ("--from", self.source),
            ("--to", self.destination),
            ("--port", self.port),
            ("--method", self.method),
            ("--path", self.path),
            ("--host", self.host),
            ("--sni", self.sni),
            ("--http-protocol", self.http_protocol),
            *(("--header", f"{name}={value}") for name, value in each_header(self.headers or {})),
            ("--mcp-method", self.mcp_method),
            ("--tool", self.tool),
            ("--source-ip", self.source_ip),
            ("--protocol", self.protocol),
            ("--forwarded-for", self.forwarded_for),
            *(("--claim", f"{name}={_claim(value)}") for name, value in (self.claims or {}).items()),
            *(("--external-auth", f"{name}={answer}") for name, answer in self.external_auth.items()),
        ]
        words = [str(word) for option, value in options if value is not None for word in (option, value)]
        flags = {"--plaintext": self.plaintext, "--no-token": self.no_token}
        return [*words, *(flag for flag, given in flags.items() if given)]

    def __repr__(self) -> str:
        return f"<Question {shlex.join(self.arguments)}>"

    def __str__(self) -> str:
        port = f" port {self.port}" if self.port is not None else ""
        http = " ".join(part for part in (self.method, self.host, self.path) if part)
        tool = " ".join(part for part in (self.mcp_method, self.tool) if part)
        return f"{self.source} -> {self.destination}{port}" + "".join(f" {part}" for part in (http, tool) if part)


def _claim(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
