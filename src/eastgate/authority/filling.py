"""Questions with values for the attributes that they leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eastgate.authority.questions import Question
from eastgate.ir import Known, Value
from eastgate.ir.attributes import (
    ADDRESS,
    APPLICATION,
    FORWARDED_ADDRESS,
    HOST,
    MCP_METHOD,
    MCP_TOOL,
    METHOD,
    PATH,
    PORT,
    SNI,
    Attribute,
    AttributeKind,
)
from eastgate.ir.symbolic.cells import OTHER

PARTS: dict[Attribute, str] = {
    PORT: "port",
    METHOD: "method",
    PATH: "path",
    HOST: "host",
    SNI: "sni",
    MCP_METHOD: "mcp_method",
    MCP_TOOL: "tool",
    ADDRESS: "source_ip",
    FORWARDED_ADDRESS: "forwarded_for",
}
"""The field of a question that holds the value of each attribute."""
_FORMS: dict[AttributeKind, str] = {
    AttributeKind.PATH: "path",  # in every form in which a proxy compares it
    AttributeKind.TARGET: "path",
    AttributeKind.URL_PATH: "path",
    AttributeKind.AUTHORITY: "host",
    AttributeKind.PACKET_SOURCE: "source_ip",
}
_UNNAMED_VALUE = "any-other"  # a name that no rule has
_NO_HEADERS = {"accept": "application/json"}  # the headers of a request without any header that rules look at


def with_values(question: Question, values: Mapping[Attribute, Known]) -> Question:
    """Return the question with these values for attributes that it leaves out. A value in no rule is `any-other`."""
    parts: dict[str, object] = {}
    headers, claims = dict(question.headers or {}), dict(question.claims or {})
    pairs: list[str] = []
    for attribute, value in values.items():
        texts = [str(each).replace(OTHER, _UNNAMED_VALUE) for each in _each(value)]
        part = PARTS.get(attribute) or _FORMS.get(attribute.kind)
        if part is not None and texts:
            parts[part] = value if isinstance(value, int) else _spelled(part, texts[0])
        elif attribute.is_header and texts:
            headers[attribute.key] = texts
        elif attribute.kind is AttributeKind.CLAIM and texts:
            claims[attribute.key] = texts[0] if len(texts) == 1 else texts
        elif attribute.kind is AttributeKind.QUERY:
            pairs += [f"{attribute.key}={text}" for text in texts]
    absent = {attribute.kind for attribute, value in values.items() if value is None}
    if pairs:
        parts["path"] = f"{parts.get('path') or question.path or '/'}?{'&'.join(pairs)}"
    if headers or AttributeKind.HEADER in absent:
        parts["headers"] = headers or _NO_HEADERS
    if claims:
        parts["claims"] = claims
    elif absent & {AttributeKind.CLAIM, AttributeKind.TOKEN} and question.headers is None and question.token is None:
        parts["no_token"] = True
    if question.is_bare_message and not parts.keys().isdisjoint(("path", "host", "headers")):
        parts.setdefault("method", "POST")  # as the value is without them
    if values.get(APPLICATION) == "http" and not question.is_http:
        parts.setdefault("method", "GET")
    return replace(question, **parts)  # type: ignore[arg-type]


def _each(value: Known) -> tuple[Value, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _spelled(part: str, text: str) -> str:
    if part == "path":
        return text if text.startswith("/") or text == "*" else f"/{text}"
    if part in ("host", "sni"):
        return f"{text}.example" if text == _UNNAMED_VALUE else text
    return text
