"""A finding: a diagnostic with its subjects, and a request that shows it."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code, Diagnostic, Severity, render
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of lint.

    `subjects` are the keys of its subjects: a policy or an object as `Kind/namespace/name`, a workload by its key.
    `example` is a command line whose output shows the finding. `about` and `cause` are those of a diagnostic.
    `environments` are those with the finding, if it is in some of several.
    """

    code: Code
    message: str
    span: Span | None = None
    help: str | None = None
    subjects: tuple[str, ...] = ()
    example: str | None = None
    cause: str | None = None
    environments: tuple[str, ...] = ()
    about: str | None = None

    def __repr__(self) -> str:
        return brief(self, f"{self.code.id} {self.message}")

    @classmethod
    def of(cls, diagnostic: Diagnostic, subjects: tuple[str, ...] = ()) -> Finding:
        """Return the finding for a diagnostic of reading."""
        found = diagnostic
        return cls(found.code, found.message, found.span, found.help, subjects, cause=found.cause, about=found.about)

    @property
    def severity(self) -> Severity:
        """Return the severity of its code."""
        return self.code.severity

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Return the key that findings are sorted by: file, line and column, then the code and the message."""
        span = self.span
        where = (span.file, span.line, span.column) if span is not None else ("", 0, 0)
        return (*where, self.code.id, self.message)

    def to_json(self) -> dict[str, object]:
        """Return the finding as plain data."""
        plain = Diagnostic(self.code, self.message, self.span, self.help).to_json()
        return {**plain, "title": self.code.title, "subjects": list(self.subjects), "example": self.example}

    def render(self, *, also: str | None = None, where: str | None = None, color: bool = False) -> str:
        """Return the finding as text. `also` lists other places with the same finding, and `where` its environments."""
        text = render(Diagnostic(self.code, self.message, self.span, self.help), color=color)
        gutter = " " * (len(str(self.span.line)) if self.span is not None else 1)
        bar = "\033[34m=\033[0m" if color else "="
        more = (("also", also), ("in", where), ("example", self.example))
        return "\n".join([text, *(f"{gutter} {bar} {name}: {printable(value)}" for name, value in more if value)])
