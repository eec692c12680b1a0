"""Diagnostics for people: the sentence, the source line with a caret under it, and the remedy.

error[EG1102]: port 70000 is out of range
  --> policies/reviews.yaml:14:17
   |
14 |         ports: [70000]
   |                 ^^^^^
   = help: write a port between 1 and 65535
"""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.diagnostics.model import Diagnostic, Severity
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import Span

_MAX_COLUMNS = 160  # a longer source line is cut around the caret

_RED, _YELLOW, _BLUE, _BOLD, _RESET = "\033[31m", "\033[33m", "\033[34m", "\033[1m", "\033[0m"
_TONES = {Severity.ERROR: _RED, Severity.WARNING: _YELLOW, Severity.INFO: _BLUE}


def snippet(span: Span, *, note: str = "", color: bool = False) -> list[str]:
    """Return the source line of a span with a caret line under it, and a note behind the caret."""
    text, column, width = _window(span)
    gutter = " " * len(str(span.line))
    bar = _paint("|", _BLUE, color)
    caret = _paint("^" * width, _RED, color)
    behind = f" {printable(note)}" if note else ""
    number = _paint(str(span.line), _BLUE, color)
    return [
        f"{gutter} {bar}",
        f"{number} {bar} {text}".rstrip(),
        f"{gutter} {bar} {' ' * (column - 1)}{caret}{behind}",
    ]


def _window(span: Span) -> tuple[str, int, int]:
    """Return the visible part of a line, and the caret's column and width in it. A tab is one column wide."""
    line = span.first_line
    column, width = span.column, max(1, len(span.underlined))
    if len(line) > _MAX_COLUMNS:  # a file may be one long line
        start = max(0, column - 1 - _MAX_COLUMNS // 2)
        line = line[start : start + _MAX_COLUMNS]
        column -= start
        width = min(width, max(1, len(line) - column + 1))
    return "".join(c if c.isprintable() else " " for c in line), column, width


def render(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """Render one diagnostic as text."""
    severity = diagnostic.code.severity
    tone = _TONES[severity]
    head = _paint(f"{severity}[{diagnostic.code.id}]", _BOLD + tone, color)
    lines = [f"{head}: {_paint(printable(diagnostic.message), _BOLD, color)}"]
    span = diagnostic.span
    gutter = " "
    if span is not None:
        gutter = " " * len(str(span.line))
        lines.append(f"{gutter}{_paint('-->', _BLUE, color)} {span}")
        lines.extend(snippet(span, color=color))
    if diagnostic.help:
        lines.append(f"{gutter} {_paint('=', _BLUE, color)} help: {printable(diagnostic.help)}")
    return "\n".join(lines)


def render_all(diagnostics: Iterable[Diagnostic], *, color: bool = False) -> str:
    """Render several diagnostics, a blank line between them."""
    return "\n\n".join(render(d, color=color) for d in diagnostics)


def _paint(text: str, tone: str, color: bool) -> str:
    return f"{tone}{text}{_RESET}" if color else text
