"""Explains a line of the authorizer's log by the manifests of today, and tells whether they still decide so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import BAD_ATTRIBUTE, Question, QuestionError
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass

Explain = Callable[[Decision, bool], str]
"""An explanation of a decision as text; in color where the second is true."""

_GREEN, _RED, _RESET = "\033[1;32m", "\033[1;31m", "\033[0m"


@dataclass(frozen=True, slots=True)
class CheckExplanation:
    """An explained decision of the authorizer. `holds` is None where the log tells too little.

    Without a `decision`, no policy was evaluated.
    """

    record: Mapping[str, Any]
    decision: Decision | None
    holds: bool | None
    words: str

    def text(self, explain: Explain, *, color: bool = False) -> str:
        """Render the logged decision, how it compares with today, and the explanation."""
        record = self.record
        allowed = record.get("verdict") == "allow"
        verdict = "ALLOWED" if allowed else "DENIED"
        head = f"{_GREEN if allowed else _RED}{verdict}{_RESET}" if color else verdict
        rule = f" rule {record['rule']}" if record.get("rule") is not None else ""
        by = f"{record['policy']}{rule}" if record.get("policy") else record.get("reason") or "a default"
        at = printable(f" at {record.get('time')}, decision {record.get('id')}: {by}")
        if self.decision is None:
            return f"the log: {head}{at}\n  {printable(self.words)}"
        return f"the log: {head}{at}\n  today: {printable(self.words)}\n\n{explain(self.decision, color)}"

    def to_json(self, explain: Explain) -> dict[str, object]:
        """Return the same as plain data."""
        decision = self.decision
        return {
            "line": dict(self.record),
            "holds": self.holds,
            "standing": self.words,
            "question": str(decision.question) if decision is not None else None,
            "today": decision.to_json() if decision is not None else None,
            "explanation": explain(decision, False) if decision is not None else self.words,
        }


def explain_record(record: Mapping[str, Any], authority: Authority) -> CheckExplanation:
    """Explain a record of the log. Raises QuestionError where it is about something that no manifest declares."""
    if record.get("to") is None:
        words = "no policy was asked" + (f": {record['reason']}" if record.get("reason") else "")
        return CheckExplanation(record, None, None, words)
    decision = authority.enforced(_question_of(record, authority.settings.namespace))
    allowed = record.get("verdict") == "allow"
    same = (decision.policy, decision.rule) == (record.get("policy"), record.get("rule"))
    if decision.allowed == allowed:
        words = "the manifests still say so" if same else "the verdict is the same, but another rule decides today"
        return CheckExplanation(record, decision, True, words)
    unknown = sorted({str(a) for layer in decision.trace(nearest=0).layers for a, _ in layer.assumed})
    if unknown and not decision.allowed:
        return CheckExplanation(
            record, decision, None, f"it depends on what the log does not tell: {', '.join(unknown)}"
        )
    was, now = ("allowed", "denied") if allowed else ("denied", "allowed")
    return CheckExplanation(
        record, decision, False, f"changed since: it was {was}, and is {now} by the manifests of today"
    )


def _question_of(record: Mapping[str, Any], namespace: str) -> Question:
    """Return the question of a check. Headers and queries are not in the log, so they are unknown."""

    def text(name: str) -> str | None:
        value = record.get(name)
        if value is not None and not isinstance(value, str):
            raise QuestionError(BAD_ATTRIBUTE, f"the line has no text as `{name}`", "give all of the line")
        return value

    port, asked = record.get("port"), record.get("asked")
    return Question.of(
        text("from") or "",
        text("to") or "",
        namespace=namespace,
        port=port if isinstance(port, int) else None,
        method=text("method"),
        path=text("path"),
        host=text("host"),
        source_ip=text("sourceIp"),
        mcp_method=text("mcpMethod"),
        tool=text("tool"),
        external_auth={str(name): str(answer) for name, answer in asked.items()} if isinstance(asked, dict) else {},
    )
