"""The attributes of a request that the filter of a gateway has: Envoy's, where the authorization JSON has others.

The address of the source has its port, the path without its query is not decoded, and a header that is an attribute of
its own is null where it is missing. Of the connection itself nothing is known here.
"""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.paths import Path
from eastgate.ir.attributes import UNKNOWN

_SAME = ("id", "protocol", "scheme", "host", "method", "path", "headers", "size", "body", "grpc")
_DERIVED = frozenset({("request", "url_path"), ("request", "query"), ("request", "referer"), ("source", "address")})


def gateway_attributes(
    request: RequestFacts, plain: Mapping[str, object], unknown: Mapping[Path, str]
) -> tuple[dict[str, object], dict[Path, str]]:
    """Return the attributes and the unknown paths, from those of the authorization JSON."""
    left = {path: name for path, name in unknown.items() if path not in _DERIVED}
    left["connection",] = "the connection"
    asked = plain.get("request")
    members = {name: asked[name] for name in _SAME if name in asked} if isinstance(asked, Mapping) else {}
    _add_path(request, members, left)
    _add_headers(request, members, left)
    destination = plain.get("destination", {})
    return {"request": members, "source": _source(request, left), "destination": destination, "connection": {}}, left


def _add_path(request: RequestFacts, members: dict[str, object], unknown: dict[Path, str]) -> None:
    if request.path is UNKNOWN:
        unknown |= {("request", name): "the path" for name in ("url_path", "query")}
        return
    path = str(members.get("path", ""))
    members["url_path"], _, members["query"] = path.partition("#")[0].partition("?")


def _add_headers(request: RequestFacts, members: dict[str, object], unknown: dict[Path, str]) -> None:
    if request.headers is UNKNOWN:
        unknown |= {("request", name): "the headers" for name in ("referer", "useragent")}
        return
    headers = members.get("headers")
    given = headers if isinstance(headers, Mapping) else {}
    members["referer"], members["useragent"] = given.get("referer"), given.get("user-agent")


def _source(request: RequestFacts, unknown: dict[Path, str]) -> dict[str, object]:
    source: dict[str, object] = {
        name: value
        for name, value in (("port", request.port), ("principal", request.principal))
        if value is not UNKNOWN and value is not None
    }
    if request.address is UNKNOWN or request.port is UNKNOWN:
        unknown["source", "address"] = "the source address"
    elif request.address is not None:
        host = f"[{request.address}]" if ":" in request.address else request.address
        source["address"] = f"{host}:{request.port}"
    return source
