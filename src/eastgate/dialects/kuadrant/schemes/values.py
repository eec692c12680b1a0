"""Values, literal or selected, and single texts: selectors, expressions, URLs and names of headers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from eastgate.basics.regexes import regex
from eastgate.dialects.cel import CelProblem
from eastgate.dialects.kuadrant.authorino.calls import url_problem
from eastgate.dialects.kuadrant.authorino.gjson import is_template, path_problem
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import (
    Checking,
    Demand,
    entry_name,
    exactly_one,
    record,
    unique_names,
    unless_empty,
)
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import (
    Anything,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Text,
    Whole,
    constraint,
    quoted,
)
from eastgate.settings import Settings

# Checks whether CEL, Rego and regular expressions in a scheme can be evaluated.
#
# The evaluator itself compiles them, so that every accepted expression can be evaluated. It is imported on first use,
# because most schemes have patterns only.


_ALLOW = regex(r"\ballow\b")


def regular_expression(node: Node, to: Checking) -> None:
    """Require a regular expression for `matches`."""
    from eastgate.dialects.kuadrant.authorino.conditions import regex_problem

    problem = regex_problem(node.text)
    if problem is not None:
        message = f"{quoted(node.text)} is not a regular expression: {problem}"
        to.report(codes.REGEX, message, node, help="write an RE2 expression; ^ and $ match the ends of the value")


def cel_condition(node: Node, to: Checking) -> None:
    """Require an expression that can be boolean, because many types in the authorization JSON are unknown."""
    from eastgate.dialects.kuadrant.authorino.problems import predicate_problem

    _cel(predicate_problem(node.text), node, "write a condition such as auth.identity.group == 'staff'", to)


def gateway_condition(node: Node, to: Checking) -> None:
    """Require an expression on the attributes of the gateway's filter that can be boolean."""
    from eastgate.dialects.kuadrant.authorino.problems import predicate_problem

    example = "write a condition such as request.path.startsWith('/admin')"
    _cel(predicate_problem(node.text, at_gateway=True), node, example, to)


def cel_value(node: Node, to: Checking) -> None:
    """Require an expression of any type."""
    from eastgate.dialects.kuadrant.authorino.problems import cel_problem

    _cel(cel_problem(node.text), node, "write an expression such as auth.identity.sub", to)


def _cel(problem: CelProblem | None, node: Node, example: str, to: Checking) -> None:
    if problem is not None:
        to.report(codes.CEL, problem.message, node, help=problem.help or example)


def rego_module(field: str) -> Demand:
    """Require a module that can be evaluated and may allow a request. `version` is a field beside it."""

    def rule(opa: Node, to: Checking) -> None:
        node, version = opa.get(field), opa.get("version")
        if node is None or node.kind != "a string":
            return
        is_first = version is not None and version.plain() == "v1"
        problem = _rego_problem(node.text, 1 if is_first else 0)
        if problem is not None:
            message = f"the Rego policy cannot be evaluated: {problem}"
            example = f'allow {"if " if is_first else ""}{{ input.auth.identity.sub == "jane" }}'
            to.report(codes.REGO, message, node, help=f"write rules such as {example}")

    return rule


def _rego_problem(module: str, version: int) -> str | None:
    from eastgate.dialects.kuadrant.authorino.problems import rego_problem

    if not module.strip():
        return "it is empty"
    return rego_problem(module, version) or (None if _ALLOW.search(module) else "it has no rule `allow`")


MAX_TTL_SECONDS = 31_536_000  # seconds: a year
TIMEOUT: Field[Settings] = Field(Whole(0, 2**31 - 1, what="a number of milliseconds"))
"""The time to wait for an answer. 0 means no limit."""
KEPT_SECONDS = Whole(1, MAX_TTL_SECONDS, codes.TTL, "a number of seconds")


# Selectors

_SELECTOR_HELP = "write a path such as auth.identity.sub, or request.headers.x-team"


def _path(node: Node, to: Checking) -> None:
    _report_path(node.text, node, to)


def _report_path(path: str, node: Node, to: Checking) -> None:
    problem = path_problem(path)
    if problem is not None:
        message = f"{quoted(path)} is not a selector: {problem}"
        to.report(codes.SELECTOR, message, node, help=_SELECTOR_HELP)


def _selected(node: Node, to: Checking) -> None:
    """Require a selector, or a text with selectors in braces."""
    if is_template(node.text):
        _template(node, to)
    else:
        _report_path(node.text, node, to)


def _template(node: Node, to: Checking) -> str | None:
    """Check a text with selectors in braces. Return it with empty braces; None if a brace is never closed."""
    split = _split(node.text)
    if split is None:
        message = f"a brace in {quoted(node.text)} is never closed"
        to.report(codes.SELECTOR, message, node, help="write } after the selector, or \\{ for a brace in the text")
        return None
    text, paths = split
    wrong = next((path for path in paths if path_problem(path) is not None), None)
    if wrong is not None:
        _report_path(wrong, node, to)
    return text


def _split(template: str) -> tuple[str, list[str]] | None:
    """Return a template with empty braces, and its selectors; None if a brace is never closed."""
    text, paths = "", []
    at = 0
    while at < len(template):
        if template[at] == "{":
            end = _closing(template, at)
            if end is None:
                return None
            text += "{}"
            paths.append(template[at + 1 : end])
            at = end + 1
        else:
            step = 2 if template[at] == "\\" else 1
            text += template[at : at + step]
            at += step
    return text, paths


def _closing(template: str, opening: int) -> int | None:
    """Return the index of the closing brace. Braces nest, as in the argument of a modifier."""
    depth = 0
    for index in range(opening, len(template)):
        depth += {"{": 1, "}": -1}.get(template[index], 0)
        if depth == 0:
            return index
    return None


PATH: Text[Settings] = Text("a selector", _path)
SELECTED: Text[Settings] = Text("a selector", _selected)


# Values

_VALUE_FROM: Record[Settings] = record(
    "valueFrom",
    {"authJSON": Field(SELECTED, required=True, help="write authJSON: <a selector>")},
    renamed={"selector": "write authJSON: .."},
)


EXPRESSION: Field[Settings] = Field(Text("a CEL expression", cel_value))
_LITERAL: Field[Settings] = Field(Anything(), about="A literal value of any type.")


def value(
    style: Style, what: str, extra: dict[str, Field[Settings]] | None = None, *, may_lack: bool = False
) -> Record[Settings]:
    """Return the shape of a value: a literal, a selector, or in the new style an expression.

    `may_lack`: an empty mapping is accepted, because objects from a cluster have one if there is no value.
    """
    if style is Style.OLD:
        renamed = {
            "selector": "write valueFrom: {authJSON: ..}",
            "expression": "write valueFrom: {authJSON: ..}; expressions stand beside `authentication`",
        }
        fields = {**(extra or {}), "value": _LITERAL, "valueFrom": Field(_VALUE_FROM)}
        demand = exactly_one(codes.VALUE, "a value", ("value", "valueFrom"), tuple(renamed))
        rule = unless_empty(demand) if may_lack else demand
        return record(what, fields, rule, renamed=renamed, advice={"authJSON": "write valueFrom: {authJSON: ..}"})
    renamed = {"valueFrom": "write selector: .."}
    fields = {
        **(extra or {}),
        "value": _LITERAL,
        "selector": Field(SELECTED),
        "expression": EXPRESSION,
    }
    demand = exactly_one(codes.VALUE, "a value", ("value", "selector", "expression"), tuple(renamed))
    return record(what, fields, unless_empty(demand) if may_lack else demand, renamed=renamed)


def named_values(
    style: Style, what: str, *, headers: bool = False, overwrite: bool = False
) -> ListOf[Settings] | MapOf[Settings]:
    """Return the shape of named values: properties of an object, or headers."""
    unique = unique_names("headers" if headers else "properties", fold=headers)
    if style is Style.OLD:
        name: Text[Settings] = Text("a name", header_name if headers else entry_name)
        extra = {"name": Field(name, required=True, help="write name: ..")}
        if overwrite:
            extra["overwrite"] = Field(Flag())
        return ListOf(
            value(style, "a header" if headers else "a property", extra), what.replace("mapping", "list"), unique
        )

    def names(node: Node, to: Checking) -> None:
        for key in node.keys.values():
            (header_name if headers else entry_name)(key, to)
        unique(node, to)

    return MapOf(value(style, "a header" if headers else "a property"), what, names)


# URLs


@constraint(pattern="^[Hh][Tt][Tt][Pp][Ss]?://[^{ ]+$")
def _url(node: Node, to: Checking) -> None:
    if "{" in node.text:
        message = "this URL cannot be used: its selectors are not replaced"
        to.report(codes.URL, message, node, help="write it out, without braces")
    else:
        _report_url(node.text, node, to)


def _template_url(node: Node, to: Checking) -> None:
    text = _template(node, to)
    if text is not None:
        _report_url(text, node, to)


def _report_url(text: str, node: Node, to: Checking) -> None:
    problem = _url_problem(text)
    if problem is not None:
        reason, way_out = problem
        to.report(codes.URL, f"this URL cannot be used: {reason}", node, help=way_out)


def _url_problem(text: str) -> tuple[str, str] | None:
    """Return the problem of a URL, and what to write instead."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        return f"{error}".lower(), "write a URL such as https://idp.example.com/realms/shop"
    if parts.scheme not in ("http", "https"):
        bare = re.fullmatch(r"[-.a-zA-Z0-9]+(:[0-9]+)?(/.*)?", text)
        return "it does not begin with https:// or http://", f"write https://{text}" if bare else "write https://.."
    if not host or re.search(r"\s", text):
        return "it has no host" if not host else "it contains a space", "write https://<host>/<path>"
    if "{" in parts.netloc:
        return "a request could choose its host", "write the host out; selectors may stand in the path and the query"
    if parts.username is not None:
        return "it holds credentials", "keep them in a Secret, and remove them from the URL"
    problem = url_problem(text.replace("{}", "x"))
    return (f"it {problem}", "write a URL such as https://idp.example.com/realms/shop") if problem else None


URL: Text[Settings] = Text("a URL", _url)
TEMPLATE_URL: Text[Settings] = Text("a URL", _template_url)


# Headers

_TOKEN = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def header_name(node: Node, to: Checking) -> None:
    """Require an HTTP token."""
    if not _TOKEN.fullmatch(node.text):
        message = f"{quoted(node.text)} is not the name of a header"
        to.report(codes.HEADER, message, node, help="write a name such as x-user")
