"""JSON Schemas for editors: closed shapes, with a description of each field, for files with policies.

A JSON Schema cannot express every rule. `eastgate` checks the others.
"""

from __future__ import annotations

from typing import Any

from eastgate.reading.manifests.shapes import Anything, Choice, Flag, ListOf, MapOf, Record, Shape, Text, Whole
from eastgate.reading.manifests.shapes.shape import any_case, whole
from eastgate.reports.crds.definitions import Readable, readable
from eastgate.reports.crds.openapi import Schema, rules_of, sentence

DRAFT = "http://json-schema.org/draft-07/schema#"  # the newest draft that YAML language servers support in full


def editor_schemas() -> list[tuple[Readable, Schema]]:
    """Return the schema of each kind in each version, sorted by group, kind and version."""
    kinds = sorted(readable(), key=lambda kind: (kind.group, kind.kind, kind.version))
    return [(kind, {"$schema": DRAFT} | _resource(kind)) for kind in kinds]


def file_name(kind: Readable) -> str:
    """Return the path at which tools expect the schema of a kind: <group>/<kind>_<version>.json, in lower case."""
    return f"{kind.group}/{kind.kind.lower()}_{kind.version}.json"


def combine_schemas(schemas: list[tuple[Readable, Schema]]) -> Schema:
    """Return one schema for files with documents of any of the kinds. It accepts documents of other kinds."""
    return {
        "$schema": DRAFT,
        "title": "Authorization policies that Eastgate reads",
        "type": "object",
        "allOf": [{"if": _is(kind), "then": _without_draft(schema)} for kind, schema in schemas],
    }


def _is(kind: Readable) -> Schema:
    return {
        "properties": {"apiVersion": {"const": f"{kind.group}/{kind.version}"}, "kind": {"const": kind.kind}},
        "required": ["apiVersion", "kind"],
    }


def _without_draft(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name != "$schema"}


def _resource(kind: Readable) -> Schema:
    made = [_of_kind(shape, kind) for shape in kind.shapes]
    return made[0] if len(made) == 1 else {"title": kind.kind, "anyOf": made}


def _of_kind(shape: Record[Any], kind: Readable) -> Schema:
    schema: Schema = {"title": kind.kind, "description": shape.about or f"{kind.kind} of {kind.group}."}
    schema |= _schema(shape)
    schema["properties"] |= {
        "apiVersion": {"const": f"{kind.group}/{kind.version}"},
        "kind": {"const": kind.kind},
    }
    schema["required"] = ["apiVersion", "kind", *schema["required"]]
    return schema


def _schema(shape: Shape[Any], inside: frozenset[int] = frozenset()) -> Schema:
    """Return the schema of a shape. `inside` are the records around it; none of them is expanded again."""
    schema = _types(shape, inside)
    for rule in rules_of(shape):
        schema |= {name: value for name, value in rule.schema.items() if not name.startswith("x-")}
        if rule.schema.get("x-kubernetes-list-type") == "set":
            schema["uniqueItems"] = True
    return schema


def _types(shape: Shape[Any], inside: frozenset[int]) -> Schema:
    match shape:
        case Text():
            return {"type": "string"}
        case Whole():
            return {"type": "integer", "minimum": shape.minimum, "maximum": shape.maximum}
        case Choice():
            return _choice(shape)
        case Flag():
            return {"type": "boolean"}
        case ListOf():
            return {"type": "array", "items": _schema(shape.item, inside)}
        case MapOf():
            known = {name: _schema(of, inside) for name, of in shape.known.items()}
            properties = {"properties": known} if known else {}
            return {"type": "object"} | properties | {"additionalProperties": _schema(shape.value, inside)}
        case Record():
            return _record(shape, inside)
        case Anything():
            return {}


def _choice(shape: Choice) -> Schema:
    """Sort the words first, so that editors offer them."""
    words: Schema = {"type": "string", "enum": [str(option) for option in shape.options]}
    if not shape.any_case:
        return words
    return {"anyOf": [words, {"type": "string", "pattern": whole(any_case(*shape.options))}]}


def _record(shape: Record[Any], inside: frozenset[int]) -> Schema:
    if shape.served is not None or id(shape) in inside:
        return {"type": "object"}
    properties = {}
    for name, of in shape.fields.items():
        about = sentence(of)
        properties[name] = ({"description": about} if about else {}) | _schema(of.shape, inside | {id(shape)})
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [name for name, of in shape.fields.items() if of.required]
    return schema | ({"required": required} if required else {})
