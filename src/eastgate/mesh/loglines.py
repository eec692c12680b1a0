"""The lines of a proxy's log, found in whatever text they come in, and the questions that they answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from eastgate.authority import Authority
from eastgate.mesh.codes import NO_DECISION, NOT_A_LOG_LINE
from eastgate.mesh.deciders import caller_name
from eastgate.mesh.records import Observed, observe
from eastgate.questions import NOT_DECLARED, Question, QuestionError

__all__ = ["observed", "question_of", "record_in"]

_RECORDS = ("request", "denial", "connection", "unreachable", "handshake")
_DECODER = json.JSONDecoder()
_SHOWN = 60


def record_in(line: str) -> Mapping[str, Any] | None:
    """The first object of ours in a line; None where there is none. Others put their words, or objects, around it."""
    start = line.find("{")
    while start != -1:
        try:
            value, _ = _DECODER.raw_decode(line, start)
        except (ValueError, RecursionError):
            value = None
        for found in _objects(value):
            if found.get("eastgate") in _RECORDS or found.get("event") == "decided":
                return found
        start = line.find("{", start + 1)
    return None


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    """An object, and those that are text in it: `docker logs` has the line as `log`, Loki as `line`."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            if isinstance(inner, str) and "{" in inner and (found := record_in(inner)) is not None:
                yield found


def observed(record: Mapping[str, Any] | None, line: str) -> Observed:
    """What the record in a line tells. Raises QuestionError where that is nothing."""
    if record is None:
        text = line.strip() if len(line.strip()) <= _SHOWN else line.strip()[: _SHOWN - 1] + "…"
        way_out = (
            "the line is cut off: give all of it"
            if '"eastgate"' in line
            else 'give a line that a proxy wrote: {"eastgate":"request",…}, or pipe its log into `eastgate why -`'
        )
        raise QuestionError(NOT_A_LOG_LINE, f"`{text}` is no line of a proxy's log", way_out)
    try:
        seen = _of_event(record) if "event" in record else observe(record)
    except (KeyError, TypeError, ValueError) as error:
        raise QuestionError(NOT_A_LOG_LINE, f"the line lacks something: {error}", "give all of the line") from None
    if seen is None:
        raise QuestionError(NO_DECISION, _undecided(record), _instead(record))
    return seen


def _of_event(record: Mapping[str, Any]) -> Observed:
    """The same from `up -o json`, which has read the proxy's line already."""
    return Observed(
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
    )


def _undecided(record: Mapping[str, Any]) -> str:
    what = "a connection that ended" if record["eastgate"] == "connection" else "a caller that does not speak TLS"
    return f"the line tells of {what}, and of no decision"


def _instead(record: Mapping[str, Any]) -> str:
    source = record.get("source")
    return f"look for another line with {json.dumps({'source': source})[1:-1]}" if source else "look for one before it"


def question_of(seen: Observed, authority: Authority) -> Question:
    """The question that a proxy has answered. Headers are not in its log, so that they are unknown."""
    workload = authority.world.workloads.get(seen.workload)
    if workload is None:
        raise QuestionError(
            NOT_DECLARED, f"no manifest declares the workload {seen.workload}", "give the manifests of that mesh"
        )
    address = seen.source.rpartition(":")[0].strip("[]") if seen.source else None
    return Question(
        source=caller_name(seen.peer, authority.settings),
        to=f"pod:{workload.namespace}/{workload.name}",
        port=seen.port,
        method=seen.method,
        path=seen.path,
        host=seen.host,
        source_ip=address or None,
    )
