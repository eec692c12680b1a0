"""Decodes bytes to text, and converts offsets in a text to lines and columns.

A wrong byte must not hide the findings in the other documents of a file. So the text is always decoded, with U+FFFD for
each wrong byte. The offsets of these bytes are kept, and the reader of a stretch tests whether it has one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate, islice

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import NOT_UTF8, TOO_LARGE
from eastgate.reading.manifests.limits import MAX_BYTES

_SURROGATE = regex("[\ud800-\udfff]")
_MARK = "\ufeff"
_MAX_BAD_BYTES = 1000  # with more wrong bytes, the input is not text


class DecodedText:
    """A text under reading: the source of its spans, and its line table, which is computed on demand."""

    __slots__ = ("_starts", "bad", "marked", "raw", "source")

    def __init__(self, source: SourceText, raw: bytes, bad: dict[int, str], *, marked: bool = False) -> None:
        self.source = source
        self.raw = raw  # emptied after the first reading, to free memory
        self.bad = bad
        self.marked = marked  # whether a byte order mark was before the text
        self._starts: list[int] | None = None

    @property
    def starts(self) -> list[int]:
        """Return the offset of the start of each line; the lines are those of `SourceText.line`."""
        if self._starts is None:
            lengths = map(len, self.source.text.splitlines(keepends=True))
            self._starts = list(accumulate(lengths, initial=0))
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset, counted from 1."""
        starts = self.starts
        line = bisect_right(starts, offset)
        if line == len(starts) and line > 1 and not self._ends_with_break():
            line -= 1  # the last entry of the table is the end of the text, which starts a line only after a line break
        return line, offset - starts[line - 1] + 1

    def _ends_with_break(self) -> bool:
        last = self.source.text[-1:]
        return bool(last.splitlines()) and last.splitlines()[0] == ""

    def span(self, start: int, end: int) -> Span:
        """Return the span between two offsets."""
        line, column = self.position(start)
        end_line, end_column = self.position(end)
        return self.source.place(line, column, end_line, end_column)

    def extent(self, span: Span) -> tuple[int, int]:
        """Return the offsets of a span of this text."""
        span = span.built or span
        starts = self.starts
        return starts[span.line - 1] + span.column - 1, starts[span.end_line - 1] + span.end_column - 1

    def report_bad_bytes(self, start: int, end: int, reporter: Reporter) -> bool:
        """Report the first byte in a stretch that is not UTF-8. Return whether there is one."""
        if not self.bad:
            return False
        offsets = list(self.bad)
        at = bisect_left(offsets, start)
        if at == len(offsets) or offsets[at] >= end:
            return False
        offset = offsets[at]
        reporter.report(
            NOT_UTF8,
            f"{self.bad[offset]} is not UTF-8",
            self.span(offset, offset + 1),
            help=_utf16_help(self.raw) or "save the file as UTF-8",
        )
        return True


def decode(name: str, content: str | bytes, reporter: Reporter) -> DecodedText | None:
    """Decode the text of a file; None if it is too large, or mostly not UTF-8."""
    if len(content) > MAX_BYTES:
        report_too_large(name, reporter)
        return None
    raw, text = (content, None) if isinstance(content, bytes) else (b"", content)
    if text is None:
        marked = raw.startswith(_MARK.encode())
        raw = raw.removeprefix(_MARK.encode())
        try:
            return DecodedText(SourceText(name, raw.decode()), raw, {}, marked=marked)
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "surrogateescape")
    else:
        marked = text.startswith(_MARK)
        text = text.removeprefix(_MARK)
    surrogates = list(islice(_SURROGATE.finditer(text), _MAX_BAD_BYTES))
    bad = {match.start(): _describe(match.group()) for match in surrogates}
    if bad:
        text = _SURROGATE.sub("\ufffd", text)
    result = DecodedText(SourceText(name, text), raw or text.encode(), bad, marked=marked)
    if _utf16_help(raw) or len(bad) == _MAX_BAD_BYTES:
        result.report_bad_bytes(0, len(text), reporter)
        return None
    return result


def report_too_large(name: str, reporter: Reporter) -> None:
    """Report a text that exceeds the size limit."""
    message = f"`{printable(name)}` is larger than {MAX_BYTES // (1024 * 1024)} MiB"
    reporter.report(TOO_LARGE, message, help="split it into several files")


def _describe(wrong: str) -> str:
    """Describe a wrong byte (which `surrogateescape` maps to U+DC80 and up), or half of a surrogate pair."""
    code = ord(wrong)
    return f"byte 0x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else f"the lone surrogate U+{code:04X}"


def _utf16_help(raw: bytes) -> str | None:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "this looks like UTF-16: save the file as UTF-8 (in PowerShell, `Out-File -Encoding utf8`)"
    return None
