"""Reports findings of the readers with positions, and stops reading after too many."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NoReturn

from eastgate.basics.diagnostics import Code, Diagnostic, Reporter, did_you_mean
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import Span
from eastgate.reading.manifests.codes import DUPLICATE_KEY, SEVERAL_IN_ONE, TOO_DEEP, TOO_MANY_FINDINGS
from eastgate.reading.manifests.limits import MAX_DEPTH, MAX_FINDINGS
from eastgate.reading.manifests.node import Node

_MAX_SHOWN_CHARS = 60
_MAX_COMPARED_WORDS = 200


def shown(text: str) -> str:
    """Return a text of the user, printable and short enough for a sentence."""
    return printable(text if len(text) <= _MAX_SHOWN_CHARS else text[: _MAX_SHOWN_CHARS - 3] + "...")


def suggestion(word: str, allowed: Iterable[str]) -> str | None:
    """Return the suggestion of `did_you_mean`, for few and short words only: a file may be made to be slow."""
    if len(word) > _MAX_SHOWN_CHARS:
        return None
    return did_you_mean(
        word, [other for other in islice(allowed, _MAX_COMPARED_WORDS) if len(other) <= _MAX_SHOWN_CHARS]
    )


class StopReading(Exception):  # noqa: N818 - it ends the work on one document, and a finding has said why
    """Error: the rest of the document cannot be read, or is not safe to read."""


class Findings:
    """The findings in one document."""

    __slots__ = ("_count", "_reporter")

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._count = 0

    def report(self, code: Code, message: str, span: Span, help_: str | None = None) -> None:
        """Add a finding. Stop if there are too many."""
        self._reporter.report(code, message, span, help=help_)
        self._count += 1
        if self._count >= MAX_FINDINGS:
            self.stop(TOO_MANY_FINDINGS, "the rest of this document was not read: too many findings", span)

    def stop(self, code: Code, message: str, span: Span, help_: str | None = None) -> NoReturn:
        """Add a finding and stop."""
        self.stop_with(Diagnostic(code, message, span, help_))

    def stop_with(self, diagnostic: Diagnostic) -> NoReturn:
        """Add an existing finding and stop."""
        self._reporter.diagnostics.append(diagnostic)
        raise StopReading

    def too_deep(self, span: Span) -> NoReturn:
        """Report values that are nested too deeply, and stop."""
        message = f"this is nested more than {MAX_DEPTH} levels deep"
        self.stop(TOO_DEEP, message, span, "no Kubernetes object needs that: check the indentation and the brackets")

    def second_manifest(self, name: str, key: Node, first: Node) -> None:
        """Report the head of a second object inside of an object."""
        message = f"a second manifest begins here: `{name}` is already in line {first.line}"
        self.report(SEVERAL_IN_ONE, message, key.span, "write `---` on a line of its own before it")

    def duplicate_key(self, name: str, key: Node, first: Node) -> None:
        """Report a duplicate key of a mapping."""
        where = f"line {first.line}" if first.line != key.line else f"column {first.column} of this line"
        message = f"key `{shown(name)}` is written twice in this mapping"
        self.report(DUPLICATE_KEY, message, key.span, f"the first one is in {where}; keep one of them")
