"""Parser of ztunnel's log of connections, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from eastgate.basics.regexes import regex
from eastgate.dialects.istio.logs.access_log import AUTHORIZATION, PEER, end_at
from eastgate.dialects.istio.logs.codes import CALLERS_SIDE, CUT_OFF, NO_POLICY_DECIDED
from eastgate.dialects.istio.model import GROUP
from eastgate.dialects.istio.provenance import AT_ZTUNNEL
from eastgate.dialects.logs import LoggedCause, LoggedDecision, LoggedEnd, LogLineError
from eastgate.ir import PolicyRef

_LINE = regex(
    r"(?:(?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)\s+)?(?P<level>error|warn|info|debug)\s+access\s+"
    r"(?P<message>connection (?:complete|failed|opened))\s+(?P<fields>.*)"
)
_FIELD = regex(r'(?P<key>[a-z_.]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>\S+))(?:\s+|$)')
_REJECTED: Final = "connection closed due to policy rejection"
_POLICY_CHANGE: Final = "connection closed due to policy change"
_DENIED_BY: Final = "explicitly denied by: "
_NOT_ALLOWED: Final = "allow policies exist, but none allowed"
_STRICT: Final = "istio_converted_static_strict"
_CONVERTED: Final = "converted_peer_authentication_"
_WITHOUT_LAYERS: Final = (
    "by the manifests ztunnel enforces nothing there; if they lack the label istio.io/dataplane-mode, "
    "set istioDataPlane to ambient"
)


def read_ztunnel(line: str) -> LoggedDecision | None:
    """Return the decision of a line, or None if it is not from ztunnel's access log. Raises LogLineError."""
    fields = _json_fields(line) or _text_fields(line)
    if fields is None:
        return None
    if "dst.addr" not in fields:
        raise LogLineError(
            CUT_OFF, "the line begins like one of ztunnel's access log, but it is not complete", "give all of it"
        )
    if fields.get("direction") == "outbound":
        where = fields.get("dst.workload") or fields.get("dst.service") or fields["dst.addr"]
        way_out = f'look at the log of the ztunnel at {where}, for a line with direction="inbound"'
        raise LogLineError(CALLERS_SIDE, "the line is from the caller's ztunnel", way_out)
    return _decision(fields, _cause(fields))


def _text_fields(line: str) -> dict[str, str] | None:
    match = _LINE.search(line)
    if match is None:
        return None
    fields = {"time": match["time"] or "", "message": match["message"]}
    position = 0
    while (pair := _FIELD.match(match["fields"], position)) is not None:
        quoted = pair["quoted"]
        fields[pair["key"]] = pair["plain"] if quoted is None else quoted.replace('\\"', '"').replace("\\\\", "\\")
        position = pair.end()
    return fields


def _json_fields(line: str) -> dict[str, str] | None:
    start = line.find("{")
    if start == -1 or '"access"' not in line:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(line, start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or value.get("scope") != "access" or "message" not in value:
        return None
    return {name: str(each) for name, each in value.items() if isinstance(each, str | int)}


def _cause(fields: Mapping[str, str]) -> LoggedCause:
    error = fields.get("error")
    if error is None:
        return LoggedCause(True, "policies allowed it")
    if error == _POLICY_CHANGE:
        words = "a policy that came later closed the connection"
        return LoggedCause(False, words, kinds=frozenset({AUTHORIZATION, PEER}))
    if error == _REJECTED:
        return LoggedCause(
            False, "a policy, which this version of ztunnel does not name", kinds=frozenset({AUTHORIZATION, PEER})
        )
    reason = error.removeprefix(f"{_REJECTED}: ")
    if reason == _NOT_ALLOWED:
        return LoggedCause(False, "no rule of an ALLOW policy matches", unmatched=True)
    if reason.startswith(_DENIED_BY):
        return _explicit(reason.removeprefix(_DENIED_BY))
    if reason != error:
        return LoggedCause(False, reason)
    raise LogLineError(
        NO_POLICY_DECIDED,
        f"the line reports `{error}`, which is not a decision of a policy",
        "look for a line with `policy rejection`",
    )


def _explicit(name: str) -> LoggedCause:
    """Return the cause of a denial by a policy. The name of a PeerAuthentication is not valid for other policies."""
    namespace, _, policy = name.partition("/")
    if policy == _STRICT:
        return LoggedCause(False, "plaintext, where a PeerAuthentication requires mTLS", kinds=frozenset({PEER}))
    if policy.startswith(_CONVERTED):
        ref = PolicyRef(PEER, namespace, policy.removeprefix(_CONVERTED), GROUP)
        return LoggedCause(False, f"{ref}: plaintext, where it requires mTLS", ref)
    ref = PolicyRef(AUTHORIZATION, namespace, policy, GROUP)
    return LoggedCause(False, str(ref), ref)


def _decision(fields: Mapping[str, str], cause: LoggedCause) -> LoggedDecision:
    caller, called = end_at(fields.get("src.addr")), end_at(fields["dst.addr"])
    tunnel = fields.get("dst.hbone_addr")
    inner = end_at(tunnel)
    port = tunnel.rpartition(":")[2] if tunnel is not None else ""
    return LoggedDecision(
        "ztunnel",
        cause,
        frozenset({AT_ZTUNNEL}),
        caller=LoggedEnd(
            caller.address,
            namespace=fields.get("src.namespace"),
            pod=fields.get("src.workload"),
            identity=fields.get("src.identity"),
        ),
        called=LoggedEnd(
            inner.address or called.address,
            int(port) if port.isdigit() else called.port,
            fields.get("dst.namespace"),
            fields.get("dst.workload"),
            fields.get("dst.service"),
        ),
        time=fields.get("time", ""),
        plaintext="src.identity" not in fields,
        without_layers=_WITHOUT_LAYERS,
    )
