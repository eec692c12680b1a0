"""Reads the decisions of proxies from their access logs. Nothing here decides again.

Commands get single lines with any text around them: `find_record` finds the record in a line.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eastgate.authority.auditing import Would
from eastgate.authority.questions import QuestionError
from eastgate.basics.records import dataclass
from eastgate.control.codes import NO_DECISION, NOT_A_LOG_LINE
from eastgate.envoy.plan.decisions import ASK, CLOSED_BY, NO_AUDIT, NO_NAME, NOBODY, end_of

AUTHORIZER = "authorizer"  # the decider, if the authorizer named no rule
NO_ANSWER = "authorizer-without-answer"  # the decider, if an authorizer did not answer
UNREACHABLE = "unreachable"  # the decider, if no application accepted an allowed connection
# Flags of requests that the client or a time limit ended before the end of their answer.
_ENDED_EARLY = {"DC", "DT", "SI"}
_BY_AUTHORIZER = "UAEX"  # the flag of requests that the authorizer denied; other flags with a U are about the upstream
_RECORDS = ("request", "denial", "connection", "unreachable", "handshake", "check")
_DECODER = json.JSONDecoder()
_MAX_SHOWN_CHARS = 60
_MAX_SOURCES = 10_000


@dataclass(frozen=True, slots=True)
class Observation:
    """The decision of a proxy, read from its access log.

    `decision` is the name of the verdict: a status and its decider. `level` is `connection`, `request` or `handshake`;
    a handshake is logged only if it failed. `workload` is a workload, or a gateway as questions name it. Only a gateway
    has a `destination`, where its routes lead the request, and reads MCP messages. `asked`: the authorizer decided.
    """

    level: str
    workload: str
    port: int
    peer: str | None
    source: str | None
    allowed: bool
    decision: str
    time: str = ""
    status: int = 0
    method: str | None = None
    host: str | None = None
    path: str | None = None
    audit: tuple[str, ...] = ()
    detail: str | None = None
    destination: str | None = None
    mcp_method: str | None = None
    tool: str | None = None
    asked: bool = False

    @property
    def who(self) -> str:
        """Return the name of the decider, without the status."""
        return self.decision.partition(":")[2]


@dataclass(frozen=True, slots=True)
class WouldBe:
    """The decision that audited policies would have made, as a proxy names it.

    `changes`: the request would get another verdict. `policies` are the audited policies that cause it, as
    `policy_name` names them. `rule` is the rule of the first.
    """

    verdict: Would
    policies: tuple[str, ...]
    rule: int | None
    changes: bool


def would_be(observation: Observation) -> Iterator[WouldBe]:
    """Yield the decisions that audited policies would have made, if they differ from the decision itself."""
    for name in observation.audit:
        mark, _, who = name.partition(":")
        policy, rule = rule_of(name)
        policies: tuple[str, ...] = (policy,) if policy is not None else ()
        if who.startswith(CLOSED_BY):
            policies = tuple(who.removeprefix(CLOSED_BY).split("+"))
        if who in (NO_AUDIT.who, ASK.who) or name == observation.decision or _is_of_proxy(observation):
            continue
        if mark in (Would.ASK, Would.MATCH):
            yield WouldBe(Would(mark), policies, rule, changes=False)
            continue
        allowed = mark == "200"
        changes = allowed is not observation.allowed
        if changes and not policies:  # the current decider: a default in audit mode allows the request
            today, _ = rule_of(observation.decision)
            policies = (today,) if today is not None else ()
        if changes or policies:
            yield WouldBe(Would.ALLOW if allowed else Would.DENY, policies, rule, changes)


def _is_of_proxy(observation: Observation) -> bool:
    """Return whether the proxy refused a request by itself, independently of policies."""
    return not observation.allowed and (observation.who.startswith("proxy/") or observation.decision.startswith("400:"))


class Repeats:
    """Recognizes records of connections whose requests were reported, so that each call is reported once."""

    def __init__(self) -> None:
        self._sources: OrderedDict[str, None] = OrderedDict()

    def is_repeat(self, observation: Observation) -> bool:
        """Return whether this is the connection record of a call whose requests were already reported."""
        if observation.source is None:
            return False
        if observation.level == "request":
            self._sources[observation.source] = None
            while len(self._sources) > _MAX_SOURCES:
                self._sources.popitem(last=False)
            return False
        return (
            observation.level == "connection"
            and observation.allowed
            and self._sources.pop(observation.source, 0) is None
        )


def rule_of(decision: str) -> tuple[str | None, int | None]:
    """Return the policy and the rule in the name of a verdict; both are None if no rule decided."""
    _, who = end_of(decision.partition(":")[2])
    policy, separator, index = who.rpartition("#")
    return (policy, int(index)) if separator and index.isdigit() else (None, None)


def read_record(record: Mapping[str, Any]) -> Observation | None:
    """Return the decision in a record, or None if Eastgate did not write the record or it holds no decision."""
    match record.get("eastgate"):
        case "request":
            return _request(record)
        case "denial":
            return _connection(record, allowed=False)
        case "connection":
            decision = record.get("decision")
            return _connection(record, allowed=True) if decision and str(decision).startswith("200:") else None
        case kind if kind == UNREACHABLE:
            decided = {**record, "decision": f"200:{UNREACHABLE}"}
            return replace(_connection(decided, allowed=True), detail=str(record.get("flags") or ""))
        case "handshake" if record.get("peer") is None:  # with a peer, the caller sent no TLS, and no handshake failed
            return Observation(
                "handshake",
                str(record["workload"]),
                int(record["port"]),
                None,
                record.get("source"),
                False,
                "0:handshake",
                time=str(record.get("time", "")),
                detail=record.get("reason"),
            )
    return None


def _connection(record: Mapping[str, Any], *, allowed: bool) -> Observation:
    return Observation(
        "connection",
        str(record["workload"]),
        int(record["port"]),
        _peer(record),
        record.get("source"),
        allowed,
        str(record.get("decision")),
        time=str(record.get("time", "")),
        audit=_audit(record),
    )


def _request(record: Mapping[str, Any]) -> Observation:
    details = str(record.get("details") or "")
    decision = str(record.get("decision") or "")
    flags = str(record.get("flags") or "")
    reached = details.startswith("via_upstream") or _reached_upstream(flags.split(",")) or _is_redirect(record, details)
    asked = decision == ASK.name
    if asked:
        decision = str(record.get("authorizer") or "") or _unnamed_decision(record, details, reached=reached)
    allowed = decision.startswith("200:") and (reached or not _ENDED_EARLY.isdisjoint(flags.split(",")))
    if not allowed and (not decision or decision.startswith("200:")):
        decision = f"{record.get('status') or 0}:proxy/{details or 'closed'}"  # no policy refused it
    return Observation(
        "request",
        str(record["workload"]),
        int(record["port"]),
        _peer(record),
        record.get("source"),
        allowed,
        decision,
        time=str(record.get("time", "")),
        status=int(record.get("status") or 0),
        method=record.get("method"),
        host=record.get("originalHost") or record.get("host"),
        path=record.get("originalPath") or record.get("path"),
        audit=_audit(record),
        detail=details or None,
        destination=record.get("destination"),
        mcp_method=record.get("mcpMethod"),
        tool=record.get("tool"),
        asked=asked,
    )


def _reached_upstream(flags: Sequence[str]) -> bool:
    """Return whether the proxy passed a request to the application, which did not answer."""
    return _BY_AUTHORIZER not in flags and any("U" in flag for flag in flags)


def _is_redirect(record: Mapping[str, Any], details: str) -> bool:
    """Return whether a route of a gateway answered with a redirect, as configured."""
    return details == "direct_response" and 300 <= int(record.get("status") or 0) < 400


def _unnamed_decision(record: Mapping[str, Any], details: str, *, reached: bool) -> str:
    """Return the decision of an authorizer that named no rule; empty if the authorizer may not have decided."""
    if reached:
        return f"200:{AUTHORIZER}"
    if details == "ext_authz_denied":
        status = int(record.get("status") or 0)
        return f"{status if status >= 400 else 403}:{AUTHORIZER}"
    return f"{record.get('status') or 503}:{NO_ANSWER}" if details == "ext_authz_error" else ""


def _peer(record: Mapping[str, Any]) -> str | None:
    """Return the identity of a caller, or `none`. Without an identity in the certificate, the token decides.

    A gateway also accepts TLS from clients without a certificate.
    """
    peer = record.get("peer")
    return record.get("identity") or NOBODY if peer in (NOBODY, NO_NAME) else peer


def _audit(record: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(record["audit"]),) if record.get("audit") else ()


def find_record(line: str) -> Mapping[str, Any] | None:
    """Return the first record of Eastgate in a line, or None. Other programs put text or objects around a record."""
    start = line.find("{") if "eastgate" in line or "decided" in line else -1
    while start != -1:
        try:
            value, _ = _DECODER.raw_decode(line, start)
        except (ValueError, RecursionError):
            value = None
        for candidate in _objects(value):
            if candidate.get("eastgate") in _RECORDS or candidate.get("event") == "decided":
                return candidate
        start = line.find("{", start + 1)
    return None


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield an object, and the records in its text values: `docker logs` puts the line into `log`, Loki into `line`."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            if isinstance(inner, str) and "{" in inner and (record := find_record(inner)) is not None:
                yield record


def read_line(record: Mapping[str, Any] | None, line: str) -> Observation:
    """Return the decision in a line. Raises QuestionError if the line has none."""
    if record is None:
        text = line.strip() if len(line.strip()) <= _MAX_SHOWN_CHARS else line.strip()[: _MAX_SHOWN_CHARS - 1] + "…"
        way_out = (
            "the line is cut off: give the whole line"
            if '"eastgate"' in line
            else 'give a line that a proxy wrote: {"eastgate":"request",…} or one of Istio\'s, or pipe its log into '
            "`eastgate why -`"
        )
        raise QuestionError(NOT_A_LOG_LINE, f"`{text}` is not a line of a proxy's log", way_out)
    try:
        observation = _read_event(record) if "event" in record else read_record(record)
    except (KeyError, TypeError, ValueError) as error:
        raise QuestionError(NOT_A_LOG_LINE, f"the line is incomplete: {error}", "give the whole line") from None
    if observation is None:
        raise QuestionError(NO_DECISION, _describe_undecided(record), _suggest(record))
    return observation


def _read_event(record: Mapping[str, Any]) -> Observation:
    """Read a `decided` event of `up -o json`, which was made from the record of a proxy."""
    return Observation(
        str(record["level"]),
        str(record["to"]),
        int(record["port"]),
        record["peer"],
        record["source"],
        record["verdict"] == "allow",
        str(record["decision"]),
        time=str(record["time"]),
        status=int(record["status"]),
        method=record["method"],
        host=record["host"],
        path=record["path"],
        audit=tuple(record["audit"]),
        detail=record["detail"],
        destination=record.get("destination"),
        mcp_method=record.get("mcpMethod"),
        tool=record.get("tool"),
        asked=bool(record.get("asked")),
    )


def _describe_undecided(record: Mapping[str, Any]) -> str:
    what = "the end of a connection" if record["eastgate"] == "connection" else "a caller that does not use TLS"
    return f"the line reports {what}, and no decision"


def _suggest(record: Mapping[str, Any]) -> str:
    source = record.get("source")
    return f"find another line with {json.dumps({'source': source})[1:-1]}" if source else "find an earlier line"
