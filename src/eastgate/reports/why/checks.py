"""Explains a decision in the log of `eastgate authorizer` by the manifests of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eastgate.authority.authority import Authority
from eastgate.authority.questions import BAD_ATTRIBUTE, Question, QuestionError
from eastgate.reports.why.explanation import Explanation, assumed_in, compare, not_asked


def explain_record(record: Mapping[str, Any], authority: Authority) -> Explanation:
    """Explain a record of the log. Raises QuestionError where it is about something that no manifest declares."""
    allowed = record.get("verdict") == "allow"
    rule = f" rule {record['rule']}" if record.get("rule") is not None else ""
    by = f"{record['policy']}{rule}" if record.get("policy") else record.get("reason") or "a default"
    head = f" at {record.get('time')}, decision {record.get('id')}: {by}"
    if record.get("to") is None:
        words = "no policy was asked" + (f": {record['reason']}" if record.get("reason") else "")
        return Explanation(allowed, head, record, not_asked(words))
    decision = authority.enforced(_question_of(record, authority.settings.namespace))
    is_same = (decision.policy, decision.rule) == (record.get("policy"), record.get("rule"))
    unknown = assumed_in(decision) if decision.allowed != allowed else ()
    return Explanation(allowed, head, record, compare(allowed, decision, is_same=is_same, unknown=unknown), decision)


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
