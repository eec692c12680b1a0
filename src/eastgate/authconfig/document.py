"""The authorization JSON: the request, and what the steps have found out so far.

It is kept twice. `plain` is what expressions compare; `masked` has `***` where a credential is, and everything that
leaves the evaluator is made from it. `unknown` are the places that nobody knows, each with its name for a person;
`hidden` are the places where the two differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from eastgate.authconfig.credentials import masked_headers, masked_path
from eastgate.authconfig.facts import RequestFacts
from eastgate.authconfig.model import Credentials
from eastgate.authconfig.paths import Path
from eastgate.authconfig.secrecy import MASK
from eastgate.policy.attributes import UNKNOWN

__all__ = ["Document", "document_of"]

Object: TypeAlias = dict[str, object]

_HTTP: Final = ("context", "request", "http")
_PARTS: Final = ("metadata", "authorization", "response")


class Document:
    """One document in the making."""

    __slots__ = ("hidden", "masked", "plain", "unknown")

    def __init__(self, plain: Object, masked: Object, unknown: dict[Path, str], hidden: dict[Path, str]) -> None:
        self.plain = plain
        self.masked = masked
        self.unknown = unknown
        self.hidden = hidden

    def copied(self) -> Document:
        """Another one that learns on its own."""
        plain, masked = ({**each, "auth": dict(_object(each["auth"]))} for each in (self.plain, self.masked))
        return Document(plain, masked, dict(self.unknown), dict(self.hidden))

    def learn(self, part: str, name: str | None, value: object, masked: object) -> None:
        """Put what a step found under `auth`: the identity as it is, the others by the name of the step."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        for document, found in ((self.plain, value), (self.masked, masked)):
            place = _object(document["auth"])
            if name is None:
                place[part] = found
            else:
                _object(place[part])[name] = found
        self.unknown.pop(path, None)
        for stale in [each for each in self.hidden if each[: len(path)] == path]:
            del self.hidden[stale]
        self.hidden.update((place, f"auth.{part}") for place in _differences(value, masked, path))

    def forget(self, part: str, name: str | None, why: str) -> None:
        """Nobody knows what this step found, or whether it found anything."""
        path: Path = ("auth", part) if name is None else ("auth", part, name)
        self.unknown[path] = why


def _object(value: object) -> Object:
    if not isinstance(value, dict):
        raise TypeError("the authorization JSON has lost its form")
    return value


def _differences(value: object, masked: object, path: Path) -> Iterator[Path]:
    """Where the two differ, as deep inside as they are still objects."""
    if value is masked or (not isinstance(value, dict) and value == masked):
        return
    if not isinstance(value, dict) or not isinstance(masked, dict) or value.keys() != masked.keys():
        yield path
        return
    for key, item in value.items():
        yield from _differences(item, masked[key], (*path, key))


def document_of(request: RequestFacts, credentials: tuple[Credentials, ...]) -> Document:
    """The document before the first step. `credentials` are the places where this scheme looks for credentials."""
    unknown: dict[Path, str] = {}
    plain = _document(request, request.headers, request.path, unknown)
    headers = masked_headers(request.headers, credentials) if request.headers is not UNKNOWN else UNKNOWN
    path = masked_path(request.path, credentials) if request.path is not UNKNOWN else UNKNOWN
    masked = _document(request, headers, path, {})
    hidden: dict[Path, str] = {}
    if headers is not UNKNOWN and request.headers is not UNKNOWN:
        for name, value in headers.items():
            if value != request.headers[name]:
                hidden[("request", "headers", name)] = hidden[(*_HTTP, "headers", name)] = "a credential"
    if path != request.path:
        for name in ("path", "query", "url_path"):
            hidden[("request", name)] = "a credential"
        hidden[(*_HTTP, "path")] = "a credential"
    if isinstance(request.certificate, str):
        hidden[("source", "certificate")] = hidden[("context", "source", "certificate")] = "the client certificate"
        for source in (_object(masked["source"]), _object(_object(masked["context"])["source"])):
            source["certificate"] = MASK
    return Document(plain, masked, unknown, hidden)


def _document(request: RequestFacts, headers: object, path: object, unknown: dict[Path, str]) -> Object:
    """Members that are empty or unknown are left out, as Go's `omitempty` does; the unknown are noted."""
    time = {"seconds": int(request.time), "nanos": int(request.time % 1 * 1e9)}
    names: tuple[tuple[str, object, str], ...] = (
        ("protocol", request.protocol, "the protocol"),
        ("scheme", request.scheme, "the scheme"),
        ("host", request.host, "the host"),
        ("method", request.method, "the method"),
        ("path", path, "the path"),
        ("headers", headers, "the headers"),
        ("size", request.size, "the size"),
        ("body", request.body, "the body"),
    )
    http: Object = {}
    for name, value, called in names:
        if value is UNKNOWN:
            unknown[("request", name)] = unknown[(*_HTTP, name)] = called
        elif value or name == "headers":  # of which a proxy always sends some
            http[name] = dict(value) if isinstance(value, Mapping) else value
    _note_derived(path, headers, unknown)
    known = {**http, **_from_path(path, unknown), **_from_headers(headers), "time": time}
    if request.extensions:
        known["context_extensions"] = dict(request.extensions)
    source, envoy_source = _peer(request, unknown)
    context: Object = {"request": {"time": time, "http": {**http, **_id(headers)}}, "source": envoy_source}
    document: Object = {"context": context, "request": known, "source": source, "destination": {}}
    _elsewhere(request, document, context, unknown)
    document["auth"] = {part: {} for part in _PARTS}
    return document


def _note_derived(path: object, headers: object, unknown: dict[Path, str]) -> None:
    if path is UNKNOWN:
        unknown[("request", "url_path")] = unknown[("request", "query")] = "the path"
    if headers is UNKNOWN:
        for name in ("referer", "user_agent", "id"):
            unknown[("request", name)] = "the headers"
        unknown[(*_HTTP, "id")] = "the headers"


def _from_path(path: object, unknown: dict[Path, str]) -> Object:
    """The path without its query, decoded, and the query. What Go reads as something else than a path is unknown."""
    if not isinstance(path, str):
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


def _from_headers(headers: object) -> Object:
    if not isinstance(headers, Mapping):
        return {}
    named = {"referer": headers.get("referer"), "user_agent": headers.get("user-agent")}
    return {name: value for name, value in named.items() if value} | _id(headers)


def _id(headers: object) -> Object:
    found = headers.get("x-request-id") if isinstance(headers, Mapping) else None
    return {"id": found} if found else {}


def _peer(request: RequestFacts, unknown: dict[Path, str]) -> tuple[Object, Object]:
    """The source, as the document has it and as Envoy has it."""
    source: Object = {}
    for name, value, called in (
        ("address", request.address, "the source address"),
        ("port", request.port, "the source port"),
        ("principal", request.principal, "the source identity"),
        ("certificate", request.certificate, "the client certificate"),
    ):
        if value is UNKNOWN:
            unknown[("source", name)] = called
            unknown.setdefault(("context", "source", "address" if name == "port" else name), called)
        elif value:
            source[name] = value
    envoy: Object = {name: source[name] for name in ("principal", "certificate") if name in source}
    socket: Object = {"address": source["address"]} if "address" in source else {}
    if "port" in source:
        socket["PortSpecifier"] = {"PortValue": source["port"]}
    if socket:
        envoy["address"] = {"Address": {"SocketAddress": socket}}
    return source, envoy


def _elsewhere(request: RequestFacts, document: Object, context: Object, unknown: dict[Path, str]) -> None:
    if request.destination is UNKNOWN:
        unknown[("destination",)] = unknown[("context", "destination")] = "the destination"
    else:
        document["destination"] = context["destination"] = dict(request.destination)
    if request.metadata is UNKNOWN:
        unknown[("metadata",)] = unknown[("context", "metadata_context")] = "the proxy's metadata"
    elif request.metadata:
        document["metadata"] = context["metadata_context"] = dict(request.metadata)
    if request.extensions:
        context["context_extensions"] = dict(request.extensions)
