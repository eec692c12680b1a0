"""From responses and denials to their model."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.kuadrant.authorino.model import (
    Denial,
    Json,
    PlainResponse,
    Property,
    Response,
    SigningKey,
    Wristband,
)
from eastgate.dialects.kuadrant.schemes.meaning.fields import cache_of, first_of, priority_of, seconds_of, text_of
from eastgate.dialects.kuadrant.schemes.meaning.values import Patterns, all_of, optional_value, properties, value_of
from eastgate.dialects.kuadrant.schemes.responses import HEADER_WRAPPER, METADATA_FIELDS
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.reading.manifests.node import Node


def read_responses(section: Node | None, patterns: Patterns) -> Iterator[Response]:
    """Read responses: a list, each with its wrapper; or a mapping for success, in headers and in metadata."""
    if section is None or isinstance(section.value, list):
        for name, entry in entries(section):
            yield read_response(name, entry, patterns, text_of(entry.get("wrapper"), HEADER_WRAPPER) == HEADER_WRAPPER)
        return
    success = section.get("success")
    for field in ("headers", *METADATA_FIELDS):
        for name, entry in entries(success.get(field) if success is not None else None):
            yield read_response(name, entry, patterns, field == "headers")


def read_response(name: str, entry: Node, patterns: Patterns, in_header: bool) -> Response:
    """Read a response."""
    return Response(
        name,
        _content(entry),
        text_of(first_of(entry, "wrapperKey", "key"), name),
        in_header,
        priority_of(entry),
        all_of(entry.get("when"), patterns),
        cache_of(entry),
        entry.span,
    )


def _content(entry: Node) -> PlainResponse | Json | Wristband:
    if "plain" in entry:
        return PlainResponse(value_of(entry["plain"]))
    if "json" in entry:
        return Json(properties(entry["json"]["properties"]))
    wristband = entry["wristband"]
    keys = tuple(SigningKey(key["name"].text, key["algorithm"].text) for key in wristband["signingKeyRefs"])
    claims = properties(wristband.get("customClaims"))
    return Wristband(wristband["issuer"].text, keys, claims, seconds_of(wristband, "tokenDuration", 300))


def read_denial(node: Node | None) -> Denial:
    """Read the response to a denied client; without one, the usual."""
    if node is None:
        return Denial()
    code = node.get("code")
    headers: tuple[Property, ...] = properties(node.get("headers"))
    return Denial(
        code.number if code is not None else None,
        optional_value(node.get("message")),
        headers,
        optional_value(node.get("body")),
    )
