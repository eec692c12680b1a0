"""The objects of a text, and the search for their positions."""

from __future__ import annotations

import json

import pytest
import yaml

from eastgate.reading.manifests import Document, Plain, ReadResult, read_nodes_text, read_objects, read_text
from eastgate.reading.manifests.objects import Positioned

from .reading import POD, always, never, reading_of


def _object(kind: str, name: str, **more: Plain) -> dict[str, Plain]:
    return {"apiVersion": "v1" if kind == "Pod" else "g.io/v1", "kind": kind, "metadata": {"name": name}, **more}


def _policies(api_version: str, kind: str) -> bool:
    return (api_version, kind) == ("g.io/v1", "Policy")


_ITEMS: list[Plain] = [
    _object("Pod", "a", spec={"containers": [{"name": "é😀" * 3}]}),
    _object("Policy", "p", spec={"action": "ALLOW"}),
    _object("Pod", "b"),
]
_LIST: dict[str, Plain] = {"apiVersion": "v1", "items": _ITEMS, "kind": "List", "metadata": {"resourceVersion": ""}}
_ANCHORED: dict[str, Plain] = {"one": ["x"], "two": "y"}
_WRITTEN = {
    "documents": yaml.safe_dump_all(_ITEMS),
    "documents, kind last": yaml.safe_dump_all(
        [dict(reversed(list(item.items()))) for item in _ITEMS if isinstance(item, dict)], sort_keys=False
    ),
    "list": yaml.safe_dump(_LIST),
    "list, flow": yaml.safe_dump(_LIST, default_flow_style=True, allow_unicode=True),
    "list, indented": "apiVersion: v1\nkind: List\nitems:\n"
    + "".join(f"  -   {yaml.safe_dump(item, default_flow_style=True, width=999)}" for item in _ITEMS),
    "list in a list": yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [_LIST]}),
    "list with aliases": yaml.safe_dump(_LIST | {"metadata": _ANCHORED})
    .replace("one:", "one: &one")
    .replace("two: y", "two: *one"),
    "json": "\n".join(json.dumps(item) for item in _ITEMS),
    "json list": json.dumps(_LIST),
    "json list, indented": json.dumps(_LIST, indent=2, ensure_ascii=False),
    "json list in a list": json.dumps({"apiVersion": "v1", "kind": "List", "items": [_LIST]}),
    "json in yaml documents": "---\n" + "\n---\n".join(json.dumps(item, ensure_ascii=False) for item in _ITEMS),
}


@pytest.mark.parametrize("text", _WRITTEN.values(), ids=_WRITTEN.keys())
def test_the_same_objects_come_out_of_every_way_to_write_them(text: str) -> None:
    reading = read_text("f", text, positioned=_policies)
    assert reading.reporter.diagnostics == []
    assert [(d.kind, d.name, d.node is None, d.data is None) for d in reading.documents] == [
        ("Pod", "a", True, False),
        ("Policy", "p", False, True),
        ("Pod", "b", True, False),
    ]
    assert [d.data if d.node is None else d.node.plain() for d in reading.documents] == _ITEMS
    first, policy, last = reading.documents
    assert policy.locate("spec", "action").underlined.strip('"') == "ALLOW"
    assert first.locate("spec", "containers", 0, "name").underlined.strip('"') in (
        "é😀" * 3,
        "\\xE9\\U0001F600" * 3,
        "\\u00e9\\ud83d\\ude00" * 3,
    )
    assert last.locate("metadata", "name").underlined.strip('"') == "b"
    assert all(_starts_object(d) for d in reading.documents)


def _starts_object(document: Document) -> bool:
    return document.span.underlined.startswith(("apiVersion", "kind", "metadata", "spec", "{"))


def test_a_plain_document_is_located_without_keeping_positions_before() -> None:
    (document,) = reading_of("# c\n\n" + POD + "  labels: {app: x}\n").documents
    assert document.node is None
    assert str(document.span) == "f.yaml:3:1"
    assert str(document.locate("metadata", "labels", "app")) == "f.yaml:7:17"
    assert str(document.locate("metadata", "annotations", "x")) == "f.yaml:6:3"
    assert str(document.locate()) == str(document.span) == "f.yaml:3:1"


@pytest.mark.parametrize(
    ("api_version", "group", "version"),
    [("v1", "", "v1"), ("apps/v1", "apps", "v1"), ("a.b.c/v1alpha2", "a.b.c", "v1alpha2")],
)
def test_an_api_version_is_a_group_and_a_version(api_version: str, group: str, version: str) -> None:
    (document,) = reading_of(POD.replace("v1", api_version)).documents
    assert (document.api_version, document.group, document.version) == (api_version, group, version)


@pytest.mark.parametrize(
    ("written", "namespace"), [("", None), ("namespace:", None), ('namespace: ""', None), ("namespace: x", "x")]
)
def test_a_namespace_is_the_written_one(written: str, namespace: str | None) -> None:
    (document,) = reading_of(f"{POD}  {written}\n").documents
    assert document.namespace == namespace


def test_the_entries_of_a_typed_list_are_of_its_type() -> None:
    text = json.dumps(
        {
            "apiVersion": "g.io/v1",
            "kind": "PolicyList",
            "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
        }
    )
    for positioned in (always, never):
        reading = read_text("f.json", text, positioned=positioned)
        assert reading.reporter.diagnostics == []
        assert [(d.api_version, d.kind, d.name) for d in reading.documents] == [
            ("g.io/v1", "Policy", "a"),
            ("g.io/v1", "Policy", "b"),
        ]


def test_an_object_with_a_name_is_no_list_whatever_its_kind_is_called() -> None:
    (document,) = reading_of("apiVersion: g.io/v1\nkind: AllowList\nmetadata: {name: a}\nitems: [x]\n").documents
    assert (document.kind, document.data is not None) == ("AllowList", True)


@pytest.mark.parametrize("kind", ["ConfigMap", "ConfigMapList"])
@pytest.mark.parametrize("positioned", [always, never])
def test_a_document_with_objects_in_items_is_a_list_of_any_kind(kind: str, positioned: Positioned) -> None:
    item = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}'
    text = f'{{"apiVersion": "v1", "kind": "{kind}", "metadata": {{"name": "a"}}, "items": [{item}]}}'
    for name in ("f.json", "f.yaml"):
        reading = read_text(name, text, positioned=positioned)
        assert [(one.kind, one.name) for one in reading.documents] == [("Pod", "p")]


@pytest.mark.parametrize("items", ["items: []", "items:", "items: null"])
def test_an_empty_list_is_no_mistake(items: str) -> None:
    reading = reading_of(f"apiVersion: v1\nkind: List\n{items}\n")
    assert (reading.documents, reading.reporter.diagnostics) == ([], [])


def test_lists_inside_each_other_have_an_end() -> None:
    text = "{apiVersion: v1, kind: List, items: [" * 30 + "]}" * 30
    (finding,) = reading_of(text).reporter.diagnostics
    assert finding.code.id == "EG1014"


@pytest.mark.parametrize(
    ("name", "text", "skipped"),
    [
        ("x/kustomization.yaml", "resources: [a]\n", 1),
        ("kustomization.yml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", 1),
        ("Chart.yaml", "apiVersion: v2\nname: x\n", 1),
        ("values.yaml", "a: 1\n---\nb: 1\n", 2),
        ("values-prod.yaml", "a: 1\n", 1),
        ("eastgate.yaml", "trustDomain: x\n", 1),
    ],
)
def test_files_of_other_tools_are_skipped_and_counted(name: str, text: str, skipped: int) -> None:
    reading = reading_of(text, name)
    assert (reading.documents, reading.reporter.diagnostics) == ([], [])
    assert reading.skipped == {name.rpartition("/")[2]: skipped}


@pytest.mark.parametrize("name", ["pods.yaml", "myvalues.yaml", "Chart.yaml.bak", "kustomization.json"])
def test_in_other_files_it_is_a_mistake(name: str) -> None:
    reading = reading_of('{"a": 1}', name)
    assert [finding.code.id for finding in reading.reporter] == ["EG1030"]
    assert reading.skipped == {}


def test_an_object_in_a_file_that_is_known_for_others_is_read() -> None:
    assert [d.name for d in reading_of(POD, "values.yaml").documents] == ["a"]


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "Service"},
        {"apiVersion": "g/v1"},
        {"metadata": {"name": "b"}},
        {"metadata": {"name": "a", "namespace": "x"}},
    ],
)
def test_objects_that_differ_in_group_kind_namespace_or_name_are_different(other: dict[str, Plain]) -> None:
    text = yaml.safe_dump_all([_object("Pod", "a"), {**_object("Pod", "a"), **other}])
    assert len(reading_of(text).documents) == 2


def test_a_document_with_a_duplicate_key_is_still_given_with_the_first_value() -> None:
    reading = reading_of(POD + "spec: 1\nspec: 2\n")
    assert [finding.code.id for finding in reading.reporter] == ["EG1015"]
    assert [d.data["spec"] for d in reading.documents if d.data] == [1]


def test_inline_objects_become_documents_of_a_reading() -> None:
    written = [json.dumps(item, ensure_ascii=False) for item in (_ITEMS[0], _ITEMS[1], _ITEMS[0], {"kind": "Pod"})]
    text = "spec:\n  objects:\n" + "".join(f"  - {item}\n" for item in written)
    (root,) = read_nodes_text("test.yaml", text).nodes
    into = ReadResult()
    assert read_objects(root["spec"]["objects"], positioned=_policies, into=into) is into
    assert [(d.name, d.node is None) for d in into.documents] == [("a", True), ("p", False)]
    assert str(into.documents[0].span) == "test.yaml:3:5"
    assert into.documents[0].locate("metadata", "name").underlined == '"a"'
    assert [finding.code.id for finding in into.reporter] == ["EG1036", "EG1031", "EG1034"]
    assert len(read_objects(root["spec"]["objects"], positioned=never).documents) == 2
