"""As much of an API server as a policy meets: nulls and unknown fields dropped, the schema, CEL, admission policies.

A real one is asked whether this is right (`test_server`).

Written from the documentation of CustomResourceDefinitions and on the reference implementation of JSON Schema, with
RE2 for patterns and the CEL team's own core for rules. It shares nothing with the checks of the product.
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

used_rules: dict[str, set[bool]] = {}  # each CEL rule that was asked, with its answers


@cache
def _compiled(rule: str, variable: str) -> Any:
    return cel.NewEnv(variables={variable: cel.Type.DYN}).compile(rule)


def holds(rule: str, variable: str, value: object) -> bool:
    """What a rule says; an error is a refusal, as in an API server."""
    answer = _compiled(rule, variable).eval(data={variable: value}).plain_value()
    used_rules.setdefault(rule, set()).add(answer is True)
    return answer is True


def _type(validator: Any, kind: str, instance: object, schema: Schema) -> Iterator[ValidationError]:
    if instance is None and schema.get("nullable"):
        return
    yield from Draft7Validator.VALIDATORS["type"](validator, kind, instance, schema)


def _not_of_null(keyword: str) -> Any:
    """Of a null an API server checks the type and the choices, and nothing else."""

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
    """The schema of each kind in each version, by apiVersion and kind."""
    return {
        (f"{one['spec']['group']}/{version['name']}", one["spec"]["names"]["kind"]): version["schema"][
            "openAPIV3Schema"
        ]
        for one in definitions()
        for version in one["spec"]["versions"]
    }


def without_nulls(value: object, schema: Schema) -> object:
    """An API server drops a null where the schema knows the field and does not allow null."""
    if isinstance(value, list):
        return [without_nulls(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict):
        return value
    known = {key: schema.get("properties", {}).get(key, schema.get("additionalProperties")) for key in value}
    dropped = {key for key, of in known.items() if value[key] is None and of is not None and not of.get("nullable")}
    return {key: without_nulls(one, known[key] or {}) for key, one in value.items() if key not in dropped}


def pruned(value: object, schema: Schema) -> object:
    """Without the fields that the schema does not name, except where it keeps them."""
    if isinstance(value, list):
        return [pruned(one, schema.get("items", {})) for one in value]
    if not isinstance(value, dict) or schema.get("type") != "object":
        return value
    known, keep = schema.get("properties", {}), schema.get("x-kubernetes-preserve-unknown-fields", False)
    more = schema.get("additionalProperties")
    if not known and more is None:  # metadata, which the API server itself knows
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
    """What is wrong with a value of which nothing is dropped any more."""
    return [error.message for error in _Validator(schema).iter_errors(value)]


def refusals(manifest: Schema, mode: MeshMode) -> list[str]:
    """Why an API server refuses to take an object; nothing where it takes it."""
    kind = (str(manifest["apiVersion"]), str(manifest["kind"]))
    schema = served()[kind]
    stored = pruned(without_nulls(manifest, schema), schema)
    found = schema_errors(schema, stored)
    if not found:  # admission policies see only what the schema has let through
        found += [one["message"] for one in _admission(mode)[kind] if not holds(one["expression"], "object", stored)]
    return found
