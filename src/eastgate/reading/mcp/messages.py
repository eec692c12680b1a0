"""JSON-RPC messages of the Model Context Protocol, read as strictly as a decision requires.

`messages.lua` reads them in the same way inside Envoy.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.strict_json import Json, JsonFlaw, JsonProblem, JsonReader

# The reasons why a message is ambiguous.


class MessageProblem(StrEnum):
    """An error in a message, or in its request. The values are for machines."""

    HTTP_METHOD = "http-method"
    """Not POST, GET or DELETE, or a header overrides the method of the request."""
    CONTENT_TYPE = "content-type"
    """Not exactly one, and that one `application/json` in UTF-8."""
    CONTENT_ENCODING = "content-encoding"
    UNEXPECTED_BODY = "unexpected-body"
    HEADERS = "headers"
    """Headers that repeat the method or the name, and contradict the body."""
    TOO_LARGE = "too-large"
    TOO_DEEP = "too-deep"
    TOO_MANY = "too-many-messages"
    ENCODING = "encoding"
    """Not UTF-8, or a byte order mark."""
    SYNTAX = "syntax"
    """Not JSON, or with NaN, Infinity, bytes after the value, or control characters in strings."""
    SURROGATE = "lone-surrogate"
    DUPLICATE_KEY = "duplicate-key"
    LOOKALIKE_KEY = "lookalike-key"
    """A key that some readers confuse with another key, such as `Method`, or that is not visible ASCII."""
    NOT_A_MESSAGE = "not-a-message"
    """Neither an object nor an array of objects; an object that is not a request, notification or response."""
    EMPTY_BATCH = "empty-batch"
    VERSION = "jsonrpc-version"
    METHOD = "method"
    """Not a string of visible ASCII, or a method of MCP in another spelling, such as `Tools/Call`."""
    PARAMS = "params"
    NAME = "name"
    """The name or URI that the method needs is missing, not a string, empty, or has control characters."""
    ID = "id"
    AMBIGUOUS_KIND = "ambiguous-kind"
    """Both a request and a response, or a response with both a result and an error."""
    TOOLS = "tools"
    """`result.tools` that is not a list of objects with names."""


class BadMessage(ValueError):  # noqa: N818 - says what it is
    """Error: a message is ambiguous, and must not be passed on."""

    def __init__(self, problem: MessageProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem


# JSON that every reader understands alike. A gateway decides by its own reading, and a server acts on another one.
# Ambiguous JSON is refused: duplicate keys, halves of characters, numbers that JSON does not have, bytes after the
# value.


MAX_BYTES = 1024 * 1024
MAX_DEPTH = 64

_READER = JsonReader()
_PROBLEMS = {
    JsonFlaw.CHARACTER: MessageProblem.SURROGATE,
    JsonFlaw.DEPTH: MessageProblem.TOO_DEEP,
    JsonFlaw.DUPLICATE: MessageProblem.DUPLICATE_KEY,
}


def decode_text(body: bytes, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a body: UTF-8 without a byte order mark, within a size."""
    if len(body) > max_bytes:
        raise BadMessage(MessageProblem.TOO_LARGE)
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise BadMessage(MessageProblem.ENCODING) from None
    if text.startswith("\ufeff"):
        raise BadMessage(MessageProblem.ENCODING)
    return text


def read_json(text: str, max_depth: int = MAX_DEPTH) -> Json:
    """Read the one value in a text."""
    try:
        return _READER.read(text, max_depth)
    except JsonProblem as problem:
        raise BadMessage(_PROBLEMS.get(problem.flaw, MessageProblem.SYNTAX)) from None


def refuse_lookalikes(keys: Iterable[str], known: frozenset[str]) -> None:
    """Refuse keys that some readers confuse with a known one: readers that ignore case, or stop at a NUL."""
    for key in keys:
        if key not in known and key.partition("\0")[0].casefold() in known:
            raise BadMessage(MessageProblem.LOOKALIKE_KEY)


MAX_MESSAGES = 64
"""The most messages in a batch."""

METHODS = frozenset((
    "completion/complete", "elicitation/create", "initialize", "logging/setLevel", "ping", "prompts/get",
    "prompts/list", "resources/list", "resources/read", "resources/subscribe", "resources/templates/list",
    "resources/unsubscribe", "roots/list", "sampling/createMessage", "server/discover", "subscriptions/listen",
    "tasks/cancel", "tasks/get", "tasks/list", "tasks/result", "tasks/update", "tools/call", "tools/list",
    "notifications/cancelled", "notifications/elicitation/complete", "notifications/initialized",
    "notifications/message", "notifications/progress", "notifications/prompts/list_changed",
    "notifications/resources/list_changed", "notifications/resources/updated", "notifications/roots/list_changed",
    "notifications/subscriptions/acknowledged", "notifications/tasks/status", "notifications/tools/list_changed",
))  # fmt: skip
"""The methods of all versions of the protocol."""

NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
}
"""The member of `params` with the subject of a method."""

_MEMBERS = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_PARAMS = frozenset(("name", "uri", "arguments", "_meta"))
_SPELLINGS = frozenset(method.lower() for method in METHODS)
_VISIBLE = regex(r"[\x21-\x7e]++")
_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f]")


class MessageKind(StrEnum):
    """The kind of a message."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Message:
    """A message. `name` is the tool or prompt that it names, or the URI of its resource. A response has no method."""

    method: str | None
    name: str | None
    id: str | int | None
    kind: MessageKind


def read_messages(body: bytes) -> tuple[Message, ...]:
    """Read the messages in the body of a request: one, or a batch. Raises `BadMessage` in doubt."""
    value = read_json(decode_text(body, MAX_BYTES), MAX_DEPTH)
    if isinstance(value, dict):
        return (read_message(value),)
    if not isinstance(value, list):
        raise BadMessage(MessageProblem.NOT_A_MESSAGE)
    if not value:
        raise BadMessage(MessageProblem.EMPTY_BATCH)
    if len(value) > MAX_MESSAGES:
        raise BadMessage(MessageProblem.TOO_MANY)
    return tuple(map(read_message, value))


def read_message(value: Json) -> Message:
    """Read a message from strictly parsed JSON."""
    if not isinstance(value, dict):
        raise BadMessage(MessageProblem.NOT_A_MESSAGE)
    _refuse_lookalikes(value, _MEMBERS)
    if value.get("jsonrpc") != "2.0":
        raise BadMessage(MessageProblem.VERSION)
    if "method" not in value:
        return _read_response(value)
    if "result" in value or "error" in value:
        raise BadMessage(MessageProblem.AMBIGUOUS_KIND)
    method = _read_method(value["method"])
    name = _read_name(method, value.get("params"))
    if "id" not in value:
        return Message(method, name, None, MessageKind.NOTIFICATION)
    return Message(method, name, _read_id(value["id"]), MessageKind.REQUEST)


def _refuse_lookalikes(members: dict[str, Json], known: frozenset[str]) -> None:
    """Refuse keys that some readers confuse with a known one, and keys that no version of the protocol can have."""
    for key in members:
        if key not in known and (key.lower() in known or not _VISIBLE.fullmatch(key)):
            raise BadMessage(MessageProblem.LOOKALIKE_KEY)


def _read_response(value: dict[str, Json]) -> Message:
    if ("result" in value) is ("error" in value):
        raise BadMessage(MessageProblem.AMBIGUOUS_KIND if "result" in value else MessageProblem.NOT_A_MESSAGE)
    identifier = value.get("id")
    if identifier is None and "id" in value and "error" in value:
        return Message(None, None, None, MessageKind.RESPONSE)
    return Message(None, None, _read_id(identifier), MessageKind.RESPONSE)


def _read_id(value: Json) -> str | int:
    if isinstance(value, str) or type(value) is int:
        return value
    raise BadMessage(MessageProblem.ID)


def _read_method(value: Json) -> str:
    """Return a method. Lenient servers would read `Tools/Call` as `tools/call`, so such spellings are refused."""
    if not isinstance(value, str):
        raise BadMessage(MessageProblem.METHOD)
    if value not in METHODS and (value.lower() in _SPELLINGS or not _VISIBLE.fullmatch(value)):
        raise BadMessage(MessageProblem.METHOD)
    return value


def _read_name(method: str, params: Json) -> str | None:
    if isinstance(params, dict):
        _refuse_lookalikes(params, _PARAMS)
    elif params is not None:
        raise BadMessage(MessageProblem.PARAMS)
    member = NAMED.get(method)
    if member is None:
        return None
    name = params.get(member) if params else None
    if not isinstance(name, str) or not name or _CONTROL.search(name):
        raise BadMessage(MessageProblem.NAME)
    return name
