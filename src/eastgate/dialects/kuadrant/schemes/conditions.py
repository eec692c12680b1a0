"""Conditions: patterns, named sets of patterns, CEL predicates, and ALL or ANY of these.

Both styles have the same conditions. The first versions of v1beta1 lack `all`, `any` and `predicate`, but accepting
them there is safe.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics import did_you_mean
from eastgate.dialects.kuadrant.authorino.model import PatternOperator
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.validation import Checking
from eastgate.dialects.kuadrant.schemes.values import PATH, cel_condition, gateway_condition, regular_expression
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import (
    Anything,
    Choice,
    Field,
    ListOf,
    MapOf,
    Record,
    Text,
    constraint,
    not_empty,
    quoted,
)
from eastgate.reading.manifests.shapes.codes import MISSING_FIELD, UNKNOWN_FIELD
from eastgate.settings import Settings

_EXAMPLE = "write {selector: .., operator: .., value: ..}"
_FORMS = ("patternRef", "predicate", "all", "any")
_OF_A_PATTERN = ("selector", "operator", "value")

_NEAR = {
    **dict.fromkeys(("=", "==", "===", "EQUAL", "EQUALS", "IS"), "eq"),
    **dict.fromkeys(("!=", "<>", "NE", "NOT", "NOTEQUAL", "NOTEQUALS"), "neq"),
    **dict.fromkeys(("CONTAINS", "HAS", "INCLUDES"), "incl"),
    **dict.fromkeys(("NOTCONTAINS", "EXCLUDES"), "excl"),
    **dict.fromkeys(("=~", "~", "REGEX", "MATCH", "REGEXP"), "matches"),
}
_OPERATOR = Choice(
    tuple(PatternOperator),
    codes.OPERATOR,
    reasons={word: (codes.OPERATOR, f"write {operator}") for word, operator in _NEAR.items()}
    | {
        word: (codes.OPERATOR, f"write a pattern for each value: `{operator}` asks whether a selected list has one")
        for word, operator in (("IN", "incl"), ("NOTIN", "excl"))
    },
)


def _one_form(node: Node, to: Checking) -> None:
    """Require a pattern, or one of the other forms."""
    forms = [name for name in _FORMS if name in node]
    parts = [name for name in _OF_A_PATTERN if name in node]
    if len(forms) > 1 or (forms and parts):
        first, second = (*forms, *parts)[:2]
        message = f"a condition has one of `{first}` and `{second}`, not both"
        to.report(codes.CONDITION, message, node.key_span(second), help="write a condition for each")
    elif not forms:
        _pattern(node, to)


def _pattern(node: Node, to: Checking) -> None:
    """Require a selector, an operator and a value that fit together."""
    operator, value = node.get("operator"), node.get("value")
    missing = [f"`{name}`" for name in ("selector", "operator") if name not in node]
    if missing:
        message = f"a condition needs {' and '.join(missing)}"
        to.report(codes.CONDITION, message, node, help=_EXAMPLE)
    elif operator is not None and _is_idle(PatternOperator(operator.text), value):
        message = f"`{operator.text}` needs `value`"
        to.report(codes.CONDITION, message, value or operator, help="write value: ..")
    elif operator is not None and value is not None and operator.text == PatternOperator.MATCHES:
        regular_expression(value, to)


def _is_idle(operator: PatternOperator, value: Node | None) -> bool:
    """Return whether the comparison has no effect. A text can equal an empty text, but every text contains it."""
    if operator is PatternOperator.MATCHES:
        return value is None or not value.text
    return value is None and operator not in (PatternOperator.EQ, PatternOperator.NEQ)


_SOME = not_empty(codes.CONDITION, "there is no condition in the list", _EXAMPLE)
_ADVICE = {
    "and": "write all: [..]",
    "or": "write any: [..]",
    "not": "write the opposite operator: neq for eq, excl for incl",
    "key": "write selector: ..",
    "values": "write a pattern for each value, in any: [..]",
    "expression": "write predicate: ..",
    "cel": "write predicate: ..",
}
_MISSPELT = {
    "and": "all",
    "or": "any",
    "not": "operator",
    "key": "selector",
    "values": "value",
    "expression": "predicate",
    "cel": "predicate",
    "authJSON": "selector",
    "pattern": "patternRef",
    "allOf": "all",
    "anyOf": "any",
    "name": "patternRef",
    "ref": "patternRef",
}
_PATTERN_FIELDS: dict[str, Field[Settings]] = {
    "selector": Field(PATH),
    "operator": Field(_OPERATOR),
    "value": Field(Text("a value to compare with")),
}
_PREDICATE: Field[Settings] = Field(Text("a CEL expression", cel_condition))

_fields: dict[str, Field[Settings]] = {
    **_PATTERN_FIELDS,
    "patternRef": Field(Text("the name of a set of patterns")),
    "predicate": _PREDICATE,
}
_condition: Record[Settings] = Record(
    "a condition", _fields, rules=(_one_form,), misspelt=_MISSPELT, advice=_ADVICE
)  # recursive: conditions in conditions
_fields["all"] = Field(ListOf(_condition, "a list of conditions", _SOME))
_fields["any"] = Field(ListOf(_condition, "a list of conditions", _SOME))

WHEN: Field[Settings] = Field(ListOf(_condition, "a list of conditions"))
RULES: ListOf[Settings] = ListOf(_condition, "a list of conditions", _SOME)
ANY_RULES: ListOf[Settings] = ListOf(_condition, "a list of conditions")  # no condition refuses these

_named_condition: Record[Settings] = Record(
    "a named pattern",
    {**_PATTERN_FIELDS, "predicate": _PREDICATE},
    rules=(_one_form,),
    misspelt={name: near for name, near in _MISSPELT.items() if near in ("selector", "operator", "value", "predicate")},
    advice=_ADVICE
    | dict.fromkeys(("patternRef", "all", "any"), "write the patterns out: a set of patterns is all of them"),
)
NAMED_PATTERNS: MapOf[Settings] = MapOf(
    ListOf(_named_condition, "a list of patterns", _SOME), "a mapping of sets of patterns", served=32
)

_NOT_IN_SETS = dict.fromkeys(("patternRef", "all", "any"), "write the patterns out: a set of patterns is all of them")
_PREDICATE_IN_SET = {"predicate": "write the predicate beside the `patternRef`: a set has patterns only"}
_patterns_only: ListOf[Settings] = ListOf(
    Record(
        "a named pattern",
        _PATTERN_FIELDS,
        rules=(_pattern,),
        misspelt={name: near for name, near in _MISSPELT.items() if near in _OF_A_PATTERN},
        advice=_ADVICE | _NOT_IN_SETS | _PREDICATE_IN_SET,
    ),
    "a list of patterns",
    _SOME,
)
PATTERN_SETS: MapOf[Settings] = MapOf(_patterns_only, "a mapping of sets of patterns")
"""The `patterns` of an AuthConfig."""
NAMED_PATTERNS_ALL_OF: MapOf[Settings] = MapOf(
    Record(
        "a set of patterns",
        {"allOf": Field(_patterns_only, required=True, help="write allOf: [{selector: .., operator: .., value: ..}]")},
        misspelt={"all": "allOf", "patterns": "allOf", "any": "allOf", "anyOf": "allOf"},
    ),
    "a mapping of sets of patterns, each under `allOf`",
)
"""The `patterns` of an AuthPolicy."""

_AS_PREDICATE = {
    **dict.fromkeys(_OF_A_PATTERN, "write {predicate: ..}, such as request.path == '/toys'"),
    "patternRef": "write the patterns of the set as CEL expressions: {predicate: ..}",
    "all": "write a condition for each: all of them must hold",
    "any": "write {predicate: ..} with the alternatives joined by ||",
}
_NOT_HERE = "Conditions of rules have it. Only CEL expressions are allowed here, so it is rejected."
_PREDICATE_HELP = "write predicate: <a CEL expression>"


@constraint(oneOf=[{"required": ["predicate"]}])
def _predicate_alone(node: Node, to: Checking) -> None:
    """Require a predicate and no other field. A condition of another form is reported once, for all of its fields."""
    other = next((key for key, _ in node.items() if key in _AS_PREDICATE), None)
    if other is not None:
        message = f"unknown field `{other}` in a condition: only CEL expressions are allowed here"
        to.report(UNKNOWN_FIELD, message, node.key_span(other), help=_AS_PREDICATE[other])
    elif "predicate" not in node:
        to.report(MISSING_FIELD, "a condition needs `predicate`", node, help=_PREDICATE_HELP)


WHEN_PREDICATES: Field[Settings] = Field(
    ListOf(
        Record(
            "a condition",
            {
                "predicate": Field(Text("a CEL expression", gateway_condition), help=_PREDICATE_HELP),
                **{name: Field(Anything(), refused=True, about=_NOT_HERE) for name in _AS_PREDICATE},
            },
            rules=(_predicate_alone,),
            misspelt={"expression": "predicate", "cel": "predicate"},
            otherwise="the only field here is `predicate`",
        ),
        "a list of conditions",
    )
)
"""The `when` of an AuthPolicy, which the filter of its gateway evaluates."""


# References


def no_dangling_references(scheme: Node, to: Checking) -> None:
    """Require that each patternRef names a set of patterns of the same scheme."""
    patterns = scheme.get("patterns")
    names = [name for name, _ in patterns.items()] if patterns is not None else []
    refs = (ref for key, section in scheme.items() if key != "patterns" for ref in pattern_references(section))
    for ref in refs:
        if ref.text in names:
            continue
        near = did_you_mean(ref.text, names)
        way_out = (
            f"did you mean `{near}`?" if near else f"write patterns: {{{ref.text or '<name>'}: [..]}} into the scheme"
        )
        to.report(codes.NO_SUCH_PATTERN, f"no patterns have the name {quoted(ref.text)}", ref, help=way_out)


def pattern_references(node: Node) -> Iterator[Node]:
    """Yield every patternRef in a node, except in literal values."""
    for item in node:
        yield from pattern_references(item)
    for key, value in node.items():
        if key == "patternRef" and isinstance(value.value, str):
            yield value
        elif key != "value":
            yield from pattern_references(value)
