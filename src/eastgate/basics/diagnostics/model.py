"""Diagnostics as data: a code from the catalogue, a sentence, a position and a remedy."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import field

from eastgate.basics.diagnostics.redaction import without_quotes
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass


class Severity(enum.StrEnum):
    """The severity of a finding. Errors stop the work. Warnings are printed. Infos are printed only by `lint`."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Code:
    """One entry of the catalogue: the meaning of all diagnostics with this code.

    `wrong` is a manifest, or a part of one, that has the error, and `right` the same without it. `needs_cluster`: the
    diagnostic depends on other objects, so that admission cannot report it about one object alone.
    """

    id: str
    title: str
    explanation: str
    severity: Severity = Severity.ERROR
    wrong: str = ""
    right: str = ""
    needs_cluster: bool = False

    def __repr__(self) -> str:
        return brief(self, f"{self.id} {self.title}")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding about one place. It quotes no text of a Secret.

    `about` is the file or the object of the finding, if neither the code nor the place names it. Findings of one code
    with the same `cause`, such as one file that others contradict, are printed as one.
    """

    code: Code
    message: str
    span: Span | None = None
    help: str | None = None
    about: str | None = None
    cause: str | None = None

    def __repr__(self) -> str:
        return brief(self, f"{self.code.id} {self.message}")

    def __post_init__(self) -> None:
        if self.span is not None and self.span.source.hides(self.span.line):
            shown = self.span.first_line
            object.__setattr__(self, "message", without_quotes(self.message, shown))
            object.__setattr__(self, "help", without_quotes(self.help, shown) if self.help else self.help)

    @property
    def is_error(self) -> bool:
        """Return whether this finding alone makes the input invalid."""
        return self.code.severity is Severity.ERROR

    def to_json(self) -> dict[str, object]:
        """Return the finding as plain data, for `-o json`."""
        span = self.span
        return {
            "code": self.code.id,
            "severity": str(self.code.severity),
            "message": self.message,
            "file": span.file if span else None,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "underlined": span.underlined if span else None,
            "help": self.help,
        }


@dataclass(slots=True)
class Reporter:
    """Collects diagnostics, so that one run reports all errors of all documents."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def report(self, code: Code, message: str, span: Span | None = None, *, help: str | None = None) -> None:  # noqa: A002
        """Add one finding."""
        self.diagnostics.append(Diagnostic(code, message, span, help))

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    @property
    def errors(self) -> list[Diagnostic]:
        """Return the findings that make the input invalid."""
        return [d for d in self.diagnostics if d.is_error]
