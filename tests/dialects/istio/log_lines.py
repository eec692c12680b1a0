"""Lines of Istio's proxies, in the default formats of Istio and ztunnel."""

from __future__ import annotations

import json

__all__ = ["NONE", "as_json", "envoy", "ztunnel"]

NONE = "rbac_access_denied_matched_policy[none]"


def envoy(
    details: str = NONE,
    *,
    status: int = 403,
    flags: str = "-",
    method: str = "GET",
    path: str = "/ratings/0",
    agent: str = "curl/8.9.1",
    authority: str = "ratings:9080",
    cluster: str = "inbound|9080||",
    local: str = "10.1.0.5:9080",
    remote: str = "10.1.0.6:41234",
    sni: str = "outbound_.9080_._.ratings.default.svc.cluster.local",
    forwarded: str = "-",
) -> str:
    """Return a line about an HTTP request or, without a method, about a connection."""
    if method == "-":
        head = f'"- - -" {status} {flags} - {details}'
        return f'[2026-11-16T09:12:33.123Z] {head} "-" 0 0 0 - "-" "-" "-" "-" "-" {cluster} - {local} {remote} {sni} -'
    head = f'"{method} {path} HTTP/1.1" {status} {flags} {details} -'
    tail = f'"{forwarded}" "{agent}" "84961386-6d84" "{authority}" "-" {cluster} - {local} {remote} {sni} default'
    return f'[2026-11-16T09:12:33.123Z] {head} "-" 0 19 0 - {tail}'


def as_json(details: str = NONE, **changes: object) -> str:
    """Return the line of the same request in the JSON format."""
    fields = {
        "start_time": "2026-11-16T09:12:33.123Z",
        "method": "GET",
        "path": "/ratings/0",
        "protocol": "HTTP/1.1",
        "response_code": 403,
        "response_flags": "-",
        "response_code_details": details,
        "connection_termination_details": None,
        "authority": "ratings:9080",
        "request_id": "84961386-6d84",
        "upstream_cluster": "inbound|9080||",
        "downstream_local_address": "10.1.0.5:9080",
        "downstream_remote_address": "10.1.0.6:41234",
        "requested_server_name": "outbound_.9080_._.ratings.default.svc.cluster.local",
        "x_forwarded_for": None,
        "user_agent": "curl/8.9.1",
    }
    return json.dumps({**fields, **changes})


def ztunnel(error: str | None, *, identity: bool = True, direction: str = "inbound") -> str:
    """Return a line of ztunnel's access log."""
    who = 'src.identity="spiffe://cluster.local/ns/default/sa/bookinfo-reviews" ' if identity else ""
    level, end = ("info", "") if error is None else ("error", f' error="{error}"')
    return (
        f"2026-11-16T09:12:33.123456Z\t{level}\taccess\tconnection complete\tsrc.addr=10.1.0.6:45208 "
        f'src.workload="reviews-v1-6584ddcf65-k78wz" src.namespace="default" {who}dst.addr=10.1.0.5:15008 '
        'dst.hbone_addr=10.1.0.5:9080 dst.service="ratings.default.svc.cluster.local" '
        'dst.workload="ratings-v1-d5789fdfb-c5w2c" dst.namespace="default" '
        f'direction="{direction}" bytes_sent=0 bytes_recv=0 duration="0ms"{end}'
    )
