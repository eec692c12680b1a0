"""Structural OpenAPI schemas of shapes, for CustomResourceDefinitions.

An API server drops fields that a schema does not name. A policy without such a field is another policy: a selector
without its misspelt `matchExpression` selects everything. So the schemas drop no field: records keep unknown fields,
and are closed by counting. For every set of optional fields, one alternative requires these fields and limits the
number of properties to theirs. An unknown field exceeds that number. Records with many optional fields, which only an
auth scheme has, are not closed. They keep unknown fields, and Eastgate rejects these when it reads the policy.

An API server also drops a null that a schema does not allow, before any rule sees it. A source that is null would then
be a missing source, which matches every caller. So every optional field is nullable, and a rule refuses the null. In an
AuthPolicy a null is a field left out, also in files. It is an error only where it would widen the policy.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.shapes import (
    Anything,
    Cel,
    Choice,
    Constraint,
    Field,
    Flag,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    Whole,
    enumerated,
)
from eastgate.reading.manifests.shapes.shape import any_case, whole

Schema = dict[str, Any]

KEEP_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_LARGEST_INT32 = 2**31 - 1
_NULLABLE: Schema = {"nullable": True}
_NO_NULL_VALUES = Cel("self.all(key, dyn(self[key]) != null)", "a key has a value: write '' if it is to be empty")


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """The records around a shape, and the names of fields whose null would widen a policy.

    Without such a list, every null is refused. With a list, any other null is treated as a field left out.
    """

    widening: frozenset[str] | None = None
    around: tuple[Record[Any], ...] = ()

    def within(self, shape: Record[Any]) -> SchemaContext:
        """Return the context of the fields of a record."""
        return replace(self, around=(*self.around, shape))

    def keeps_null(self, name: str, of: Field[Any]) -> bool:
        """Return whether a null is kept, so that a rule can refuse it. A required field needs no such rule: if it is
        dropped, it is missing.
        """
        return not of.required and (self.widening is None or name in self.widening)

    def refuses_null(self, name: str, of: Field[Any]) -> bool:
        """Return whether a null that is kept is an error."""
        return self.keeps_null(name, of) and (self.widening is not None or not isinstance(of.shape, Anything))


_ANYWHERE = SchemaContext()


def structural(shape: Shape[Any], about: str | None = None, context: SchemaContext = _ANYWHERE) -> Schema:
    """Return the schema of a shape and of everything in it."""
    described = {"description": about} if about else {}
    if isinstance(shape, Record) and shape.served is not None:
        shape = shape.served
    return described | _schema(shape, context) | _demands(shape)


def _schema(shape: Shape[Any], context: SchemaContext) -> Schema:
    match shape:
        case Text():
            return {"type": "string"} | ({"maxLength": shape.served} if shape.served else {})
        case Whole():
            width = "int32" if shape.maximum <= _LARGEST_INT32 else "int64"
            return {"type": "integer", "format": width, "minimum": shape.minimum, "maximum": shape.maximum}
        case Choice():
            return {"type": "string"} | _choice(shape)
        case Flag():
            return {"type": "boolean"}
        case ListOf():
            most = {"maxItems": shape.served} if shape.served else {}
            return {"type": "array"} | most | {"items": structural(shape.item, _describe(shape.item), context)}
        case MapOf():
            most = {"maxProperties": shape.served} if shape.served else {}
            return (
                {"type": "object"}
                | most
                | {"additionalProperties": structural(shape.value, context=context) | _NULLABLE}
            )
        case Record():
            return _record(shape, context)
        case Anything():
            return {KEEP_UNKNOWN: True}


def _choice(shape: Choice) -> Schema:
    if not shape.any_case:
        return {"enum": [str(option) for option in shape.options]}
    return {"maxLength": max(map(len, shape.options)), "pattern": whole(any_case(*shape.options))}


def _record(shape: Record[Any], context: SchemaContext) -> Schema:
    # a condition inside a condition: recursion of the schema ends here
    if any(shape is record for record in context.around):
        return {"type": "object", KEEP_UNKNOWN: True}
    required = [name for name, of in shape.fields.items() if of.required]
    properties = {name: _property(name, of, context.within(shape)) for name, of in shape.fields.items()}
    return (
        {"type": "object"}
        # An API server drops an empty `properties`. The stored schema would then never equal the applied one, and each
        # apply would conflict.
        | ({"properties": properties} if properties else {})
        | ({"required": required} if required else {})
        | {KEEP_UNKNOWN: True}
        | _closed(shape, len(required))
        | _without(shape, context)
    )


def _property(name: str, of: Field[Any], context: SchemaContext) -> Schema:
    return structural(of.shape, sentence(of), context) | (_NULLABLE if context.keeps_null(name, of) else {})


def _without(shape: Record[Any], context: SchemaContext) -> Schema:
    """Forbid refused fields, and null where it is kept.

    An API server checks only the type of a null, so `not: {}` matches a null and nothing else.
    """
    refused = [{"required": [name]} for name, of in shape.fields.items() if of.refused]
    wrong = [name for name, of in shape.fields.items() if context.refuses_null(name, of)]
    nulls = [{"required": [name], "properties": {name: {"not": {}}}} for name in wrong]
    return {"not": {"anyOf": [*refused, *nulls]}} if refused or nulls else {}


def _closed(shape: Record[Any], required: int) -> Schema:
    optional = [name for name, of in shape.fields.items() if not of.required]
    if not optional:
        return {"maxProperties": required}
    if len(optional) > shape.counted:
        return {}
    alternatives = [
        ({"required": list(present)} if present else {}) | {"maxProperties": required + len(present)}
        for count in range(len(optional) + 1)
        for present in combinations(optional, count)
    ]
    return {"anyOf": alternatives}


def rules_of(shape: Shape[Any]) -> list[Constraint]:
    """Return the rules of a shape that an API server can check."""
    match shape:
        case Text() | ListOf() | MapOf():
            rules: tuple[object, ...] = (shape.rule,)
        case Record():
            rules = shape.rules
        case Whole() | Choice() | Flag() | Anything():
            rules = ()
    return [rule for rule in rules if isinstance(rule, Constraint)]


def _demands(shape: Shape[Any]) -> Schema:
    schema: Schema = {}
    for rule in rules_of(shape):
        schema |= rule.schema
    cel = [cel for rule in rules_of(shape) for cel in rule.cel if not cel.mesh]
    if isinstance(shape, MapOf) and (
        shape.served or "maxProperties" in schema
    ):  # without a bound, its estimated cost is unlimited
        cel.append(_NO_NULL_VALUES)
    if cel:
        schema["x-kubernetes-validations"] = [{"rule": rule.rule, "message": rule.message} for rule in cel]
    return schema


def sentence(of: Field[Any]) -> str | None:
    """Return the description of a field, or of its shape if the field has none."""
    return of.about or _describe(of.shape)


def _describe(shape: Shape[Any]) -> str | None:
    if isinstance(shape, Record) and shape.about:
        return shape.about
    match shape:
        case Choice():
            return f"{enumerated(shape.options, 'or')}."
        case Anything():
            return None
    return f"{shape.what[0].upper()}{shape.what[1:]}."


# The status of a policy: conditions for each target and controller (GEP-713), or one list of conditions.


_LABELS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def _text(about: str, **more: object) -> Schema:
    return {"type": "string", "description": about, **more}


def _conditions(most: int) -> Schema:
    condition: Schema = {
        "type": "object",
        "properties": {
            "type": _text("The type of the condition, such as Accepted.", maxLength=316),
            "status": _text("Whether it holds.", enum=["True", "False", "Unknown"]),
            "reason": _text("The reason, in one word.", minLength=1, maxLength=1024),
            "message": _text("The reason, in a sentence.", maxLength=32768),
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "description": "The generation of the resource that the condition is about.",
            },
            "lastTransitionTime": _text("The time of the last change of the status.", format="date-time"),
        },
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    }
    return {
        "type": "array",
        "description": "The conditions of the resource.",
        "maxItems": most,
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }


_ANCESTOR: Schema = {
    "type": "object",
    "properties": {
        "ancestorRef": {
            "type": "object",
            "description": "The subject of the entry: the target, or the object that the target belongs to.",
            "properties": {
                "group": _text("Its group.", maxLength=253),
                "kind": _text("Its kind.", maxLength=63),
                "namespace": _text("Its namespace.", maxLength=63),
                "name": _text("Its name.", minLength=1, maxLength=253),
                "sectionName": _text("A part of it.", maxLength=253),
                "port": {
                    "type": "integer",
                    "format": "int32",
                    "minimum": 1,
                    "maximum": 65535,
                    "description": "A port.",
                },
            },
            "required": ["name"],
        },
        "controllerName": _text(
            "The controller that wrote the entry: <domain>/<path>.",
            minLength=1,
            maxLength=253,
            pattern=rf"^{_LABELS}/[A-Za-z0-9/._~%-]+$",
        ),
        "conditions": _conditions(8),
    },
    "required": ["ancestorRef", "controllerName", "conditions"],
}

POLICY_STATUS: Schema = {
    "type": "object",
    "description": "The status of the policy.",
    "properties": {
        "ancestors": {
            "type": "array",
            "description": "For each target of the policy and each controller, whether the policy is in force.",
            "maxItems": 16,
            "items": _ANCESTOR,
            "x-kubernetes-list-type": "atomic",
        }
    },
    "required": ["ancestors"],
}

CONDITIONS: Schema = {
    "type": "object",
    "description": "The status of the resource.",
    "properties": {
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The generation of the resource that the status is about.",
        },
        "conditions": _conditions(8),
    },
}
