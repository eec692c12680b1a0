"""Answers to `tools/list` with only the tools that the caller may call.

Other tools are cut out of the bytes, so everything else stays as the server wrote it. One exception: a list that is
marked as public (`cacheScope`) loses the mark, because another caller may get another list. An ambiguous answer raises
`BadMessage` and must not reach the client, because it might show hidden tools.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Sequence

from eastgate.basics.regexes import regex
from eastgate.reading.mcp.messages import (
    MAX_DEPTH,
    BadMessage,
    Message,
    MessageProblem,
    decode_text,
    read_json,
    refuse_lookalikes,
)
from eastgate.reading.mcp.sse import MAX_EVENT_BYTES, Line, Lines
from eastgate.reading.strict_json import Json

# HTTP headers of the protocol, and those that repeat parts of the body.


SESSION = "mcp-session-id"
PROTOCOL_VERSION = "mcp-protocol-version"
METHOD = "mcp-method"
NAME = "mcp-name"

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions that begin with a handshake, oldest first."""

MODERN_VERSIONS = ("2026-07-28",)
"""Versions whose requests are independent, oldest first."""

_CONTENT_TYPE = regex(r'[ \t]*+([^\s;,]++)[ \t]*+(?:;[ \t]*+charset=(?:utf-8|"utf-8")[ \t]*+)?')
_PLAIN = regex(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_START, _END = "=?base64?", "?="


def media_type(content_type: str) -> str | None:
    """Return the type of a text in UTF-8, in lower case; None for other charsets and parameters."""
    match = _CONTENT_TYPE.fullmatch(content_type.lower())
    return match.group(1) if match else None


def encode_value(value: str) -> str:
    """Return a value in a form for headers: itself, or in Base64."""
    if _PLAIN.fullmatch(value) and not _is_encoded(value):
        return value
    return f"{_START}{base64.b64encode(value.encode()).decode()}{_END}"


def decode_value(value: str) -> str | None:
    """Return the value of a header; None if it is ambiguous."""
    if not _is_encoded(value):
        return value
    encoded = value[len(_START) : -len(_END)]
    try:
        content = base64.b64decode(encoded, validate=True)
        text = content.decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return text if base64.b64encode(content).decode() == encoded else None


def agrees(messages: Sequence[Message], headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether the headers that repeat a message agree with it. Missing headers agree.

    A server or a proxy behind this one may read only the headers. Headers cannot repeat a batch or a response.
    """
    seen: set[str] = set()
    for key, value in headers:
        header = key.lower()
        if header not in (METHOD, NAME):
            continue
        if header in seen or len(messages) != 1:
            return False
        seen.add(header)
        expected = messages[0].method if header == METHOD else messages[0].name
        if expected is None or decode_value(value) != expected:
            return False
    return True


def _is_encoded(value: str) -> bool:
    return value.startswith(_START) and value.endswith(_END) and len(value) >= len(_START) + len(_END)


_SPACE = regex(r"[ \t\n\r]*+")
_MESSAGE = frozenset(("jsonrpc", "id", "method", "params", "result", "error"))
_RESULT = frozenset(("tools",))
_TOOL = frozenset(("name",))
_decode = json.JSONDecoder().raw_decode
_Span = tuple[int, int]
_Edit = tuple[int, int, str]


def filter_tools(body: bytes, content_type: str, may_call: Callable[[str], bool]) -> bytes:
    """Return an answer without the tools that the caller may not call. Its type selects JSON or a stream of events."""
    match media_type(content_type):
        case "application/json":
            if not body:
                return body
            return _filter_text(decode_text(body, MAX_EVENT_BYTES), may_call).encode()
        case "text/event-stream":
            stream = ToolFilter(may_call)
            return stream.feed(body) + stream.close()
        case _:
            raise BadMessage(MessageProblem.CONTENT_TYPE)


class ToolFilter:
    """Filters a stream of events, chunk by chunk.

    An event with data is held back until it is complete. All other bytes are returned at once. After an error, each
    further call raises again.
    """

    def __init__(self, may_call: Callable[[str], bool], max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._may_call = may_call
        self._max_bytes = max_bytes
        self._lines = Lines(max_bytes)
        self._held: list[Line] = []
        self._held_bytes = 0
        self._error: BadMessage | None = None

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes to send after this chunk."""
        return self._guard(lambda: b"".join(map(self._take, self._lines.feed(chunk))))

    def close(self) -> bytes:
        """Return the bytes to send at the end. Some clients read an unfinished event, so it is filtered too."""
        return self._guard(self._close)

    def _guard(self, work: Callable[[], bytes]) -> bytes:
        if self._error is not None:
            raise BadMessage(self._error.problem)
        try:
            return work()
        except BadMessage as error:
            self._error = error
            raise

    def _take(self, line: Line) -> bytes:
        if not line.content:
            return self._release() + bytes(line)
        if not self._held and line.field != b"data":
            return bytes(line)
        self._held.append(line)
        self._held_bytes += len(line.content)
        if self._held_bytes > self._max_bytes:
            raise BadMessage(MessageProblem.TOO_LARGE)
        return b""

    def _close(self) -> bytes:
        rest = self._lines.close()
        return (b"" if rest is None else self._take(rest)) + self._release()

    def _release(self) -> bytes:
        """Return the event that was held back, filtered."""
        held, self._held, self._held_bytes = self._held, [], 0
        before = b"\n".join(line.value for line in held if line.field == b"data")
        if not before:  # an event with only an id
            return b"".join(map(bytes, held))
        text = decode_text(before, self._max_bytes)
        filtered = _filter_text(text, self._may_call)
        if filtered == text:
            return b"".join(map(bytes, held))
        return _with_data(held, filtered)


def _with_data(lines: list[Line], text: str) -> bytes:
    """Return an event with other data."""
    first = next(line for line in lines if line.field == b"data")
    start = first.content.removesuffix(first.value) if b":" in first.content else first.content + b":"
    data = [start + part + first.ending for part in text.encode().split(b"\n")]
    others = [bytes(line) for line in lines if line.field != b"data"]
    # The first line of data is the first line that was held back.
    return b"".join((*data, *others))


def _filter_text(text: str, may_call: Callable[[str], bool]) -> str:
    """Return the text of a message, or of a batch, without the tools that the caller may not call."""
    value = read_json(text, MAX_DEPTH)
    edits: list[_Edit] = []
    start = _skip_space(text, 0)
    if isinstance(value, list):
        for item, (position, _) in zip(value, _elements(text, start), strict=True):
            edits += _edit_message(text, position, item, may_call)
    else:
        edits += _edit_message(text, start, value, may_call)
    pieces: list[str] = []
    position = 0
    for start, end, replacement in edits:
        pieces += (text[position:start], replacement)
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _edit_message(text: str, start: int, value: Json, may_call: Callable[[str], bool]) -> list[_Edit]:
    if not isinstance(value, dict):
        raise BadMessage(MessageProblem.NOT_A_MESSAGE)
    refuse_lookalikes(value, _MESSAGE)
    result = value.get("result")
    if not isinstance(result, dict):
        return []
    refuse_lookalikes(result, _RESULT)
    if "tools" not in result:
        return []
    if "method" in value or "error" in value:
        raise BadMessage(MessageProblem.AMBIGUOUS_KIND)
    kept = [may_call(name) for name in _names(result["tools"])]
    members = _members(text, _members(text, start)["result"])
    edits = [(*cut, "") for cut in _cuts(_elements(text, members["tools"]), kept)]
    if result.get("cacheScope") == "public":
        scope = members["cacheScope"]
        edits.append((scope, _decode(text, scope)[1], '"private"'))
    return sorted(edits)


def _names(tools: Json) -> list[str]:
    if not isinstance(tools, list):
        raise BadMessage(MessageProblem.TOOLS)
    names: list[str] = []
    for tool in tools:
        if not isinstance(tool, dict):
            raise BadMessage(MessageProblem.TOOLS)
        refuse_lookalikes(tool, _TOOL)
        name = tool.get("name")
        if not isinstance(name, str):
            raise BadMessage(MessageProblem.TOOLS)
        names.append(name)
    return names


def _cuts(elements: list[_Span], kept: list[bool]) -> list[_Span]:
    """Return the ranges to cut out of an array. Each has an element and the comma after it, or before it."""
    cuts: list[_Span] = []
    some_kept = False
    for index, ((start, end), keep) in enumerate(zip(elements, kept, strict=True)):
        if keep:
            some_kept = True
        elif some_kept:
            cuts.append((elements[index - 1][1], end))
        elif index + 1 < len(elements):
            cuts.append((start, elements[index + 1][0]))
        else:
            cuts.append((start, end))
    return cuts


def _members(text: str, start: int) -> dict[str, int]:
    """Return the positions of the values of an object."""
    members: dict[str, int] = {}
    position = _skip_space(text, start + 1)
    while text[position] != "}":
        key, position = _decode(text, position)
        position = _skip_space(text, _skip_space(text, position) + 1)
        members[key] = position
        position = _skip_separator(text, _decode(text, position)[1])
    return members


def _elements(text: str, start: int) -> list[_Span]:
    """Return the extents of the elements of an array."""
    elements: list[_Span] = []
    position = _skip_space(text, start + 1)
    while text[position] != "]":
        end = _decode(text, position)[1]
        elements.append((position, end))
        position = _skip_separator(text, end)
    return elements


def _skip_separator(text: str, position: int) -> int:
    position = _skip_space(text, position)
    return _skip_space(text, position + 1) if text[position] == "," else position


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position
