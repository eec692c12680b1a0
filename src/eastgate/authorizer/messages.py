"""Reads the MCP messages in the body of a check, where a policy looks at them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eastgate.api.questions import Question
from eastgate.authorizer.checks import WITHOUT_BODY, ProxyCheck
from eastgate.mcp.messages import Kind, Message, read_messages
from eastgate.mcp.problems import BadMessage
from eastgate.records import dataclass

__all__ = ["NOTHING_READ", "RESPONSE", "CheckedMessage", "MessageReading", "read_check"]

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
        return tuple(message.id for message in messages if message.kind is Kind.REQUEST and message.id is not None)


NOTHING_READ = MessageReading()


def read_check(check: ProxyCheck, is_looked_at: Callable[[], bool]) -> MessageReading:
    """Read the messages of a check where policies look at them. What cannot be read is unknown."""
    if check.method in WITHOUT_BODY:
        return NOTHING_READ
    if check.mcp_method is not None:
        return MessageReading((CheckedMessage(Message(check.mcp_method, check.mcp_name, None, Kind.REQUEST)),))
    body = check.body
    if body is None or not body.complete or not body.content or not is_looked_at():
        return NOTHING_READ
    try:
        messages = read_messages(body.content)
    except BadMessage as error:
        return MessageReading(problem=str(error.problem))
    return MessageReading(tuple(map(CheckedMessage, messages)), is_batch=body.content.lstrip()[:1] == b"[")
