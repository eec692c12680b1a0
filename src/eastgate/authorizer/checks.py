"""What proxies ask and what they are told, whichever protocol it goes by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from eastgate.api.questions import EntryPoint
from eastgate.api.questions.ends import UNKNOWN_CALLER
from eastgate.ir.fields import Headers, header_values
from eastgate.mcp.requests import OVERRIDES
from eastgate.records import dataclass

__all__ = ["DECISION_HEADER", "OWN_HEADERS", "WITHOUT_BODY", "Body", "ProxyAnswer", "ProxyCheck", "Where"]

DECISION_HEADER: Final = "x-eastgate-decision"
WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""Methods that bring no message in a body."""
_LEADING_ELSEWHERE: Final = frozenset({"upgrade", *OVERRIDES})
_ANNOUNCING: Final = frozenset({"content-length", "transfer-encoding"})
_TELLING_OF_MESSAGES: Final = _LEADING_ELSEWHERE | _ANNOUNCING
OWN_HEADERS: Final = "x-eastgate-"
"""What the names of our own headers begin with. Clients may not send such."""

Pairs = tuple[tuple[str, str], ...]
Where = str | EntryPoint
"""Where a request goes: a destination as `--to` names it, or the points of enforcement themselves."""


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, or its beginning."""

    content: bytes = field(repr=False)
    complete: bool


@dataclass(frozen=True, slots=True)
class ProxyCheck:
    """A request that waits at a proxy. What is None is unknown.

    `source` is the caller as `--from` names it. `to` and `port` say where the request goes, by the word of whoever
    configured the proxy; `destination` is the address and port that it came in by, as the proxy sees it.

    `all_headers`: there are no others than `headers`. The values of `joined_headers` may be several, joined by commas.
    `mcp_method` and `mcp_name` are what the proxy read in the body, where it is trusted with that. `extensions` is what
    the configuration of the proxy adds to each check.
    """

    source: str = UNKNOWN_CALLER
    method: str | None = None
    path: str | None = None
    host: str | None = None
    headers: Headers = field(default_factory=dict, repr=False)
    all_headers: bool = True
    joined_headers: frozenset[str] = frozenset()
    http_protocol: str | None = None
    scheme: str | None = None
    sni: str | None = None
    address: str | None = None
    source_port: int | None = None
    destination: tuple[str, int] | None = None
    certificate: str | None = field(default=None, repr=False)
    body: Body | None = None
    to: str | None = None
    port: int | None = None
    mcp_method: str | None = None
    mcp_name: str | None = None
    proxy_id: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_without_body(self) -> bool:
        """Tell whether it is known that no body follows: such a method, and no header that announces one."""
        announced = any(name.lower() in _ANNOUNCING for name in self.headers)
        return self.all_headers and self.body is None and self.method in WITHOUT_BODY and not announced

    @property
    def may_hide_message(self) -> bool:
        """Tell whether there may be a message in spite of the method: in a body, in a tunnel, or by another method."""
        named = {name.lower() for name in self.headers}
        if self.body is None and named.isdisjoint(_TELLING_OF_MESSAGES):
            return False
        lengths = header_values(self.headers).get("content-length", ())
        has_body = self.body is not None or "transfer-encoding" in named or any(length != "0" for length in lengths)
        return has_body or not named.isdisjoint(_LEADING_ELSEWHERE)

    @property
    def forged_headers(self) -> tuple[str, ...]:
        """Return the headers of the client that only we may send."""
        return tuple(name for name in self.headers if name.lower().startswith(OWN_HEADERS))


@dataclass(frozen=True, slots=True)
class ProxyAnswer:
    """The decision on a check, as a proxy carries it out.

    Of an allowed request the application gets `upstream_headers`, each instead of what the client sent under that name,
    and nothing that the client sent under a name of `upstream_removed`; a denied client gets `status`, `client_headers`
    and `body`. `record` is the line of the log: its policy and reason are never for the client. `why` is there where no
    policy denied it.
    """

    allowed: bool
    status: int
    id: str
    upstream_headers: Pairs = ()
    upstream_removed: tuple[str, ...] = ()
    client_headers: Pairs = ()
    body: bytes = field(default=b"", repr=False)
    record: Mapping[str, object] = field(default_factory=dict, repr=False)
    why: str | None = None
