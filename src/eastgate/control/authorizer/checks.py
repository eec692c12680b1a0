"""Checks and their answers, independent of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import Final

from eastgate.authority.questions import Question
from eastgate.basics.records import dataclass
from eastgate.cluster.ends import UNKNOWN_CALLER, Source
from eastgate.ir.attributes import Headers, each_header, header_values
from eastgate.reading.mcp.messages import BadMessage, Message, MessageKind, MessageProblem
from eastgate.reading.mcp.requests import OVERRIDES, read_request
from eastgate.reading.mcp.tool_lists import METHOD, NAME

DECISION_HEADER: Final = "x-eastgate-decision"
WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""Methods without a message in a body."""
_REROUTING_HEADERS: Final = frozenset({"upgrade", *OVERRIDES})
_NO_LENGTH: Final = ("0",)
OWN_HEADERS: Final = "x-eastgate-"
"""The prefix of the headers that only Eastgate sets. Clients may not send them."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Properties of the proxies that the operator configures, for every protocol.

    `normalizes_paths`: a proxy normalises paths as Eastgate does before it forwards them. `whole_bodies`: a proxy sends
    the body of every request, and refuses a body that is too large instead of cutting it. `shown_headers`: a proxy
    sends these headers, and perhaps no others; empty: the protocol decides.
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
    """A request that waits at a proxy. None means unknown.

    `source` is the caller. `to` (as in `--to`) and `port` are the destination in the configuration of the proxy.
    `destination` is the address and port at which the request arrived, as the proxy sees it.

    A header that `headers` does not have is absent if `shown_headers` has its name (None: every name), and else
    unknown. The values of `unclear_headers` are unknown: values joined by commas, headers of the connection that
    carried the check, or headers that the proxy sets for the check. `shows_bodies`: a check without `body` means a
    request without a body.

    `mcp` is the MCP method and name that the proxy read from the body. It is None if, according to the configuration,
    the proxy reads no bodies. `extensions` are the values that the configuration of the proxy adds to each check.
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
        """Return whether the request certainly has no body: by its method, and because the proxy would send a body.

        Headers are not enough: a proxy need not show `transfer-encoding`, and HTTP/2 does not have it.
        """
        if not self.shows_bodies or self.body is not None or self.method not in WITHOUT_BODY:
            return False
        headers = header_values(self.headers)
        return "transfer-encoding" not in headers and headers.get("content-length", _NO_LENGTH) == _NO_LENGTH

    @property
    def may_hide_message(self) -> bool:
        """Return whether a message is possible in spite of the method: in a body, in a tunnel, or by another method."""
        if not self.is_without_body or not _REROUTING_HEADERS.isdisjoint(self.unclear_headers):
            return True
        return not self.knows_headers(_REROUTING_HEADERS) or not _REROUTING_HEADERS.isdisjoint(
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
        """Return the headers of the client that only Eastgate may set."""
        return tuple(name for name in self.headers if name.lower().startswith(OWN_HEADERS))


@dataclass(frozen=True, slots=True)
class ProxyAnswer:
    """The decision on a check, in the form that a proxy applies.

    If the request is allowed, the proxy sets `upstream_headers`, each in place of the client's header of that name. It
    removes the headers in `upstream_removed`, and the `removed_parameters` from the query, as they are spelled there. A
    denied client gets `status`, `client_headers` and `body`. `record` is the log record: its policy and reason never
    reach the client. `why` is set if no policy made the denial.
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


# Reads the MCP messages in the body of a check, if a policy depends on them.


_SESSION_METHODS = ("GET", "DELETE")  # methods without a message that an MCP server accepts
MESSAGE_HEADERS: Final = frozenset({"content-encoding", "content-type", "upgrade", METHOD, NAME, *OVERRIDES})
"""Headers that decide whether a request has messages, and how to read them."""
_DIFFERENT = "differs from what the proxy read"
RESPONSE = "notifications/response"
"""The MCP method by which policies decide the responses of clients to requests of the server. They have no method, and
a rule needs one.
"""


@dataclass(frozen=True, slots=True)
class CheckedMessage:
    """A message of a check. Each gets a decision of its own."""

    message: Message

    def about(self, question: Question) -> Question:
        """Return the question with this message."""
        return replace(question, mcp_method=self.message.method or RESPONSE, tool=self.message.name)


@dataclass(frozen=True, slots=True)
class MessageReading:
    """The messages of a check. None is any message. ALL must be allowed.

    `problem`: there is a body, and it cannot be read as messages. `is_batch`: the messages came in an array.
    """

    messages: tuple[CheckedMessage | None, ...] = (None,)
    problem: str | None = None
    is_batch: bool = False

    @property
    def ids(self) -> tuple[str | int, ...]:
        """Return the ids of the requests that wait for a response."""
        messages = (each.message for each in self.messages if each is not None)
        return tuple(
            message.id for message in messages if message.kind is MessageKind.REQUEST and message.id is not None
        )


ANY_MESSAGE = MessageReading()


def read_check(check: ProxyCheck, is_needed: Callable[[], bool], *, strict: bool = False) -> MessageReading:
    """Read the messages of a check, if policies depend on them. A message that cannot be read is unknown.

    `strict`: a body without a content type is not a message, nor is the body of a method other than POST.
    """
    body = check.body
    content = body.content if body is not None and body.complete else b""
    if check.method in WITHOUT_BODY and (
        check.method not in _SESSION_METHODS or not check.knows_headers(MESSAGE_HEADERS)
    ):
        return ANY_MESSAGE
    if (not content and check.method not in _SESSION_METHODS) or not is_needed():
        return ANY_MESSAGE
    try:
        messages = _read(check, content, strict=strict)
    except BadMessage as error:
        return MessageReading(problem=str(error.problem))
    if check.mcp is not None and check.mcp != _as_proxy_reads(messages):
        return MessageReading(problem=_DIFFERENT)
    if not messages:
        return ANY_MESSAGE
    return MessageReading(tuple(map(CheckedMessage, messages)), is_batch=content.lstrip()[:1] == b"[")


def _as_proxy_reads(messages: tuple[Message, ...]) -> tuple[str | None, str | None] | None:
    """Return the method and name that a proxy reads from these messages, or None if no proxy can express them."""
    if not messages:
        return None, None
    return (messages[0].method, messages[0].name) if len(messages) == 1 else None


def _read(check: ProxyCheck, content: bytes, *, strict: bool) -> tuple[Message, ...]:
    """Read the messages of a request as a server reads them: by its method and headers."""
    if not check.knows_headers(MESSAGE_HEADERS):
        raise BadMessage(MessageProblem.HEADERS)
    headers = list(each_header(check.headers))
    if not strict and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("content-type", "application/json"))
    method = check.method if strict or check.method in _SESSION_METHODS else "POST"
    return read_request(method or "", headers, content)
