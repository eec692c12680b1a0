"""A finding: a diagnostic that also knows what it is about, and a request that shows it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from eastgate.diagnostics import Code, Diagnostic, Severity, render
from eastgate.places import Span
from eastgate.printable import printable
from eastgate.questions import Question

__all__ = ["Finding", "command"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that lint found.

    `subjects` are the keys of what it is about: a policy or an object as `Kind/namespace/name`, a workload by its key.
    `example` is a command line whose answer shows it.
    """

    code: Code
    message: str
    span: Span | None = None
    help: str | None = None
    subjects: tuple[str, ...] = ()
    example: str | None = None

    @classmethod
    def of(cls, diagnostic: Diagnostic, subjects: tuple[str, ...] = ()) -> Finding:
        """What was said while reading, as a finding."""
        return cls(diagnostic.code, diagnostic.message, diagnostic.span, diagnostic.help, subjects)

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.code.severity

    @property
    def place(self) -> tuple[str, int, int, str, str]:
        """What findings are sorted by."""
        span = self.span
        where = (span.file, span.line, span.column) if span is not None else ("", 0, 0)
        return (*where, self.code.id, self.message)

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        told = Diagnostic(self.code, self.message, self.span, self.help).to_json()
        return {**told, "title": self.code.title, "subjects": list(self.subjects), "example": self.example}

    def render(self, *, color: bool = False) -> str:
        """As text."""
        told = render(Diagnostic(self.code, self.message, self.span, self.help), color=color)
        if self.example is None:
            return told
        gutter = " " * (len(str(self.span.line)) if self.span is not None else 1)
        bar = "\033[34m=\033[0m" if color else "="
        return f"{told}\n{gutter} {bar} example: {printable(self.example)}"


def command(question: Question) -> str:
    """The command line that asks a question, but for the manifests."""
    return shlex.join(["eastgate", "check", *question.arguments])
