"""No text makes the readers raise or disagree with each other."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eastgate.basics.diagnostics import Reporter, render_all
from eastgate.reading.manifests import Plain, ReadResult, read_nodes_text, read_text
from eastgate.reading.manifests.yaml.nodes import read_yaml_node

from .reading import always, json_nodes, json_plain, never, reading_of, spans_are_inside, text_of, yaml_node, yaml_plain
from .strategies import MANIFESTS, mutated_manifests, plain_values, soups

_MANY = settings(max_examples=400, deadline=None)
_NAMES = st.sampled_from(["f.yaml", "f.json", "<stdin>", "values.yaml"])


def _is_sound(reading: ReadResult) -> None:
    """Check the properties of every reading of any text."""
    render_all(reading.reporter)
    for finding in reading.reporter:
        assert finding.span is not None or finding.code.id == "EG1002"
        assert finding.message.isprintable()
        assert finding.help is None or finding.help.isprintable()
    for document in reading.documents:
        assert (document.node is None) != (document.data is None)
        assert document.name
        assert document.span.line >= 1
        assert document.locate("metadata", "name").underlined
        assert document.node is None or spans_are_inside(document.node)


@_MANY
@given(_NAMES, st.text() | st.binary())
def test_arbitrary_input_never_raises(name: str, content: str | bytes) -> None:
    _is_sound(read_text(name, content, positioned=never))


@_MANY
@given(_NAMES, soups(), st.booleans())
@example("f.yaml", "items:\n-", False)
@example("f.yaml", "\x85--- a\n...\n%TAG", False)
@example("f.yaml", "\ufeff\ufeff-", False)
@example("f.yaml", "\ufeff\ufeff&", False)
@example("f.yaml", "\ufeff\ufeff*", False)
@example("f.yaml", "...\n\ufeffa: 1", False)
def test_text_made_of_syntax_never_raises(name: str, content: str, positioned: bool) -> None:
    _is_sound(read_text(name, content, positioned=always if positioned else never))
    read_nodes_text(name, content)


@_MANY
@given(_NAMES, mutated_manifests())
def test_damaged_manifests_never_raise_and_say_the_same_with_and_without_positions(name: str, content: str) -> None:
    plain = read_text(name, content, positioned=never)
    nodes = read_text(name, content, positioned=always)
    _is_sound(plain)
    _is_sound(nodes)
    assert [d.data for d in plain.documents] == [d.node.plain() for d in nodes.documents if d.node is not None]
    assert [f.to_json() for f in plain.reporter] == [f.to_json() for f in nodes.reporter]
    for one, other in zip(plain.documents, nodes.documents, strict=True):
        assert str(one.locate("metadata", "name")) == str(other.locate("metadata", "name"))


@_MANY
@given(mutated_manifests() | soups())
def test_both_yaml_readers_agree_on_texts_that_the_fast_one_accepts(content: str) -> None:
    content = content.encode("utf-8", "replace").decode()
    fast = yaml_plain(content.removeprefix("\ufeff"))
    if fast is None:
        return
    reporter = Reporter()
    node = yaml_node(content, reporter)
    assert reporter.diagnostics == []
    assert fast.value == (None if node is None else node.plain())


@_MANY
@given(mutated_manifests() | soups())
def test_both_json_readers_agree_on_texts_that_the_fast_one_accepts(content: str) -> None:
    content = content.encode("utf-8", "replace").decode().removeprefix("\ufeff")
    fast = json_plain(content)
    reporter = Reporter()
    nodes = json_nodes(content, reporter)
    if fast is not None:
        assert reporter.diagnostics == []
        assert [node.plain() for node in nodes] == [fast.value]
    elif not reporter.diagnostics and len(nodes) == 1:
        assert json.loads(content) == nodes[0].plain()  # the fast reader was only careful


def _same(ours: Plain, theirs: Plain) -> bool:
    return json.dumps(ours) == json.dumps(theirs)


@_MANY
@given(plain_values(), st.sampled_from([None, True, False]), st.booleans())
def test_yaml_has_the_meaning_of_pyyaml(value: Plain, flow: bool | None, unicode: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, sort_keys=False, allow_unicode=unicode)
    fast = yaml_plain(text)
    node = yaml_node(text)
    assert yaml.safe_load(text) == value
    assert node is not None
    assert _same(node.plain(), value)
    assert spans_are_inside(node)
    if fast is not None:  # equal lists inside are written as anchors and aliases
        assert _same(fast.value, value)
    else:
        assert any(unusual in text for unusual in ("&id", "<<", "?", "\\/"))


@_MANY
@given(plain_values(), st.sampled_from([None, 2]), st.booleans())
def test_json_has_the_meaning_of_python(value: Plain, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    (node,) = json_nodes(text)
    assert _same(node.plain(), value)
    assert spans_are_inside(node)
    fast = json_plain(text)
    if fast is not None:
        assert _same(fast.value, value)
        assert text[slice(*fast.extent)] == text
        if isinstance(value, dict) and isinstance(value.get("items"), list):
            assert [json.loads(text[slice(*extent)]) for extent in fast.items] == value["items"]


@_MANY
@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "items"]), plain_values(), max_size=3), max_size=4),
    st.booleans(),
)
def test_each_entry_of_a_yaml_list_can_be_read_again_alone(items: list[Plain], flow: bool) -> None:
    text = "# before\n" + yaml.safe_dump(
        {"first": 1, "items": items, "last": 2}, default_flow_style=flow, sort_keys=False
    )
    fast = yaml_plain(text)
    if fast is None:
        assert any(unusual in text for unusual in ("&id", "<<", "?", "\\/"))
        return
    whole = yaml_node(text)
    assert whole is not None
    for extent, item in zip(fast.items, whole["items"], strict=True):
        reporter = Reporter()
        again = read_yaml_node(text_of(text), *extent, reporter)
        assert reporter.diagnostics == []
        assert again is not None
        assert repr(again) == repr(item)


@pytest.mark.parametrize("content", MANIFESTS)
def test_the_manifests_that_are_damaged_above_are_right(content: str) -> None:
    reading = reading_of(content)
    assert reading.reporter.diagnostics == []
    assert reading.documents
