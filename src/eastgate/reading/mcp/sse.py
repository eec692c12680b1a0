"""Server-sent events (`text/event-stream`), line by line, with every byte kept."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.mcp.messages import BadMessage, MessageProblem

MAX_EVENT_BYTES = 4 * 1024 * 1024

_ENDING = regex(rb"\r\n?|\n")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """A line and the bytes that end it; no bytes if the stream stops in the middle of a line."""

    content: bytes
    ending: bytes

    @property
    def field(self) -> bytes:
        """Return the name of the field; empty for a comment."""
        return self.content.removeprefix(_MARK).partition(b":")[0]

    @property
    def value(self) -> bytes:
        """Return the value of the field."""
        return self.content.partition(b":")[2].removeprefix(b" ")

    def __bytes__(self) -> bytes:
        return self.content + self.ending


class Lines:
    """Splits a stream into lines, chunk by chunk. A line ends with CRLF, LF, or a CR before another character."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the lines that a chunk completes."""
        buffer, lines, start = self._buffer, [], 0
        buffer += chunk
        position = self._searched
        while ending := _ENDING.search(buffer, position):
            if ending.group() == b"\r" and ending.end() == len(buffer):
                break  # an LF may follow
            lines.append(Line(bytes(buffer[start : ending.start()]), ending.group()))
            start = position = ending.end()
        del buffer[:start]
        if len(buffer) > self._max_bytes:
            raise BadMessage(MessageProblem.TOO_LARGE)
        self._searched = max(0, len(buffer) - 1)
        return lines

    def close(self) -> Line | None:
        """Return the rest of the stream after its last complete line."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        if not rest:
            return None
        content = rest.removesuffix(b"\r")
        return Line(content, rest[len(content) :])


@dataclass(frozen=True, slots=True)
class SseEvent:
    """An event with data."""

    data: bytes
    type: str = "message"
    id: str | None = None


def read_events(body: bytes, max_bytes: int = MAX_EVENT_BYTES) -> list[SseEvent]:
    """Return the events of a stream that has ended. An event without an empty line after it does not count."""
    events: list[SseEvent] = []
    lines = Lines(max_bytes)
    complete = lines.feed(body)
    rest = lines.close()
    if rest is not None and rest.ending:
        complete.append(rest)
    data: list[bytes] = []
    kind, identifier = "", None
    for line in complete:
        match line.field:
            case b"data":
                data.append(line.value)
            case b"event":
                kind = line.value.decode("utf-8", "replace")
            case b"id":
                identifier = line.value.decode("utf-8", "replace")
            case b"" if not line.content:
                if data:
                    events.append(SseEvent(b"\n".join(data), kind or "message", identifier))
                data, kind, identifier = [], "", None
    return events
