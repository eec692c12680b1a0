"""Conditions and examples as options of the command line, and questions with usual values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from eastgate.authority.filling import with_values
from eastgate.authority.questions import Question
from eastgate.ir import (
    Known,
)
from eastgate.ir.attributes import (
    APPLICATION,
    METHOD,
    Attribute,
    AttributeKind,
)
from eastgate.ir.symbolic.cells import OTHER

_SOMEWHERE, _USUAL_PORT = "203.0.113.7", 8080
_USUAL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

_OPTIONS: dict[AttributeKind, str] = {
    AttributeKind.PORT: "--port",
    AttributeKind.METHOD: "--method",
    AttributeKind.APPLICATION: "--method",
    AttributeKind.PATH: "--path",
    AttributeKind.TARGET: "--path",
    AttributeKind.URL_PATH: "--path",
    AttributeKind.QUERY: "--path",
    AttributeKind.HOST: "--host",
    AttributeKind.AUTHORITY: "--host",
    AttributeKind.HEADER: "--header",
    AttributeKind.SNI: "--sni",
    AttributeKind.CLAIM: "--claim",
    AttributeKind.TOKEN: "--no-token",
    AttributeKind.MCP_METHOD: "--mcp-method",
    AttributeKind.MCP_TOOL: "--tool",
    AttributeKind.SOURCE_ADDRESS: "--source-ip",
    AttributeKind.PACKET_SOURCE: "--source-ip",
    AttributeKind.FORWARDED_ADDRESS: "--forwarded-for",
}


def spellings(question: Question, values: dict[Attribute, Known]) -> Iterator[Question]:
    """Yield the question with these values. Variants with usual values for those that no rule names come first."""
    usual = {name: None if name.is_header and value == OTHER else value for name, value in values.items()}
    for filled in (with_values(question, usual), with_values(question, values)):
        for spelled in (*_plainer(question, filled), filled):
            if question.method is None and values.get(METHOD) == OTHER:
                yield from (replace(spelled, method=method) for method in _USUAL_METHODS)
            yield spelled


def _plainer(question: Question, filled: Question) -> Iterator[Question]:
    """Yield the question with usual values in the place of generated ones."""
    plainer = filled
    for stranger in ("stranger", "any-other"):
        if plainer.path is not None and question.path is None and stranger in plainer.path:
            plainer = replace(plainer, path=plainer.path.replace(stranger, "").replace("//", "/") or "/")
    for part in ("source_ip", "forwarded_for"):
        address = getattr(filled, part)
        if isinstance(address, str) and getattr(question, part) is None and address.endswith(".0"):
            usable = _SOMEWHERE if address == "0.0.0.0" else f"{address[:-1]}1"  # noqa: S104
            plainer = replace(plainer, **{part: usable})  # type: ignore[arg-type]
    if filled.port == 1 and question.port is None:
        plainer = replace(plainer, port=_USUAL_PORT)
    if plainer != filled:
        yield plainer


def options(attributes: Iterable[Attribute]) -> tuple[str, ...]:
    given = [attribute for attribute in attributes if attribute.kind in _OPTIONS]
    if any(attribute.needs_http for attribute in given):  # such an option makes the question HTTP
        given = [attribute for attribute in given if attribute is not APPLICATION]
    named = dict.fromkeys(_OPTIONS[attribute.kind] for attribute in given)
    return tuple(sorted(named, key=list(_OPTIONS.values()).index))
