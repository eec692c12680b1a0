"""Parser of the access log of Istio's Envoys in Istio's two default formats: text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.istio.logs.codes import CALLERS_SIDE, CUT_OFF, NO_POLICY_DECIDED
from eastgate.dialects.istio.model import GROUP
from eastgate.dialects.istio.provenance import AT_GATEWAY, AT_SIDECAR, AT_WAYPOINT
from eastgate.dialects.logs import LoggedCause, LoggedDecision, LoggedEnd, LogLineError
from eastgate.ir import Placement, PolicyRef

# Parsing of Envoy's response details: they name the policy that denied, or say that no policy did.
#
# `RESPONSE_CODE_DETAILS` are those of a request, `CONNECTION_TERMINATION_DETAILS` those of a connection.


AUTHORIZATION: Final = "AuthorizationPolicy"
REQUEST: Final = "RequestAuthentication"
PEER: Final = "PeerAuthentication"

# istio-ext-authz-PROVIDER-ns[NAMESPACE]-policy[NAME]-rule[INDEX]-deny-due-to-bad-CUSTOM-action
_NAME = regex(
    r"(?:istio-ext-authz-(?:(?P<provider>[^\[\]]+?)-)?)?"
    r"ns\[(?P<namespace>[a-z0-9-]{1,63})\]-policy\[(?P<name>[a-z0-9.-]{1,253})\]-rule\[(?P<rule>[0-9]{1,4})\]"
    r"(?P<bad>-deny-due-to-bad-CUSTOM-action)?"
)
_RBAC = regex(r"rbac_access_denied_matched_policy\[(?P<name>.*)\]")
_TOKEN = regex(r"jwt_authn_access_denied\{(?P<why>.*)\}")
_NO_RULE: Final = "none"
_TOKENS: Final = {
    "Jwt_is_missing": "the request has no token, but one is required",
    "Jwt_is_expired": "the token has expired",
    "Jwt_not_yet_valid": "the token is not valid yet (`nbf`)",
    "Jwt_issuer_is_not_configured": "no rule has the issuer of the token",
    "Jwt_verification_fails": "no key of the issuer verifies the token's signature",
    "Audiences_in_Jwt_are_not_allowed": "the token is for other audiences",
    "Jwks_remote_fetch_is_failed": "the keys of the issuer could not be fetched",
    "Jwks_doesn't_have_key_to_match_kid_or_alg_from_Jwt": "the issuer has no key with the token's `kid` or `alg`",
}
_PASSED: Final = frozenset(
    {"cluster_not_found", "direct_response", "no_healthy_upstream", "response_timeout", "route_not_found"}
)


def cause_of(details: str, termination: str, flags: str) -> LoggedCause | None:
    """Return the verdict on a request or connection, or None if these fields contain none.

    Policies are evaluated before the router. So if the router reports about the upstream, the request was allowed.
    """
    for text in (details, termination):
        if denied := _RBAC.fullmatch(text):
            return cause_of_name(denied["name"])
        if refused := _TOKEN.fullmatch(text):
            return _refused_token(refused["why"])
    match details:
        case "ext_authz_denied":
            words = "the external authorizer of a CUSTOM policy denied it"
            return LoggedCause(False, words, kinds=frozenset({AUTHORIZATION}), external="deny")
        case "ext_authz_error":
            words = "the external authorizer of a CUSTOM policy could not be reached"
            return LoggedCause(False, words, kinds=frozenset({AUTHORIZATION}), external="error")
        case "filter_chain_not_found":
            words = "plaintext where mTLS is required, or TLS that is not the mesh's"
            return LoggedCause(False, words, kinds=frozenset({PEER}))
    reached = details.startswith(("via_upstream", "upstream_")) or details in _PASSED
    if reached or (details == termination == "-" and _is_upstream(flags)):
        return LoggedCause(True, "policies allowed it", external="allow")
    return None


def _is_upstream(flags: str) -> bool:
    """Return whether a connection without details ended normally, or at the application."""
    return flags == "-" or any(flag.startswith("U") and flag != "UAEX" for flag in flags.split(","))


def cause_of_name(name: str) -> LoggedCause:
    """Return the cause of a denial by the name of the RBAC policy that matched."""
    if name == _NO_RULE:
        return LoggedCause(False, "no rule of an ALLOW policy matches", unmatched=True)
    match = _NAME.fullmatch(name)
    if match is None:
        return LoggedCause(False, f"the RBAC policy `{name}`, which is of no AuthorizationPolicy")
    ref = PolicyRef(AUTHORIZATION, match["namespace"], match["name"], GROUP)
    words = f"{ref} rule {match['rule']}"
    if match["bad"]:
        provider = f" `{match['provider']}`" if match["provider"] else ""
        words += f": its provider{provider} is not valid"
    return LoggedCause(False, words, ref, int(match["rule"]))


def _refused_token(why: str) -> LoggedCause:
    words = _TOKENS.get(why, why.replace("_", " "))
    return LoggedCause(False, f"the token was refused: {words}", kinds=frozenset({REQUEST}), hidden=True)


_ABSENT: Final = "-"
_PREFIX = regex(r"\[pod/(?P<pod>[a-z0-9.-]+)/istio-proxy\] ")  # kubectl logs --prefix
_HEAD = regex(
    r'\[(?P<start_time>[0-9TZ:.+-]{19,40})\] "(?P<method>\S+) (?P<path>\S+) (?P<protocol>\S+)" '
    r"(?P<response_code>[0-9]{1,3}) "
    r"(?P<response_flags>\S+) (?P<response_code_details>[^\s0-9]\S*) (?P<connection_termination_details>[^\s0-9]\S*) "
    r'"[^"]*" (?P<bytes_received>[0-9]+) '
)
_QUOTED = regex(r'"[^"\s]*"')
_ADDRESS = regex(r"-|\S+:[0-9]{1,5}|envoy://\S*")
_TAIL: Final = (
    "request_id",
    "authority",
    "upstream_host",
    "upstream_cluster",
    "upstream_local_address",
    "downstream_local_address",
    "downstream_remote_address",
    "requested_server_name",
    "route_name",
)
_FORMAT_WITHOUT_DETAILS = regex(r'\[[0-9TZ:.+-]{19,40}\] "\S+ \S+ \S+" [0-9]{1,3} \S+ [0-9]+ [0-9]+ ')
_LINE_START = regex(r'\[[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z\] "')
_CERTIFICATES = regex(r'(?:By|Hash)=(?:"[^"]*"|[^\s"])+')
_SNI = regex(r"outbound_\.(?P<port>[0-9]{1,5})_\.[^_]*_\.(?P<host>.+)")
_KEYS: Final = frozenset({"response_code_details", "connection_termination_details"})
_DECODER: Final = json.JSONDecoder()
_MAX_OBJECTS: Final = 16  # JSON objects in one line; clients control much of a line


@dataclass(frozen=True, slots=True)
class _Cluster:
    """The name of an upstream cluster: the destination of its requests, and the port."""

    direction: str
    port: int | None = None
    host: str | None = None

    @classmethod
    def of(cls, name: str) -> _Cluster:
        direction, *rest = name.split("|")
        port = rest[0] if rest and rest[0].isdigit() else None
        return cls(direction, int(port) if port is not None else None, (rest[2] or None) if len(rest) == 3 else None)


def read_access_log(line: str) -> LoggedDecision | None:
    """Return the decision of a line, or None if it has neither format. Raises LogLineError."""
    fields = _text_fields(line) or _json_fields(line)
    if fields is None:
        if _LINE_START.search(line) is not None:
            _refuse_partial(line)
        return None
    prefix = _PREFIX.search(line)
    return _decision(fields, prefix["pod"] if prefix is not None else None)


def _refuse_partial(line: str) -> None:
    if _FORMAT_WITHOUT_DETAILS.search(line) is not None:
        message = "this log format has no response details, which name the policy that denied"
        way_out = (
            "make the mesh log %RESPONSE_CODE_DETAILS% and %CONNECTION_TERMINATION_DETAILS%, as it does by default"
        )
        raise LogLineError(NO_POLICY_DECIDED, message, way_out)
    raise LogLineError(
        CUT_OFF, "the line begins like one of Istio's access log, but it is not complete", "give all of it"
    )


def _text_fields(line: str) -> dict[str, str] | None:
    """Return the fields of Istio's text format. Fields that users added after them are searched for certificates."""
    head = _HEAD.search(line)
    if head is None:
        return None
    words = line[head.end() :].split()
    start = _tail_of(words)
    if start is None:
        return None
    end = start + len(_TAIL)
    fields = {**head.groupdict(), **dict(zip(_TAIL, (word.strip('"') for word in words[start:end]), strict=True))}
    if certificates := _CERTIFICATES.search(" ".join(words[end:])):
        fields["x_forwarded_client_cert"] = certificates[0]
    return fields


def _tail_of(words: Sequence[str]) -> int | None:
    """Return the index of the last fields. The search starts at the end: user agents contain spaces and quotes."""
    for start in range(len(words) - len(_TAIL), -1, -1):
        quoted, addresses = words[start : start + 3], words[start + 4 : start + 7]
        if all(map(_QUOTED.fullmatch, quoted)) and all(map(_ADDRESS.fullmatch, addresses)):
            return start
    return None


def _json_fields(line: str) -> dict[str, str] | None:
    """Return the fields of Istio's JSON format."""
    start = line.find("{") if any(key in line for key in _KEYS) else -1
    for _ in range(_MAX_OBJECTS):
        if start == -1:
            break
        try:
            value, _end = _DECODER.raw_decode(line, start)
        except (ValueError, RecursionError):
            value = None
        for candidate in _objects(value):
            if not _KEYS.isdisjoint(candidate):
                return {name: str(each) for name, each in candidate.items() if isinstance(each, str | int)}
        start = line.find("{", start + 1)
    return None


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    """Yield an object, and the objects that are texts in it, as log collectors write them."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            if isinstance(inner, str) and inner.lstrip().startswith("{"):
                try:
                    yield from _objects(json.loads(inner))
                except (ValueError, RecursionError):
                    continue


def _decision(fields: Mapping[str, str], pod: str | None) -> LoggedDecision:
    def text(name: str) -> str | None:
        value = fields.get(name, _ABSENT)
        return None if value in (_ABSENT, "") else value

    details = text("response_code_details") or _ABSENT
    cause = cause_of(details, text("connection_termination_details") or _ABSENT, text("response_flags") or _ABSENT)
    cluster = _Cluster.of(fields.get("upstream_cluster", ""))
    method, path, host = text("method"), text("path"), text("authority")
    if cause is None or (cause.allowed and method is None and not _has_sent(fields, cluster)):
        what = "a connection without any bytes" if details == _ABSENT else f"`{details}`"
        message = f"the line reports {what}, which is not a decision of a policy"
        raise LogLineError(NO_POLICY_DECIDED, message, "look for another line of this request or connection")
    if cause.allowed and cluster.direction in ("outbound", "PassthroughCluster", "BlackHoleCluster"):
        raise LogLineError(
            CALLERS_SIDE, "the line is from the caller's proxy, and names no denial", _at_other_end(fields)
        )
    sni = text("requested_server_name")
    inside = _SNI.fullmatch(sni or "")
    local = end_at(text("downstream_local_address"))
    remote = end_at(text("downstream_remote_address"))
    is_sidecar = cluster.direction in ("inbound", "InboundPassthroughCluster") or details == "filter_chain_not_found"
    is_waypoint = cluster.direction == "inbound-vip"
    is_direct = remote.port != 0  # an address that another proxy reported has no port
    return LoggedDecision(
        "Istio's Envoy",
        cause,
        _placements(is_sidecar=is_sidecar, is_waypoint=is_waypoint),
        caller=LoggedEnd(
            address=remote.address if is_direct else None,
            identity=text("downstream_peer_uri_san"),
            certificates=text("x_forwarded_client_cert"),
        ),
        called=LoggedEnd(
            address=None if is_waypoint else local.address,
            port=None if is_waypoint else local.port or cluster.port,
            pod=pod,
            host=cluster.host if is_waypoint else inside["host"] if inside is not None else None,
            service_port=cluster.port if is_waypoint else int(inside["port"]) if inside is not None else None,
            is_gateway=not is_sidecar and not is_waypoint,
        ),
        time=text("start_time") or "",
        plaintext=_is_plaintext(fields, is_inside=inside is not None or is_waypoint),
        method=method,
        path=path,
        host=host,
        sni=sni,
        protocol=text("protocol"),
        forwarded_for=remote.address,
        without_layers=_WITHOUT_LAYERS,
        fields={"requestId": text("request_id") or ""},
    )


def _has_sent(fields: Mapping[str, str], cluster: _Cluster) -> bool:
    """Return whether bytes of a connection reached the application. Policies are evaluated at the first byte."""
    return cluster.direction.startswith("inbound") and fields.get("bytes_received") != "0"


_WITHOUT_LAYERS: Final = (
    "by the manifests no policy of Istio is in force there; if they lack the labels that put its proxies there, "
    "set istioDataPlane to sidecar or ambient"
)


def _is_plaintext(fields: Mapping[str, str], *, is_inside: bool) -> bool:
    """Return whether the caller has no identity. In TLS between Istio's proxies, the server name is the destination."""
    verified = ("downstream_peer_uri_san", "x_forwarded_client_cert")
    return not is_inside and all(fields.get(name, _ABSENT) in (_ABSENT, "") for name in verified)


def _placements(*, is_sidecar: bool, is_waypoint: bool) -> frozenset[Placement]:
    if is_waypoint:
        return frozenset({AT_WAYPOINT})
    return frozenset({AT_SIDECAR}) if is_sidecar else frozenset({AT_SIDECAR, AT_GATEWAY})


def end_at(address: str | None) -> LoggedEnd:
    """Return the end with an address and a port, as Envoy and ztunnel write them."""
    host, colon, port = (address or "").rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit() or not host or not all(c in "0123456789abcdefABCDEF:." for c in host):
        return LoggedEnd()
    return LoggedEnd(host, int(port))


def _at_other_end(fields: Mapping[str, str]) -> str:
    cluster = _Cluster.of(fields.get("upstream_cluster", ""))
    where = f" of {cluster.host}" if cluster.host else ""
    request = fields.get("request_id", _ABSENT)
    which = f" for the request {request}" if request not in (_ABSENT, "") else ""
    return f"look at the log of the proxy{where}{which}"
