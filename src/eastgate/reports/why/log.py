"""Reads a log of decisions of any proxies, and explains each line by the present manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any, TypeAlias

from eastgate.authority.authority import Authority
from eastgate.authority.questions import BAD_ATTRIBUTE, Question, QuestionError
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation, Repeats, find_record, read_line
from eastgate.control.codes import NOT_A_LOG_LINE
from eastgate.dialects import read_log_line
from eastgate.dialects.logs import LoggedDecision, LogLineError
from eastgate.reports.why.ends import Explanation, GivenEnds, assumed_in, compare, not_asked
from eastgate.reports.why.others import explain_logged
from eastgate.reports.why.proxies import explain_observation
from eastgate.settings import Settings

# Explains a decision in the log of `eastgate authorizer` by the present manifests.


def explain_record(record: Mapping[str, Any], authority: Authority) -> Explanation:
    """Explain a record of the log. Raises QuestionError if it names an object that no manifest declares."""
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
    """Return the question of a check. Headers and queries are unknown, because they are not in the log."""

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


LoggedLine: TypeAlias = "Observation | LoggedDecision | Mapping[str, Any]"
"""A decision of Eastgate's proxies, of other proxies, or of `eastgate authorizer`."""

_MESHES = IPv4Network("127.64.0.0/10")
_SELF_ACCESS_RULE = "default/localhost"  # the name in proxies of the rule that lets a workload call itself


@dataclass(frozen=True, slots=True)
class Log:
    """The decisions in lines of a log, each with its line. `aside` is the number of the other lines.

    `problems` are the reasons why lines have no decision. `is_foreign`: the lines are from other proxies.
    """

    decisions: Sequence[tuple[str, LoggedLine]]
    aside: int = 0
    problems: Sequence[Diagnostic] = ()
    is_foreign: bool = False

    @property
    def observations(self) -> list[Observation]:
        """Return the decisions of Eastgate's proxies."""
        return [logged for _, logged in self.decisions if isinstance(logged, Observation)]

    @property
    def is_local(self) -> bool:
        """Return whether a local mesh wrote it. Its lines do not name the machines of its workloads."""
        return any((seen.source or "").startswith("127.") for seen in self.observations)

    def settings(self, settings: Settings) -> Settings:
        """Return the settings of the proxies. A caller from a network of local meshes is a workload."""
        if self.is_foreign:
            return settings
        return replace(settings.enforced(), local_networks=(_MESHES,) if self.is_local else ())

    def locate(self, authority: Authority) -> None:
        """Add the addresses of a local mesh to an Authority: a caller named localhost is the workload itself."""
        if self.is_local:
            itself = (
                seen for seen in self.observations if seen.who.startswith(_SELF_ACCESS_RULE) and seen.source is not None
            )
            authority.assign_addresses({seen.workload: str(seen.source).rpartition(":")[0] for seen in itself})


def read_log(text: str, check: str | None = None) -> Log:
    """Read lines; with `check`, only the decision of `eastgate authorizer` with that id.

    If a log has lines of the authorizer, other lines are ignored. A client controls much of the content of a line, so
    lines of other proxies count only if there is no line of Eastgate's.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    records = [(line, find_record(line)) for line in lines]
    checks = [(line, record) for line, record in records if record is not None and record.get("eastgate") == "check"]
    if check is not None:
        checks = [(line, record) for line, record in checks if record.get("id") == check]
        if not checks:
            problem = _no_line(f"no line has the decision `{check}`", "pipe the log of `eastgate authorizer` into it")
            return Log((), problems=[problem])
    if checks:
        return Log(checks)
    if all(record is None for _, record in records):
        log = _read_foreign(lines)
        if log.decisions or log.problems:
            return log
    return _read_own(records)


def _read_own(records: Sequence[tuple[str, Mapping[str, Any] | None]]) -> Log:
    decisions, problems, repeats = [], [], Repeats()
    for line, record in records:
        try:
            seen = read_line(record, line)
        except QuestionError as error:
            problems.append(error.diagnostic)
            continue
        if not repeats.is_repeat(seen):
            decisions.append((line, seen))
    if not records:
        problems.append(
            _no_line("there is no line to explain", "give a line, or pipe a proxy's log into `eastgate why -`")
        )
    return Log(decisions, len(records) - len(decisions), problems)


def _no_line(message: str, way_out: str) -> Diagnostic:
    return Diagnostic(NOT_A_LOG_LINE, message, None, way_out)


def _read_foreign(lines: Sequence[str]) -> Log:
    decisions, problems = [], []
    for line in lines:
        try:
            logged = read_log_line(line)
        except LogLineError as error:
            problems.append(error.diagnostic)
        else:
            decisions += [(line, logged)] if logged is not None else []
    return Log(decisions, len(lines) - len(decisions), problems, is_foreign=True)


def explain_line(logged: LoggedLine, authority: Authority, given: GivenEnds) -> Explanation:
    """Explain a logged decision. Raises QuestionError if it names an object that no manifest declares."""
    match logged:
        case Observation():
            return explain_observation(logged, authority)
        case LoggedDecision():
            return explain_logged(logged, authority, given)
        case _:
            return explain_record(logged, authority)
