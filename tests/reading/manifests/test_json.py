"""JSON: the fast reader with its proof that no key was lost, and the precise reader with its positions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import Plain

from .reading import found, json_nodes, json_plain, place, reading_of

_KEYS = st.sampled_from(["a", "b", "a\\\\", '\\"', 'x\\":', ": y", "c:", " :", ""])
_SPACES = st.sampled_from(["", " ", "\n", "\t ", "\r\n"])


@st.composite
def _objects(draw: st.DrawFn, depth: int = 2) -> str:
    """Draw JSON objects, often with a duplicate key, and with many texts that look like the end of a key."""
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        value = f'"{draw(_KEYS)}"' if not depth or draw(st.booleans()) else draw(_objects(depth - 1))
        parts.append(f'"{draw(_KEYS)}"{draw(_SPACES)}:{draw(_SPACES)}{value}')
    return "{" + draw(_SPACES) + ",".join(parts) + "}"


def _has_duplicates(text: str) -> bool:
    found: list[bool] = []

    def check(pairs: list[tuple[str, Plain]]) -> None:
        found.append(len({key for key, _ in pairs}) < len(pairs))

    json.loads(text, object_pairs_hook=check)
    return any(found)


@settings(max_examples=600, deadline=None)
@given(_objects())
def test_no_duplicate_key_passes_the_fast_reader(text: str) -> None:
    fast = json_plain(text)
    reporter = Reporter()
    json_nodes(text, reporter)
    assert {finding.code.id for finding in reporter} == ({"EG1015"} if _has_duplicates(text) else set())
    if _has_duplicates(text):
        assert fast is None
    elif fast is not None:
        assert fast.value == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": {"c": [true, null]}}',
        '{"annotation": "{\\"kind\\":\\"Pod\\",\\"n\\":1}"}',  # `kubectl apply` stores the object in this form
        '{"a" : 1 , "b"\n: 2}',
        '{"url": "http://x:80", "ratio": "a: b", "é": "😀"}',
        "[]",
        "5",
        '"x"',
    ],
)
def test_usual_json_takes_the_fast_way(text: str) -> None:
    fast = json_plain(text)
    assert fast is not None
    assert fast.value == json.loads(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *[("0", 0), ("-0", 0), ("12", 12), ("-7", -7), ("18446744073709551616", 2**64), ("9" * 4300, int("9" * 4300))],
        *[("0.5", 0.5), ("-0.0", -0.0), ("1e3", 1000.0), ("1E-2", 0.01), ("0.1e-400", 0.0)],
        *[("true", True), ("false", False), ("null", None), ("[]", []), ("{}", {}), ("[ ]", []), ("{ }", {})],
        *[('""', ""), ('"\\u00e9\\n\\/\\"\\\\"', 'é\n/"\\'), ('"\\ud83d\\ude00"', "😀")],
        ('"\x7f\u2028"', "\x7f\u2028"),
    ],
)  # fmt: skip
def test_values(written: str, meant: Plain) -> None:
    text = f'{{"key": {written}}}'
    reporter = Reporter()
    (node,) = json_nodes(text, reporter)
    assert reporter.diagnostics == []
    value = node["key"].plain()
    assert (type(value), repr(value)) == (type(meant), repr(meant))
    fast = json_plain(text)
    assert fast is not None
    assert fast.value == {"key": meant}


_PLACES = """
{
  "list": [1, {"é😀": "x", "next": true}
  ],
\t"\u2028text" : "y"
}
"""


@pytest.mark.parametrize(
    ("path", "line", "column", "end_line", "end_column"),
    [
        ((), 2, 1, 7, 2),
        (("list",), 3, 11, 4, 4),
        (("list", 0), 3, 12, 3, 13),
        (("list", 1), 3, 15, 3, 40),
        (("list", 1, "é😀"), 3, 22, 3, 25),
        (("list", 1, "next"), 3, 35, 3, 39),
        (("\u2028text",), 6, 9, 6, 12),  # U+2028 ends a line in some editors
    ],
)
def test_every_value_knows_where_it_stands(
    path: tuple[str | int, ...], line: int, column: int, end_line: int, end_column: int
) -> None:
    (root,) = json_nodes(_PLACES)
    span = root.nearest(*path).span
    assert (span.line, span.column, span.end_line, span.end_column) == (line, column, end_line, end_column)
    assert root.key_span("list").underlined == '"list"'


def test_a_name_that_ends_in_json_means_json_and_other_texts_may_be_yaml() -> None:
    yaml_flow = "{apiVersion: v1, kind: Pod, metadata: {name: a},}"
    assert len(reading_of(yaml_flow, "f.yaml").documents) == 1
    assert len(reading_of(yaml_flow, "<stdin>").documents) == 1
    assert [finding.code.id for finding in found(yaml_flow, "f.JSON")] == ["EG1021"]


@pytest.mark.parametrize("name", ["<stdin>", "f.json"])
def test_values_may_stand_behind_each_other_and_a_broken_one_hides_only_itself(name: str) -> None:
    good = [json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}) for name in "abc"]
    assert [d.name for d in reading_of(" ".join(good), name).documents] == ["a", "b", "c"]
    broken = f'{good[0]}\n{{"x": }}\n{good[1]}\n{{\n"y": [\n{{}}\n\n{good[2]}'
    reading = reading_of(broken, "f.json")
    assert [d.name for d in reading.documents] == ["a", "b", "c"]
    assert [place(finding)[:3] for finding in reading.reporter] == [("EG1021", 2, 7), ("EG1021", 8, 1)]


def test_tabs_may_indent_json_wherever_it_stands() -> None:
    text = '{\n\t"apiVersion": "v1",\n\t"kind": "Pod",\n\t"metadata": {"name": "a"}\n}\n'
    assert [d.name for d in reading_of(text, "f.yaml").documents] == ["a"]
