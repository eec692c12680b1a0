"""What a proxy logged, as what was decided. The proxies' own words are the source: nothing here decides again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["UNREACHABLE", "Observed", "observe", "rule_of"]

UNREACHABLE = "unreachable"  # who decided, of a connection that was let in and that no application took


_PASSED_ON = {
    "DC",
    "DT",
    "SI",
}  # flags of requests that ended before their answer did: by the client, or by a time limit


@dataclass(frozen=True, slots=True)
class Observed:
    """One decision of one proxy. `decision` is the name of the verdict that counted: a status and who decided.

    `level`: a connection, a request, or a handshake that came to nothing.
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

    @property
    def who(self) -> str:
        """Who decided, without the status."""
        return self.decision.partition(":")[2]


def rule_of(decision: str) -> tuple[str | None, int | None]:
    """Policy and rule that a verdict is named after; both None where no rule decided."""
    policy, found, index = decision.partition(":")[2].rpartition("#")
    return (policy, int(index)) if found and index.isdigit() else (None, None)


def observe(record: Mapping[str, Any]) -> Observed | None:
    """What a line of a proxy's log tells; None where it is none of ours, or tells of nothing that was decided."""
    match record.get("eastgate"):
        case "request":
            return _request(record)
        case "denial":
            return _connection(record, allowed=False)
        case "connection":
            decision = record.get("decision")
            return _connection(record, allowed=True) if decision and str(decision).startswith("200:") else None
        case found if found == UNREACHABLE:
            told = {**record, "decision": f"200:{UNREACHABLE}"}
            return replace(_connection(told, allowed=True), detail=str(record.get("flags") or ""))
        case "handshake" if record.get("peer") is None:  # a caller without TLS is somebody: nobody
            return Observed(
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


def _connection(record: Mapping[str, Any], *, allowed: bool) -> Observed:
    return Observed(
        "connection",
        str(record["workload"]),
        int(record["port"]),
        record.get("peer"),
        record.get("source"),
        allowed,
        str(record.get("decision")),
        time=str(record.get("time", "")),
        audit=_audit(record),
    )


def _request(record: Mapping[str, Any]) -> Observed:
    details = str(record.get("details") or "")
    decision = str(record.get("decision") or "")
    flags = str(record.get("flags") or "")
    reached = details.startswith("via_upstream") or "U" in flags or not _PASSED_ON.isdisjoint(flags.split(","))
    allowed = reached and decision.startswith("200:")
    if not allowed and (not decision or decision.startswith("200:")):
        decision = f"{record.get('status') or 0}:proxy/{details or 'closed'}"  # it is no policy that refused it
    return Observed(
        "request",
        str(record["workload"]),
        int(record["port"]),
        record.get("peer"),
        record.get("source"),
        allowed,
        decision,
        time=str(record.get("time", "")),
        status=int(record.get("status") or 0),
        method=record.get("method"),
        host=record.get("host"),
        path=record.get("path"),
        audit=_audit(record),
        detail=details or None,
    )


def _audit(record: Mapping[str, Any]) -> tuple[str, ...]:
    return (str(record["audit"]),) if record.get("audit") else ()
