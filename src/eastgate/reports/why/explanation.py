"""An explained decision of a log: what the log says, how it compares with the manifests of today, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from eastgate.authority.decisions import Decision
from eastgate.basics.diagnostics import snippet
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cluster.unread import Handling
from eastgate.ir import Origin
from eastgate.reports.explain import explain

_GREEN, _RED, _YELLOW, _RESET = "\033[1;32m", "\033[1;31m", "\033[1;33m", "\033[0m"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A logged decision compared with the manifests of today. `holds` is None if the log tells too little.

    `is_of_today` is False if the words say why the manifests were not asked.
    """

    holds: bool | None
    words: str
    is_of_today: bool = True


def not_asked(words: str) -> Comparison:
    """Return what replaces a comparison where no policy was asked."""
    return Comparison(None, words, is_of_today=False)


def compare(
    allowed: bool, decision: Decision, *, is_same: bool, unknown: Iterable[str] = (), gone: str = ""
) -> Comparison:
    """Compare the verdict of a log with a decision of today.

    `is_same`: what decided then decides today. `unknown` is what the log leaves out and what could decide; `gone` says
    what became of the policy that decided then.
    """
    if is_same and allowed == decision.allowed:
        return Comparison(True, "the manifests still say so")
    if unknown := sorted(unknown):
        return Comparison(None, f"it depends on what the log does not tell: {', '.join(unknown)}")
    if allowed != decision.allowed:
        was, now = ("allowed", "denied") if allowed else ("denied", "allowed")
        return Comparison(False, f"changed since: it was {was}, and is {now} by the manifests of today{gone}")
    return Comparison(True, f"changed since: the verdict is the same, but another rule decides today{gone}")


def assumed_in(decision: Decision) -> set[str]:
    """Return the attributes that a denial assumes, as the question leaves them out."""
    if decision.allowed:
        return set()
    return {str(attribute) for layer in decision.trace(nearest=0).layers for attribute, _ in layer.assumed}


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explained decision of a log.

    `head` says where and by what it was decided, `line` has the logged line as data. Without a `decision`, the
    manifests cannot be asked the same question. `origins` are texts that the log names (`is_named`) or may mean, as far
    as the decision does not show them itself.
    """

    allowed: bool
    head: str
    line: Mapping[str, object]
    comparison: Comparison
    decision: Decision | None = None
    notes: tuple[str, ...] = ()
    origins: tuple[Origin, ...] = ()
    is_named: bool = False

    def text(self, *, color: bool = False, unread: Handling = Handling.WARN) -> str:
        """Render the logged decision, how it compares with today, and the explanation."""
        return "\n".join(self._lines(color, unread))

    def _lines(self, color: bool, unread: Handling) -> Iterator[str]:
        tone, verdict = (_GREEN, "ALLOWED") if self.allowed else (_RED, "DENIED")
        yield f"the log: {f'{tone}{verdict}{_RESET}' if color else verdict}{printable(self.head)}"
        yield from (printable(f"  {note}") for note in self.notes)
        words = printable(self.comparison.words)
        words = f"{_YELLOW}{words}{_RESET}" if color and self.comparison.holds is False else words
        yield f"  today: {words}" if self.comparison.is_of_today else f"  {words}"
        if self.decision is not None:
            yield ""
            yield explain(self.decision, color=color, unread=unread)
        for origin in self.origins:
            yield ""
            yield printable(f"the log {'names' if self.is_named else 'may mean'} {origin}:")
            yield f"  --> {origin.span}"
            yield from _shown(origin, color)

    def to_json(self, *, unread: Handling = Handling.WARN) -> dict[str, object]:
        """Return the same as plain data."""
        decision, comparison = self.decision, self.comparison
        return {
            "line": dict(self.line),
            "holds": comparison.holds,
            "standing": comparison.words,
            "question": str(decision.question) if decision is not None else None,
            "today": decision.to_json() if decision is not None else None,
            "explanation": explain(decision, unread=unread) if decision is not None else comparison.words,
        }


def _shown(origin: Origin, color: bool) -> Iterator[str]:
    """Yield the text of a rule, part by part."""
    parts = dict.fromkeys((part, str(attribute)) for attribute, part in origin.parts)
    for part, note in parts:
        yield from snippet(part, note=note, color=color)
    if not parts and origin.span is not None:
        yield from snippet(origin.span, color=color)
