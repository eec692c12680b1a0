"""The authorization JSON: the request, and the findings of the steps so far.

It is kept twice. `plain` is what expressions compare; `masked` has `***` where a credential is, and everything that
leaves the evaluator is made from it. `unknown` are the unknown paths, each with its name for a person;
`hidden` are the paths where the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeAlias, cast
from urllib.parse import unquote_to_bytes

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.credentials import masked_headers, masked_path, secret_headers
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.gateway_attributes import gateway_attributes
from eastgate.dialects.kuadrant.authorino.model import Credentials
from eastgate.dialects.kuadrant.authorino.paths import NAMES, Path, touched
from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from eastgate.ir.attributes import UNKNOWN

Object: TypeAlias = dict[str, object]

_EXACT: Final = 2**53  # integers up to here are float64 as they are
_LARGEST: Final = 10**308
_ANY_ID: Final = "7309453671953248000"  # a proxy gives every request a number, at random
_HTTP: Final = ("context", "request", "http")
_PARTS: Final = (
    "identity",
    "metadata",
    "authorization",
    "response",
)  # in this order, and each only with something in it
_HTTP_MEMBERS: Final = ("id", "method", "headers", "path", "host", "scheme", "size", "protocol", "body")
_REQUEST_MEMBERS: Final = (
    *("id", "time", "protocol", "scheme", "host", "method", "path", "url_path", "query", "headers", "referer"),
    *("user_agent", "size", "body", "grpc", "context_extensions"),
)


class InOrder(dict[str, object]):
    """An object whose members Authorino writes in the order of a type of Go; those of all others are sorted."""


class RequestPart:
    """What the document says of the request itself, before the first step."""

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
        """Return it with `***` where a credential is."""
        if not isinstance(self._masked, dict):
            self._masked = self._masked()
        return self._masked


class AuthorizationJson:
    """The authorization JSON of one request, which grows with each step under `auth`.

    All of it is made once somebody looks at it: many schemes look at the identity alone.
    """

    __slots__ = ("_auth", "_gateway", "_hidden", "_learned", "_masked_auth", "_request", "_unknown")

    def __init__(self, request: Callable[[], RequestPart], gateway: Callable[[], RequestPart] | None = None) -> None:
        """`request` makes what is said of the request, and returns the same each time; `gateway` what the filter of a
        gateway says of it.
        """
        self._request = request
        self._gateway = gateway or request
        self._learned: tuple[_Learned, ...] = ()
        self._auth = self._masked_auth = _NOTHING_LEARNED
        self._unknown: dict[Path, str] = {}
        self._hidden: dict[Path, str] = {}

    @property
    def plain(self) -> Object:
        """Return what expressions compare."""
        return _with_auth(self._request().plain, self._findings())

    @property
    def masked(self) -> Object:
        """Return the document with `***` where a credential is."""
        self._masked_auth = _learn(self._masked_auth, self._learned, masked=True)
        return _with_auth(self._request().masked, self._masked_auth.auth)

    def _findings(self) -> Object:
        self._auth = _learn(self._auth, self._learned, masked=False)
        return self._auth.auth

    @property
    def unknown(self) -> Mapping[Path, str]:
        """Return the unknown paths, each with its name for a person."""
        return {**self._request().unknown, **self._unknown}

    @property
    def hidden(self) -> Mapping[Path, str]:
        """Return the paths where the two twins differ."""
        return {**self._request().hidden, **self._hidden}

    # For an expression, of which it is known what it looks at

    def unknown_to(self, mentions: Collection[Path]) -> str | None:
        """Return the name of something unknown that an expression looks at."""
        return touched(mentions, self._unknown if _are_in_auth(mentions) else self.unknown)

    def hidden_from(self, mentions: Collection[Path]) -> str | None:
        """Return the name of something that an expression looks at, and that must not be shown."""
        return touched(mentions, self._hidden if _are_in_auth(mentions) else self.hidden)

    def plain_for(self, mentions: Collection[Path]) -> Object:
        """Return as much of the document as a selector can look at, or more."""
        return {"auth": self._findings()} if _are_in_auth(mentions) else self.plain

    def at_gateway(self) -> AuthorizationJson:
        """Return the attributes that the filter of a gateway has, before the first step."""
        return AuthorizationJson(self._gateway)

    # Steps

    def copied(self) -> AuthorizationJson:
        """Return a copy that learns on its own."""
        copy = AuthorizationJson(self._request, self._gateway)
        copy._auth, copy._masked_auth, copy._learned = self._auth, self._masked_auth, self._learned
        copy._unknown, copy._hidden = dict(self._unknown), dict(self._hidden)
        return copy

    def learn(self, part: str, name: str | None, value: object, masked: object) -> None:
        """Put the finding of a step under `auth`: the identity as it is, the others by the name of the step."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self._learned += (_Learned(part, name, value, masked),)
        self._unknown.pop(path, None)
        if self._hidden:
            self._hidden = {each: called for each, called in self._hidden.items() if each[: len(path)] != path}
        self._hidden.update((path_hidden, f"auth.{part}") for path_hidden in _differences(value, masked, path))

    def forget(self, part: str, name: str | None, why: str) -> None:
        """Note that the finding of a step is unknown."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self._unknown[path] = why


def _with_auth(request: Object, auth: Object) -> Object:
    return {**request, "auth": auth} if auth else request


def _are_in_auth(mentions: Collection[Path]) -> bool:
    """Tell whether all that is mentioned is a finding of steps."""
    return all(mention and mention[0] == "auth" for mention in mentions)


@dataclass(frozen=True, slots=True)
class _Learned:
    """The finding of a step, and its twin without secrets."""

    part: str
    name: str | None
    value: object
    masked: object


@dataclass(frozen=True, slots=True)
class _Findings:
    """What is under `auth` after so many findings."""

    count: int
    auth: Object


_NOTHING_LEARNED = _Findings(0, {})


def _learn(before: _Findings, learned: tuple[_Learned, ...], *, masked: bool) -> _Findings:
    """Return the findings with those that came since."""
    if before.count == len(learned):
        return before
    auth = dict(before.auth)
    for each in learned[before.count :]:
        finding = each.masked if masked else each.value
        given = finding if each.name is None else {**_object(auth.get(each.part, {})), each.name: finding}
        auth[each.part] = _sorted(given)
    return _Findings(len(learned), {part: auth[part] for part in _PARTS if auth.get(part) is not None})


_SCALARS: Final = frozenset({str, bool, float, type(None)})


def _sorted(value: object) -> object:
    """Return the value as Go writes what it has read: the keys of maps in order, numbers as float64."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        given = cast("Object", value)
        return {key: item if type(item := given[key]) in _SCALARS else _sorted(item) for key in sorted(given)}
    if isinstance(value, InOrder):
        return InOrder((key, _sorted(item)) for key, item in value.items())
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_sorted(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and _EXACT < abs(value) < _LARGEST:
        return float(value)
    return value


def _object(value: object) -> Object:
    if not isinstance(value, dict):
        raise TypeError("the authorization JSON has lost its form")
    return value


def _differences(value: object, masked: object, path: Path) -> Iterator[Path]:
    """Yield where the two differ, as deep inside as they are still objects."""
    if value is masked or (not isinstance(value, dict) and value == masked):
        return
    if not isinstance(value, dict) or not isinstance(masked, dict) or value.keys() != masked.keys():
        yield path
        return
    for key, item in value.items():
        yield from _differences(item, masked[key], (*path, key))


def authorization_json_of(request: RequestFacts, credentials: tuple[Credentials, ...]) -> AuthorizationJson:
    """Return the document before the first step. `credentials` are the locations that this scheme looks at."""
    made: list[RequestPart] = []

    def part() -> RequestPart:
        if not made:
            made.append(_request_part(request, credentials))
        return made[0]

    return AuthorizationJson(part, lambda: _part_at_gateway(request, part()))


def _part_at_gateway(request: RequestFacts, part: RequestPart) -> RequestPart:
    plain, unknown = gateway_attributes(request, part.plain, part.unknown)

    def masked() -> Object:
        return gateway_attributes(request, part.masked, part.unknown)[0]

    return RequestPart(plain, masked, unknown, part.hidden)


def _request_part(request: RequestFacts, credentials: tuple[Credentials, ...]) -> RequestPart:
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
            _object(_object(document["context"])["source"])["certificate"] = MASK
        return document

    return RequestPart(plain, masked, unknown, hidden)


def _document(request: RequestFacts, headers: object, path: object, unknown: dict[Path, str]) -> Object:
    """Build the document. Members that are empty or unknown are left out, as Go's `omitempty` does; the unknown are
    noted.

    They stand in the order of Authorino's types, which a selector with a wildcard can tell.
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
        members["context_extensions"] = _sorted(dict(request.extensions))
    source, envoy_source = _peer(request, unknown)
    context: Object = {"source": envoy_source, "destination": {}, "request": {"time": time, "http": http}}
    asked = {name: members[name] for name in _REQUEST_MEMBERS if name in members}
    document: Object = {"context": context, "metadata": {}, "request": asked, "source": source, "destination": {}}
    _add_destination_and_metadata(request, document, context, unknown)
    document["auth"] = {}
    return document


def _headers(request: RequestFacts, headers: object, path: object, unknown: dict[Path, str]) -> Object:
    """Return the headers as a proxy hands them on: with what HTTP/1 has in its first line, and the host among them."""
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
    """Return the path without its query, decoded, and the query. What Go reads as something else than a path is
    unknown.
    """
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
    """Return service and method of a gRPC call, whose path has two names."""
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
    """Return the source, as the document has it and as Envoy has it: the certificate is in the second one alone."""
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
        document["destination"] = context["destination"] = _object(_sorted(request.destination))
    if request.metadata is UNKNOWN:
        unknown[("metadata",)] = unknown[("context", "metadata_context")] = "the proxy's metadata"
    elif request.metadata:
        document["metadata"] = context["metadata_context"] = _object(_sorted(request.metadata))
    if request.extensions:
        context["context_extensions"] = _sorted(request.extensions)
