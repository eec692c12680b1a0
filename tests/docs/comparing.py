"""The comparison of printed and documented output. Times, durations and text that the page leaves out do not count."""

from __future__ import annotations

import re

__all__ = ["is_same", "shortened"]

# The parts that differ from run to run. Addresses of a mesh are those of the page (see `terminal`); columns beside such
# addresses may be wider, and blanks at the end of a line do not count.
_VARIABLE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"  # a time
    r"|\b\d+(?:\.\d+)? (?:ms|s|seconds?)\b"  # a duration
    r"|\b\d+(?:y\d*d?|d\d*h?)(?=\s|$)"  # the age of an object
    r"|(?<=\"seconds\": )\d+|(?<=\"nanos\": )\d+"  # a time in JSON
    r"|(?<=curl/)[\d.]+|(?<=\bpid )\d+"
)
_COLUMNS = re.compile(r"(?<=\S) {2,}(?=\S)")
_LOOPBACK = re.compile(r"\b127\.\d+\.\d+\.\d+\b")
_REST = "…"


def is_same(written: str, printed: str, *, anywhere: bool = False) -> bool:
    """Return whether the printed text matches the written text. `anywhere`: whether some of its lines do."""
    columns = _LOOPBACK.search(written) is not None or _LOOPBACK.search(printed) is not None
    pattern = "".join(_pattern(line) for line in _masked(written, columns))
    text = "".join(f"{line}\n" for line in _masked(printed, columns))
    if anywhere:
        return pattern != "" and re.search(rf"(?m:^){pattern}", text) is not None
    return re.fullmatch(pattern, text) is not None


def _masked(text: str, columns: bool) -> list[str]:
    lines = _VARIABLE.sub("#", text).strip("\n").split("\n") if text.strip("\n") else []
    return [_COLUMNS.sub("  ", line.rstrip()) if columns else line.rstrip() for line in lines]


def _pattern(line: str) -> str:
    if line.strip() == _REST:
        return "(?:.*\n)*"
    return ".*".join(map(re.escape, line.split(_REST))) + "\n"


def shortened(written: str, printed: str) -> str:
    """Return the printed text for a page. If the page left out the end, the result does, too."""
    lines = printed.strip("\n").split("\n") if printed.strip("\n") else []
    before = written.split("\n")
    if before[-1].strip() == _REST and len(lines) >= len(before):
        lines = [*lines[: len(before) - 1], before[-1]]
    return "\n".join(line.rstrip() for line in lines)
