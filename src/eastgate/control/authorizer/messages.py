"""Reads the MCP messages in the body of a check, where a policy looks at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from eastgate.authority.questions import Question
from eastgate.basics.records import dataclass
from eastgate.control.authorizer.checks import WITHOUT_BODY, ProxyCheck
from eastgate.ir.fields import each_header
from eastgate.reading.mcp.headers import METHOD, NAME
from eastgate.reading.mcp.messages import Message, MessageKind
from eastgate.reading.mcp.problems import BadMessage, MessageProblem
from eastgate.reading.mcp.requests import OVERRIDES, read_request

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
