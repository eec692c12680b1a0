"""The definitions satisfy the rules for structural schemas, and cover every kind that Eastgate reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import re2

from eastgate.dialects import DIALECTS
from eastgate.reports.crds import Webhook, admission_policies, definitions, editor_schemas
from eastgate.reports.crds.definitions import readable
from eastgate.reports.kinds import matches_kind, word_of
from eastgate.settings import MeshMode
from tests.reports.crds.api_server import served
from tests.reports.crds.test_agreement import all_rules

Schema = dict[str, Any]

KINDS = sorted(served())
_NOT_IN_ALTERNATIVES = {"description", "type", "default", "additionalProperties", "nullable"}
_RESERVED = frozenset(
    "as break const continue else for function if import let loop package namespace return".split()  # noqa: SIM905
)


def nodes(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, one in schema.get("properties", {}).items():
        yield from nodes(one, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from nodes(schema[name], f"{path}[]")


def alternatives(schema: Schema) -> list[Schema]:
    return [*schema.get("anyOf", []), *schema.get("allOf", []), *([schema["not"]] if "not" in schema else [])]


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_every_place_has_a_type_or_takes_anything(kind: tuple[str, str]) -> None:
    for path, node in nodes(served()[kind]):
        assert "type" in node or node.get("x-kubernetes-preserve-unknown-fields"), path
        assert not {"$ref", "uniqueItems", "definitions", "patternProperties"} & node.keys(), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert node.get("additionalProperties") is not False, path


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_alternatives_only_narrow(kind: tuple[str, str]) -> None:
    for path, node in nodes(served()[kind]):
        for one in alternatives(node):
            assert not _NOT_IN_ALTERNATIVES & one.keys(), path
            assert not any(name.startswith("x-") for name in one), path
            assert set(one.get("required", ())) <= node["properties"].keys() if "required" in one else True, path


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_the_keys_of_a_list_are_required_in_its_entries(kind: tuple[str, str]) -> None:
    for path, node in nodes(served()[kind]):
        assert set(node.get("x-kubernetes-list-map-keys", ())) <= set(node.get("items", {}).get("required", ())), path
        if node.get("x-kubernetes-list-type") == "set":
            assert node["items"]["type"] in ("string", "integer"), path


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_every_field_of_a_spec_has_a_description(kind: tuple[str, str]) -> None:
    for path, node in nodes(served()[kind]["properties"]["spec"], "spec"):
        for name, one in node.get("properties", {}).items():
            assert one.get("description", "").endswith("."), f"{path}.{name}"


@pytest.mark.parametrize("kind", KINDS, ids=" ".join)
def test_every_record_of_a_spec_refuses_unknown_fields(kind: tuple[str, str]) -> None:
    for path, node in nodes(served()[kind]["properties"]["spec"], "spec"):
        if "properties" in node:
            assert node["x-kubernetes-preserve-unknown-fields"], path
            if len(node["properties"]) > 6 and "authScheme" in path:
                continue  # too many optional fields to count: unknown fields are kept, and Eastgate rejects them
            assert "maxProperties" in node or all("maxProperties" in one for one in node["anyOf"]), path


def test_patterns_are_re2() -> None:
    for schema in served().values():
        for _, node in nodes(schema):
            for one in (node, *alternatives(node)):
                if "pattern" in one:
                    re2.compile(one["pattern"])
                    re.compile(one["pattern"])


def test_rules_use_only_functions_of_every_api_server() -> None:
    known = {"has", "size", "matches", "all", "exists", "exists_one", "filter", "contains", "dyn"}
    for rule in all_rules():
        code = re.sub(r"r?'[^']*'", "''", rule)
        assert set(re.findall(r"(\w+)\(", code)) - {"in"} <= known, rule
        assert not any(re.search(rf"\.{word}\b", code) for word in _RESERVED), rule


def test_one_version_is_stored_and_superseded_ones_need_a_converter() -> None:
    for one in definitions():
        versions = one["spec"]["versions"]
        assert [version["storage"] for version in versions].count(True) == 1
        assert all(version["served"] is not version.get("deprecated", False) for version in versions)
        assert "conversion" not in one["spec"]
    converted = definitions(Webhook("eastgate", "webhook"))
    assert all(version["served"] for one in converted for version in one["spec"]["versions"])
    assert [one["spec"]["names"]["kind"] for one in converted if "conversion" in one["spec"]] == ["AuthorizationPolicy"]


@pytest.mark.parametrize("mode", MeshMode)
def test_every_admission_policy_is_bound(mode: MeshMode) -> None:
    made = admission_policies(mode)
    policies = {one["metadata"]["name"] for one in made if one["kind"] == "ValidatingAdmissionPolicy"}
    bound = {one["spec"]["policyName"] for one in made if one["kind"] == "ValidatingAdmissionPolicyBinding"}
    assert policies == bound
    assert all(one["spec"]["failurePolicy"] == "Fail" for one in made if "failurePolicy" in one["spec"])


def test_every_kind_that_is_read_has_a_schema() -> None:
    read = {kind.key for dialect in DIALECTS for kind in (*dialect.kinds, *dialect.objects)}
    assert {(one.group, one.version, one.kind) for one in readable()} == read


def test_schemas_for_editors_are_schemas() -> None:
    for _, schema in editor_schemas():
        jsonschema.Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("one", definitions(), ids=lambda one: str(one["spec"]["names"]["kind"]))
def test_eastgate_get_takes_every_name_of_a_definition(one: Schema) -> None:
    names = one["spec"]["names"]
    words = [names["plural"], names["singular"], names["kind"], *names["shortNames"]]
    for word in (*words, *(f"{word}.{one['spec']['group']}" for word in words)):
        assert matches_kind(word_of(word), names["kind"], one["spec"]["group"]), word


def test_no_short_name_is_one_of_others() -> None:
    """Istio's AuthorizationPolicy is `ap`, Linkerd's `authzpolicy`; kubectl's own kinds have short names too."""
    others = {"ap", "authzpolicy", "saz", "serverauthz", "srvauthz", "srv", "nsauthz", "meshtlsauthn", "netauthn", "pa"}
    taken = [short for one in definitions() for short in one["spec"]["names"]["shortNames"]]
    assert len(taken) == len(set(taken))
    assert not others & set(taken)
