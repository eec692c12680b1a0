"""What proxies ask and what they are told, whichever protocol it goes by."""

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


# Reads the MCP messages in the body of a check, where a policy looks at them.


_OF_SESSIONS = ("GET", "DELETE")  # methods that bring no message, and mean something to an MCP server
MESSAGE_HEADERS: Final = frozenset({"content-encoding", "content-type", "upgrade", METHOD, NAME, *OVERRIDES})
"""Headers that say whether a request brings messages, and how they are read."""
_DIFFERENT = "differs from what the proxy read"
RESPONSE = "notifications/response"
"""What a response to a request of the server is decided as: nobody wrote rules for them, and they need a way."""


@dataclass(frozen=True, slots=True)
class CheckedMessage:
    """A message of a check, to be decided by itself."""

    message: Message

    def about(self, question: Question) -> Question:
        """Return the question with this message."""
        return replace(question, mcp_method=self.message.method or RESPONSE, tool=self.message.name)


@dataclass(frozen=True, slots=True)
class MessageReading:
    """The messages of a check; None stands for whatever the body may be. ALL must be allowed.

    `problem`: there is a body, and it cannot be read as messages. `is_batch`: they came in an array.
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


NOTHING_READ = MessageReading()


def read_check(check: ProxyCheck, is_looked_at: Callable[[], bool], *, strict: bool = False) -> MessageReading:
    """Read the messages of a check where policies look at them. What cannot be read is unknown.

    `strict`: a body without a content type is no message, nor is one of another method than POST.
    """
    body = check.body
    content = body.content if body is not None and body.complete else b""
    if check.method in WITHOUT_BODY and (check.method not in _OF_SESSIONS or not check.knows_headers(MESSAGE_HEADERS)):
        return NOTHING_READ
    if (not content and check.method not in _OF_SESSIONS) or not is_looked_at():
        return NOTHING_READ
    try:
        messages = _read(check, content, strict=strict)
    except BadMessage as error:
        return MessageReading(problem=str(error.problem))
    if check.mcp is not None and check.mcp != _repeated(messages):
        return MessageReading(problem=_DIFFERENT)
    if not messages:
        return NOTHING_READ
    return MessageReading(tuple(map(CheckedMessage, messages)), is_batch=content.lstrip()[:1] == b"[")


def _repeated(messages: tuple[Message, ...]) -> tuple[str | None, str | None] | None:
    """Return the method and name that a proxy reads in the same messages; None if no proxy can express them."""
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
    method = check.method if strict or check.method in _OF_SESSIONS else "POST"
    return read_request(method or "", headers, content)
