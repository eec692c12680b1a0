"""What proxies ask and what they are told, whichever protocol it goes by."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.cluster.ends import UNKNOWN_CALLER, Source
from eastgate.ir.fields import Headers, header_values
from eastgate.reading.mcp.requests import OVERRIDES

DECISION_HEADER: Final = "x-eastgate-decision"
WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""Methods that bring no message in a body."""
_LEADING_ELSEWHERE: Final = frozenset({"upgrade", *OVERRIDES})
_NO_LENGTH: Final = ("0",)
OWN_HEADERS: Final = "x-eastgate-"
"""What the names of our own headers begin with. Clients may not send such."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """What the operator states about the proxies, whichever protocol they ask by.

    `normalizes_paths`: a proxy normalises paths as Eastgate does before it hands them on. `whole_bodies`: it shows the
    body of every request, and refuses one that is too large instead of cutting it. `shown_headers`: it shows these
    headers, and perhaps no others; empty: the protocol decides.
    """

    normalizes_paths: bool = False
    whole_bodies: bool = False
    shown_headers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request, or its beginning."""

    content: bytes = field(repr=False)
    complete: bool


@dataclass(frozen=True, slots=True)
class ProxyCheck:
    """A request that waits at a proxy. What is None is unknown.

    `source` is the caller. `to` (in the words of `--to`) and `port` are the destination that the configuration of the
    proxy names; `destination` is the address and port at which the request arrived, as the proxy sees it.

    A header that `headers` does not have is absent if `shown_headers` has its name (None: every name), else unknown.
    The values of `unclear_headers` are unknown: several values joined by commas, headers of the connection that the
    check came by, or headers that the proxy sets for the check. `shows_bodies`: without a `body`, the request has none.
    `mcp` is the method and the name that the proxy read in the body; None if the configuration does not say that the
    proxy reads bodies. `extensions` is what the configuration of the proxy adds to each check.
    """

    source: Source = UNKNOWN_CALLER
    method: str | None = None
    path: str | None = None
    host: str | None = None
    headers: Headers = field(default_factory=dict, repr=False)
    shown_headers: frozenset[str] | None = None
    unclear_headers: frozenset[str] = frozenset()
    http_protocol: str | None = None
    scheme: str | None = None
    sni: str | None = None
    address: str | None = None
    source_port: int | None = None
    destination: tuple[str, int] | None = None
    certificate: str | None = field(default=None, repr=False)
    body: Body | None = None
    shows_bodies: bool = False
    to: str | None = None
    port: int | None = None
    mcp: tuple[str | None, str | None] | None = None
    proxy_id: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_without_body(self) -> bool:
        """Return whether the request certainly has no body: by its method, and because the proxy would show one.

        Headers do not suffice: a proxy need not show `transfer-encoding`, and HTTP/2 does not have it.
        """
        if not self.shows_bodies or self.body is not None or self.method not in WITHOUT_BODY:
            return False
        headers = header_values(self.headers)
        return "transfer-encoding" not in headers and headers.get("content-length", _NO_LENGTH) == _NO_LENGTH

    @property
    def may_hide_message(self) -> bool:
        """Tell whether there may be a message in spite of the method: in a body, in a tunnel, or by another method."""
        if not self.is_without_body or not _LEADING_ELSEWHERE.isdisjoint(self.unclear_headers):
            return True
        return not self.knows_headers(_LEADING_ELSEWHERE) or not _LEADING_ELSEWHERE.isdisjoint(
            name.lower() for name in self.headers
        )

    def knows_headers(self, names: Collection[str] | None) -> bool:
        """Return whether each of these headers is shown or known to be absent. None: all headers."""
        shown = self.shown_headers
        if shown is None or names is None:
            return shown is None
        return all(name in shown or name in self.headers for name in names)

    @property
    def forged_headers(self) -> tuple[str, ...]:
        """Return the headers of the client that only we may send."""
        return tuple(name for name in self.headers if name.lower().startswith(OWN_HEADERS))


@dataclass(frozen=True, slots=True)
class ProxyAnswer:
    """The decision on a check, as a proxy carries it out.

    If the request is allowed, the proxy sets `upstream_headers`, each instead of the client's header of that name. It
    removes the headers of `upstream_removed`, and from the query the `removed_parameters`, as they are spelled there.
    A denied client gets `status`, `client_headers` and `body`. `record` is the line of the log: the client never sees
    its policy and reason. `why` is set if the denial is of no policy.
    """

    allowed: bool
    status: int
    id: str
    upstream_headers: Pairs = ()
    upstream_removed: tuple[str, ...] = ()
    removed_parameters: tuple[str, ...] = ()
    client_headers: Pairs = ()
    body: bytes = field(default=b"", repr=False)
    record: Mapping[str, object] = field(default_factory=dict, repr=False)
    why: str | None = None
