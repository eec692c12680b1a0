"""The request part of the authorization JSON, as the proxy describes the request to Authorino."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast
from urllib.parse import unquote_to_bytes

from eastgate.dialects.kuadrant.authorino.credentials import masked_headers, masked_path, secret_headers
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.model import Credentials
from eastgate.dialects.kuadrant.authorino.paths import NAMES, Path
from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from eastgate.ir.attributes import UNKNOWN

# The attributes of a request in the filter of a gateway. They are Envoy's attributes, and differ from the authorization
# JSON.
#
# The address of the source has its port, the path without its query is not decoded, and a missing header with its own
# attribute is null. Attributes of the connection itself are unknown here.


_SAME = ("id", "protocol", "scheme", "host", "method", "path", "headers", "size", "body", "grpc")
_DERIVED = frozenset({("request", "url_path"), ("request", "query"), ("request", "referer"), ("source", "address")})


def gateway_attributes(
    request: RequestFacts, plain: Mapping[str, object], unknown: Mapping[Path, str]
) -> tuple[dict[str, object], dict[Path, str]]:
    """Return the attributes and the unknown paths, computed from those of the authorization JSON."""
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


Object: TypeAlias = dict[str, object]

_MAX_EXACT_INTEGER: Final = 2**53  # smaller integers are exact in float64
_MAX_FLOAT_INTEGER: Final = 10**308
_ANY_ID: Final = "7309453671953248000"  # a proxy gives every request a random number
_HTTP: Final = ("context", "request", "http")

_HTTP_MEMBERS: Final = ("id", "method", "headers", "path", "host", "scheme", "size", "protocol", "body")
_REQUEST_MEMBERS: Final = (
    *("id", "time", "protocol", "scheme", "host", "method", "path", "url_path", "query", "headers", "referer"),
    *("user_agent", "size", "body", "grpc", "context_extensions"),
)


class InOrder(dict[str, object]):
    """An object whose members have the order of a Go type. All other objects are sorted."""


class RequestPart:
    """The request part of the document, before the first step."""

    __slots__ = ("_masked", "hidden", "plain", "unknown")

    def __init__(
        self, plain: Object, masked: Callable[[], Object], unknown: Mapping[Path, str], hidden: Mapping[Path, str]
    ) -> None:
        self.plain = plain
        self._masked: Object | Callable[[], Object] = masked
        self.unknown = unknown
        self.hidden = hidden

    @property
    def masked(self) -> Object:
        """Return the part with `***` for each credential."""
        if not isinstance(self._masked, dict):
            self._masked = self._masked()
        return self._masked


_SCALARS: Final = frozenset({str, bool, float, type(None)})


def written_in_order(value: object) -> object:
    """Return the value as Go writes it after parsing: the keys of maps sorted, numbers as float64."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        given = cast("Object", value)
        return {key: item if type(item := given[key]) in _SCALARS else written_in_order(item) for key in sorted(given)}
    if isinstance(value, InOrder):
        return InOrder((key, written_in_order(item)) for key, item in value.items())
    if isinstance(value, Mapping):
        return {key: written_in_order(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [written_in_order(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and _MAX_EXACT_INTEGER < abs(value) < _MAX_FLOAT_INTEGER:
        return float(value)
    return value


def object_in(value: object) -> Object:
    if not isinstance(value, dict):
        raise TypeError("the authorization JSON has lost its form")
    return value


def part_at_gateway(request: RequestFacts, part: RequestPart) -> RequestPart:
    plain, unknown = gateway_attributes(request, part.plain, part.unknown)

    def masked() -> Object:
        return gateway_attributes(request, part.masked, part.unknown)[0]

    return RequestPart(plain, masked, unknown, part.hidden)


def request_part(request: RequestFacts, credentials: tuple[Credentials, ...]) -> RequestPart:
    unknown: dict[Path, str] = {}
    plain = _document(request, request.headers, request.path, unknown)
    headers = request.headers
    path = masked_path(request.path, credentials) if request.path is not UNKNOWN else UNKNOWN
    hidden: dict[Path, str] = {}
    if headers is not UNKNOWN:
        for name in secret_headers(credentials).intersection(headers):
            if headers[name] != MASK:
                hidden[("request", "headers", name)] = hidden[(*_HTTP, "headers", name)] = "a credential"
    if path != request.path:
        for name in ("path", "query", "url_path"):
            hidden[("request", name)] = "a credential"
        for path_of in ((*_HTTP, "path"), ("request", "headers", ":path"), (*_HTTP, "headers", ":path")):
            hidden[path_of] = "a credential"
    if isinstance(request.certificate, str):
        hidden[("context", "source", "certificate")] = "the client certificate"

    def masked() -> Object:
        shown = masked_headers(headers, credentials) if headers is not UNKNOWN else UNKNOWN
        document = _document(request, shown, path, {})
        if isinstance(request.certificate, str):
            object_in(object_in(document["context"])["source"])["certificate"] = MASK
        return document

    return RequestPart(plain, masked, unknown, hidden)


def _document(request: RequestFacts, headers: object, path: object, unknown: dict[Path, str]) -> Object:
    """Build the document.

    Empty members are left out, as Go's `omitempty` does. Unknown members are left out and recorded.

    The members have the order of Authorino's types, which a selector with a wildcard can observe.
    """
    time = {"seconds": int(request.time), "nanos": int(request.time % 1 * 1e9)}
    sent = _headers(request, headers, path, unknown)
    given: dict[str, tuple[object, str]] = {
        "id": (_ANY_ID, ""),
        "protocol": (request.protocol, "the protocol"),
        "scheme": (request.scheme, "the scheme"),
        "host": (request.host, "the host"),
        "method": (request.method, "the method"),
        "path": (path, "the path"),
        "size": (request.size, "the size"),
        "body": (request.body, "the body"),
    }
    members: Object = {"headers": sent, "time": time}
    for name, (value, called) in given.items():
        if value is UNKNOWN:
            unknown[("request", name)] = unknown[(*_HTTP, name)] = called
        elif value:
            members[name] = value
    http = {name: members[name] for name in _HTTP_MEMBERS if name in members}
    members |= {**_from_path(path, unknown), **_from_headers(headers, unknown), **_grpc(headers, path, unknown)}
    if request.extensions:
        members["context_extensions"] = written_in_order(dict(request.extensions))
    source, envoy_source = _peer(request, unknown)
    context: Object = {"source": envoy_source, "destination": {}, "request": {"time": time, "http": http}}
    asked = {name: members[name] for name in _REQUEST_MEMBERS if name in members}
    document: Object = {"context": context, "metadata": {}, "request": asked, "source": source, "destination": {}}
    _add_destination_and_metadata(request, document, context, unknown)
    document["auth"] = {}
    return document


def _headers(request: RequestFacts, headers: object, path: object, unknown: dict[Path, str]) -> Object:
    """Return the headers as a proxy sends them: with the first line of HTTP/1 and the host among them."""
    sent: Object = {}
    paths = (("request", "headers"), (*_HTTP, "headers"))
    if isinstance(headers, Mapping):
        sent.update((name, value) for name, value in headers.items() if name != "host")
    else:
        unknown.update(((*path_of, NAMES), "the headers") for path_of in paths)
    for name, value, called in (
        (":authority", request.host, "the host"),
        (":method", request.method, "the method"),
        (":path", path, "the path"),
        (":scheme", request.scheme, "the scheme"),
    ):
        if value is UNKNOWN:
            unknown.update(((*path_of, name), called) for path_of in paths)
        else:
            sent[name] = value
    return {name: sent[name] for name in sorted(sent)}


def _from_path(path: object, unknown: dict[Path, str]) -> Object:
    """Return the decoded path without its query, and the query. A text that Go does not parse as a path is unknown."""
    if not isinstance(path, str):
        unknown[("request", "url_path")] = unknown[("request", "query")] = "the path"
        return {}
    before, _, query = path.partition("#")[0].partition("?")
    derived: Object = {"query": query} if query else {}
    decoded = unquote_to_bytes(before)
    try:
        if re.search(r"%(?![0-9A-Fa-f]{2})|[\x00-\x20\x7f]", before) or not re.match(r"/(?!/)|\*?$", before):
            raise ValueError
        derived["url_path"] = decoded.decode()
    except ValueError:
        unknown[("request", "url_path")] = "the path without its query, which is not written as a path"
    return derived


def _from_headers(headers: object, unknown: dict[Path, str]) -> Object:
    if not isinstance(headers, Mapping):
        unknown |= {("request", name): "the headers" for name in ("referer", "user_agent")}
        return {}
    values = {"referer": headers.get("referer"), "user_agent": headers.get("user-agent")}
    return {name: value for name, value in values.items() if value}


def _grpc(headers: object, path: object, unknown: dict[Path, str]) -> Object:
    """Return service and method of a gRPC call, whose path has two segments."""
    if not isinstance(headers, Mapping):
        unknown[("request", "grpc")] = "the headers"
        return {}
    if not headers.get("content-type", "").startswith("application/grpc"):
        return {}
    unread: dict[Path, str] = {}
    derived = _from_path(path, unread)
    if unread:
        unknown[("request", "grpc")] = "the path"
    names = str(derived.get("url_path", "")).split("/")
    return {"grpc": {"service": names[1], "method": names[2]}} if len(names) == 3 and all(names[1:]) else {}


def _peer(request: RequestFacts, unknown: dict[Path, str]) -> tuple[Object, Object]:
    """Return the source in the document's form and in Envoy's form. Only the second has the certificate."""
    source: Object = {}
    for name, value, called in (
        ("address", request.address, "the source address"),
        ("port", request.port, "the source port"),
        ("principal", request.principal, "the source identity"),
        ("certificate", request.certificate, "the client certificate"),
    ):
        if value is UNKNOWN:
            if name != "certificate":
                unknown[("source", name)] = called
            unknown.setdefault(("context", "source", "address" if name == "port" else name), called)
        elif value:
            source[name] = value
    socket: Object = {"address": source["address"]} if "address" in source else {}
    if "port" in source:
        socket["PortSpecifier"] = {"PortValue": source["port"]}
    envoy: Object = {"address": {"Address": {"SocketAddress": socket}}} if socket else {}
    envoy |= {name: source[name] for name in ("principal", "certificate") if name in source}
    source.pop("certificate", None)
    return source, envoy


def _add_destination_and_metadata(
    request: RequestFacts, document: Object, context: Object, unknown: dict[Path, str]
) -> None:
    if request.destination is UNKNOWN:
        unknown[("destination",)] = unknown[("context", "destination")] = "the destination"
    else:
        document["destination"] = context["destination"] = object_in(written_in_order(request.destination))
    if request.metadata is UNKNOWN:
        unknown[("metadata",)] = unknown[("context", "metadata_context")] = "the proxy's metadata"
    elif request.metadata:
        document["metadata"] = context["metadata_context"] = object_in(written_in_order(request.metadata))
    if request.extensions:
        context["context_extensions"] = written_in_order(request.extensions)
