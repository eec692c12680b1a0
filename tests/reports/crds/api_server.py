"""A model of an API server: it drops nulls and unknown fields, and applies the schema, CEL and admission policies.

`test_server` compares the model with a real API server.

It is written from the documentation of CustomResourceDefinitions, on the reference implementation of JSON Schema, with
RE2 for patterns and the CEL team's own core for rules. It shares no code with the checks of the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import re2
from cel_expr_python import cel  # type: ignore[import-untyped]
from jsonschema import Draft7Validator, ValidationError
from jsonschema.validators import extend

from eastgate.reports.crds import admission_policies, definitions
from eastgate.settings import MeshMode

Schema = dict[str, Any]

used_rules: dict[str, set[bool]] = {}  # each evaluated CEL rule, with its results


@cache
def _compiled(rule: str, variable: str) -> Any:
    return cel.NewEnv(variables={variable: cel.Type.DYN}).compile(rule)


def holds(rule: str, variable: str, value: object) -> bool:
    """Return the result of a rule. An error is a refusal, as in an API server."""
    answer = _compiled(rule, variable).eval(data={variable: value}).plain_value()
    used_rules.setdefault(rule, set()).add(answer is True)
    return answer is True


def _type(validator: Any, kind: str, instance: object, schema: Schema) -> Iterator[ValidationError]:
    if instance is None and schema.get("nullable"):
        return
    yield from Draft7Validator.VALIDATORS["type"](validator, kind, instance, schema)


def _not_of_null(keyword: str) -> Any:
    """Return a keyword that accepts every null. An API server checks only the type and the choices of a null."""

    def check(validator: Any, value: Any, instance: object, schema: Schema) -> Iterator[ValidationError]:
        if instance is not None:
            yield from Draft7Validator.VALIDATORS[keyword](validator, value, instance, schema)

    return check


def _pattern(_validator: Any, pattern: str, instance: object, _schema: Schema) -> Iterator[ValidationError]:
    if isinstance(instance, str) and re2.search(pattern, instance) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _rules(
    _validator: Any, rules: list[dict[str, str]], instance: object, _schema: Schema
) -> Iterator[ValidationError]:
    for rule in rules if instance is not None else ():
        if not holds(rule["rule"], "self", instance):
            yield ValidationError(rule["message"])


def _list_type(_validator: Any, kind: str, instance: object, schema: Schema) -> Iterator[ValidationError]:
    if not isinstance(instance, list) or kind == "atomic":
        return
    keys = schema.get("x-kubernetes-list-map-keys", [])
    seen = [[item.get(key) for key in keys] if kind == "map" and isinstance(item, dict) else item for item in instance]
    if any(item in seen[:place] for place, item in enumerate(seen)):
        yield ValidationError("Duplicate value")


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft7Validator,
    {
        "type": _type,
        "pattern": _pattern,
        "x-kubernetes-validations": _rules,
        "x-kubernetes-list-type": _list_type,
        **{keyword: _not_of_null(keyword) for keyword in ("allOf", "anyOf", "not")},
    },
)


@cache
def served() -> dict[tuple[str, str], Schema]:
    """Return the schema of each kind in each version, by apiVersion and kind."""
    return {
        (f"{one['spec']['group']}/{version['name']}", one["spec"]["names"]["kind"]): version["schema"][
            "openAPIV3Schema"
        ]
        for one in definitions()
        for version in one["spec"]["versions"]
    }


def without_nulls(value: object, schema: Schema) -> object:
    """Return a value without nulls that the schema names but does not allow. An API server drops them."""
    if isinstance(value, list):
        return [without_nulls(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict):
        return value
    known = {key: schema.get("properties", {}).get(key, schema.get("additionalProperties")) for key in value}
    dropped = {key for key, of in known.items() if value[key] is None and of is not None and not of.get("nullable")}
    return {key: without_nulls(one, known[key] or {}) for key, one in value.items() if key not in dropped}


def pruned(value: object, schema: Schema) -> object:
    """Return a value without fields that the schema does not name, except where it keeps them."""
    if isinstance(value, list):
        return [pruned(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict) or schema.get("type") != "object":
        return value
    known, keep = schema.get("properties", {}), schema.get("x-kubernetes-preserve-unknown-fields", False)
    more = schema.get("additionalProperties")
    if not known and more is None:  # metadata, whose schema the API server has
        return value
    return {key: pruned(one, known.get(key, more or {})) for key, one in value.items() if key in known or more or keep}


def _resource(policy: Schema) -> tuple[str, str]:
    rule = policy["spec"]["matchConstraints"]["resourceRules"][0]
    return f"{rule['apiGroups'][0]}/{rule['apiVersions'][0]}", rule["resources"][0]


@cache
def _admission(mode: MeshMode) -> dict[tuple[str, str], list[dict[str, str]]]:
    plurals = {one["spec"]["names"]["plural"]: one["spec"]["names"]["kind"] for one in definitions()}
    made = [one for one in admission_policies(mode) if one["kind"] == "ValidatingAdmissionPolicy"]
    return {
        (version, plurals[plural]): one["spec"]["validations"] for one in made for version, plural in [_resource(one)]
    }


def schema_errors(schema: Schema, value: object) -> list[str]:
    """Return the schema errors of a value after pruning."""
    return [error.message for error in _Validator(schema).iter_errors(value)]


def refusals(manifest: Schema, mode: MeshMode) -> list[str]:
    """Return the reasons why an API server refuses an object; empty if it accepts the object."""
    kind = (str(manifest["apiVersion"]), str(manifest["kind"]))
    schema = served()[kind]
    stored = pruned(without_nulls(manifest, schema), schema)
    found = schema_errors(schema, stored)
    if not found:  # admission policies see only objects that fit the schema
        found += [one["message"] for one in _admission(mode)[kind] if not holds(one["expression"], "object", stored)]
    return found
