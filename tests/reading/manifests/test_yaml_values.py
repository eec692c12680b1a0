"""The meaning of YAML, which is that of kubectl, and the position of each value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import Plain, read_nodes_text
from eastgate.reading.manifests.yaml.parser import chunks

from .reading import POD, place, places, reading_of, yaml_node, yaml_plain


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *[(word, None) for word in ["", "~", "null", "Null", "NULL"]],
        *[(word, True) for word in ["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"]],
        *[(word, False) for word in ["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"]],
        *[(word, word) for word in ["tRUE", "oN", "nULL", "yEs", "nil", "none", "true.", "a"]],
        *[("0", 0), ("80", 80), ("-1", -1), ("+12", 12), ("1_000", 1000), ("18446744073709551616", 2**64)],
        *[("0x1F", 31), ("0X1f", 31), ("-0x10", -16), ("0o17", 15), ("010", 8), ("-010", -8), ("0b101", 5)],
        *[("1.5", 1.5), (".5", 0.5), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0), ("1E-2", 0.01), ("1_0.5", 10.5)],
        (".1_5", 0.15),
        ("08", 8.0),  # not an octal number, so kubectl reads a decimal fraction
        *[(word, word) for word in ["0x", "0b2", "0xg", "0o8", "1.2.3", "1e", "+", ".", "._5", "1a", "--1", "٣"]],
        *[(word, word) for word in ["2026-11-15", "2001-12-14t21:59:43.10-05:00", "12:30:45", "190:20:30", "10.0.0.1"]],
        *[("'1'", "1"), ('"true"', "true"), ("''", ""), ("|-\n  5", "5"), (">-\n  5", "5"), ("a\n  b", "a b")],
        *[("! 5", "5"), ("!!str 5", "5"), ("!!str", ""), ("!!int '5'", 5), ("!!float 3", 3.0), ("!!float 0x10", 16.0)],
        *[("!!bool yes", True), ("!!bool 'no'", False), ("!!null ''", None)],
        *[("!!map {a: 1}", {"a": 1}), ("!!seq [1]", [1]), ("! [1]", [1])],
        ("[a, b: c, {d, e: }]", ["a", {"b": "c"}, {"d": None, "e": None}]),
        *[('"\\u00e9\\x41\\n"', "éA\n"), ("a#b # c", "a#b"), ("http://x/y", "http://x/y"), ("=", "=")],
    ],
)  # fmt: skip
def test_a_value_has_the_meaning_of_kubectl(written: str, meant: Plain) -> None:
    reporter = Reporter()
    node = yaml_node(f"key: {written}\n", reporter)
    assert reporter.diagnostics == []
    assert node is not None
    value = node["key"].plain()
    assert (type(value), value) == (type(meant), meant)
    fast = yaml_plain(f"key: {written}\n")
    assert fast is None or fast.value == {"key": meant}
    assert fast is not None or "!" in written


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a: &x 1\nb: *x\n", {"a": 1, "b": 1}),
        ("a: &x [1]\nb: &x [2]\nc: *x\n", {"a": [1], "b": [2], "c": [2]}),  # an anchor may be used again
        ("a: &x {k: v}\nb: {<<: *x, l: w}\n", {"a": {"k": "v"}, "b": {"k": "v", "l": "w"}}),
        ("a: &x {k: v, m: 1}\nb: {<<: *x, k: own}\n", {"a": {"k": "v", "m": 1}, "b": {"k": "own", "m": 1}}),
        ("a: &x {k: v, m: 1}\nb: {l: own, <<: *x}\n", {"a": {"k": "v", "m": 1}, "b": {"k": "v", "l": "own", "m": 1}}),
        ("b:\n  <<: {<<: {k: 1, l: 1}, k: 2}\n  l: 3\n", {"b": {"k": 2, "l": 3}}),
        ("b: {! <<: {k: 1}}\n", {"b": {"k": 1}}),
        ("b:\n  <<: [{k: first}, {k: second, l: 2}]\n", {"b": {"k": "first", "l": 2}}),
        ("'<<': 1\n", {"<<": 1}),
        ("&k key: 1\nother: *k\n", {"key": 1, "other": "key"}),
        ("&k key: 1\nb: {*k : 2}\n", {"key": 1, "b": {"key": 2}}),
        ("? a\n: b\n", {"a": "b"}),
    ],
)
def test_anchors_aliases_and_merges(written: str, meant: Plain) -> None:
    reporter = Reporter()
    node = yaml_node(written, reporter)
    assert reporter.diagnostics == []
    assert node is not None
    assert node.plain() == meant


_PLACES = """\
# a comment
apiVersion: "v1"   # é
list:
- one
-   two: 2
    three:
- [x, {y: 'z'}]
text: |
  literal

empty:
é😀: wide
"""


@pytest.mark.parametrize(
    ("path", "line", "column", "underlined"),
    [
        ((), 2, 1, 'apiVersion: "v1"   # é'),
        (("apiVersion",), 2, 13, '"v1"'),
        (("list",), 4, 1, "- one"),
        (("list", 0), 4, 3, "one"),
        (("list", 1), 5, 5, "two: 2"),
        (("list", 1, "two"), 5, 10, "2"),
        (("list", 1, "three"), 6, 5, "three"),  # an empty value has the position of its key
        (("list", 2), 7, 3, "[x, {y: 'z'}]"),
        (("list", 2, 1, "y"), 7, 11, "'z'"),
        (("text",), 8, 7, "|"),
        (("empty",), 11, 1, "empty"),
        (("é😀",), 12, 5, "wide"),
        (("list", 7), 4, 1, "- one"),  # the value does not exist: the nearest around it
        (("text", "deeper"), 8, 7, "|"),
    ],
)
def test_every_value_knows_where_it_stands(
    path: tuple[str | int, ...], line: int, column: int, underlined: str
) -> None:
    root = yaml_node(_PLACES)
    assert root is not None
    span = root.nearest(*path).span
    assert (span.line, span.column, span.underlined) == (line, column, underlined)


def test_keys_know_where_they_stand() -> None:
    root = yaml_node(_PLACES)
    assert root is not None
    assert str(root.key_span("list")) == "f.yaml:3:1"
    assert root["list"].nearest(1).key_span("three").underlined == "three"


def test_a_block_ends_with_its_last_value_and_not_with_the_comments_behind_it() -> None:
    root = yaml_node("a:\n  b: 1\n\n# behind\n\n")
    assert root is not None
    assert (root["a"].end_line, root["a"].end_column) == (2, 7)
    assert (root.end_line, root.end_column) == (2, 7)


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\x85", "\u2028", "\u2029"])
def test_every_line_break_of_yaml_counts_as_one_line(line_break: str) -> None:
    text = line_break.join(["a: 1", "b: 2", "", "c: [x,", "  why]", "d: 4"])
    roots = read_nodes_text("f.yaml", text)
    assert roots.reporter.diagnostics == []
    assert str(roots.nodes[0].nearest("c", 1).span) == "f.yaml:5:3"
    assert str(roots.nodes[0].nearest("d").span) == "f.yaml:6:4"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("\n\n", []),
        ("# only a comment\n", []),
        ("---\n---\n# c\n---\n", []),
        ("null\n---\n~\n", []),
        ("a: 1", [{"a": 1}]),
        ("---\na: 1\n---\na: 2\n", [{"a": 1}, {"a": 2}]),
        ("a: 1\r\n---\r\na: 2\r\n", [{"a": 1}, {"a": 2}]),
        ("--- # c\na: 1\n---\t\na: 2\n--- \t # d\r\na: 3\n---", [{"a": 1}, {"a": 2}, {"a": 3}]),
        ("a: 1\n...\n---\nc: 3\n... # c\n\n# d\n", [{"a": 1}, {"c": 3}]),
        ("---\n# c\n...\n---\na: 1\n", [{"a": 1}]),
        ("a: ---\nb: --- x\nc: x---\n", [{"a": "---", "b": "--- x", "c": "x---"}]),
        ("a: |\n  ---\n  ...\nb: ----\n", [{"a": "---\n...\n", "b": "----"}]),
        ("a: '%'\nb: |\n  %YAML\n", [{"a": "%", "b": "%YAML\n"}]),
        ("a: |\n  x", [{"a": "x\n"}]),  # kubectl ends the last line
        ("{a: 1}\n---\n{b: 2}\n", [{"a": 1}, {"b": 2}]),
        ('{"a": 1}\n{"b": 2}\n[3]', [{"a": 1}, {"b": 2}, [3]]),
        ('{"a": "\\/\\ud83d\\ude00"}\n---\nb: 1\n', [{"a": "/😀"}, {"b": 1}]),  # the first is JSON
        ("  a: 1\n  b: 2\n---\n    c: 3\n", [{"a": 1, "b": 2}, {"c": 3}]),
    ],
)
def test_a_text_is_split_into_its_documents(text: str, values: list[Plain]) -> None:
    roots = read_nodes_text("f.yaml", text)
    assert roots.reporter.diagnostics == []
    assert [root.plain() for root in roots.nodes] == values


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        *[(f"a: 1{line}---{line}b: 2{line}", ("EG1027", 2, 1, "---")) for line in ("\r", "\x85", "\u2028", "\u2029")],
        ("a: 1\n...\nb: 2\n", ("EG1027", 3, 1, "b")),
        ("a: 1\n...\n%YAML 1.1\n---\nb: 2\n", ("EG1006", 3, 1, "%YAML 1.1")),
        ("---\n...\na: 1\n", ("EG1027", 3, 1, "a")),
        ("a: 1\n---\n# c\n...\n", ("EG1006", 4, 1, "...")),
        ("...\na: 1\n", ("EG1006", 1, 1, "...")),
        ("--- {a: 1}\n", ("EG1026", 1, 5, "{a: 1}")),
        ("a: 1\n--- |\n  x\n", ("EG1026", 2, 5, "|")),
        ("a: 1\n--- &x\nb: 1\n", ("EG1026", 2, 5, "&x")),
        ("a: 1\n---b: 2\n", ("EG1026", 2, 4, "b: 2")),
        ("a: 1\n---# c\nb: 2\n", ("EG1026", 2, 4, "# c")),
        ("a: 1\n--- # c\rb: 2\n", ("EG1026", 2, 5, "# c")),
        ("a: 1\n---\rb: 2\n", ("EG1026", 2, 1, "---")),
        ("a: 1\n---\xa0\nb: 2\n", ("EG1026", 2, 1, "---")),
        ("%YAML 1.1\n---\na: 1\n", ("EG1006", 1, 1, "%YAML 1.1")),
        ("# c\n%TAG !e! tag:e\n---\na: 1\n", ("EG1006", 2, 1, "%TAG !e! tag:e")),
        ("---\n\ufeffa: 1\n", ("EG1005", 2, 1, "\ufeff")),
        ("a: 1\n\ufeff# c\nb: 1\n", ("EG1005", 2, 1, "\ufeff")),
        ('\xa0{"a":1}', ("EG1005", 1, 1, "\xa0")),
        ('\ufeff{"a": 1}{"b": 2}', ("EG1027", 1, 9, "{")),
        ('[{"a": 1}][{"b": 1}]', ("EG1027", 1, 11, "[")),
        ('x: 1\n---\n{"a": 1}{"b": 2}\n', ("EG1027", 3, 9, "{")),
        ('{"a": 1}\n---\n{"a": 1}\n{"b": 2}\n', ("EG1027", 4, 1, "{")),
        ('{"a": 1}{"b": 1}\n---\n{"c": 1}\n', ("EG1027", 1, 9, "{")),
        ('x: 1\n---\n{"a": "\\ud83d\\ude00"}\n', ("EG1006", 3, 8, "\\ud83d")),
        ("a: 0x10000000000000000\n", ("EG1020", 1, 4, "0x10000000000000000")),
        ("x: {'1': a, <<: {1: b}}\n", ("EG1025", 1, 13, "<<")),
        ("x: {<<: {1: b}, '1': a}\n", ("EG1015", 1, 10, "1")),
        ("x: {k: 1, <<: {k: 1}}\n", ("EG1025", 1, 11, "<<")),
        ("x: {k: 1, <<: [{l: 1}, {k: null}]}\n", ("EG1025", 1, 11, "<<")),
        ("x: {<<: {k: 1, <<: {k: 2}}}\n", ("EG1025", 1, 16, "<<")),
        ("x: {<<: {k: 1}, <<: {k: 2}}\n", ("EG1015", 1, 17, "<<")),
    ],
)
def test_a_text_that_kubectl_refuses_or_reads_otherwise_is_an_error(
    text: str, finding: tuple[str, int, int, str]
) -> None:
    roots = read_nodes_text("f.yaml", text)
    assert finding in [place(diagnostic) for diagnostic in roots.reporter]
    assert all(diagnostic.help for diagnostic in roots.reporter)


@pytest.mark.parametrize(
    ("value", "finding", "meant"),
    [('"a\\/b"', ("EG1028", 5, 4, '"a\\/b"'), "a/b"), ("[a?b]", ("EG1028", 5, 5, "a?b"), ["a?b"])],
)
def test_yaml_that_kubectl_does_not_know_is_for_other_files(
    value: str, finding: tuple[str, int, int, str], meant: Plain
) -> None:
    text = f"{POD}x: {value}\n"
    assert places(text) == [finding]
    roots = read_nodes_text("f.yaml", text)
    assert roots.reporter.diagnostics == []
    assert roots.nodes[0]["x"].plain() == meant


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["---", "...", "%", "\n", "\r", "a", " ", "#", "\u2028"]), max_size=25).map("".join))
def test_no_text_is_lost_between_the_chunks(text: str) -> None:
    last = 0
    for start, end in [*chunks(text), (len(text), len(text))]:
        lost = text[last:start]
        assert not lost
        last = end


def test_a_broken_document_does_not_hide_the_others() -> None:
    broken = [
        'a: "\n',
        "a: [\n",
        "\tb\n",
        "a: *x\n",
        "%YAML 1.1\n",
        "a: \x01\n",
        "}\n",
        "a: 1\n%X\n",
        "- a\nb\n",
        "a: 1\na: 2\n",
    ]
    text = "".join(f"---\n{part}---\n{POD.replace('name: a', f'name: pod-{n}')}" for n, part in enumerate(broken))
    reading = reading_of(text)
    assert [document.name for document in reading.documents] == [f"pod-{n}" for n in range(len(broken))]
    lines = [finding.span.line for finding in reading.reporter if finding.span]
    assert len(set(lines)) >= len(broken)
    assert lines == sorted(lines)


def test_the_kind_of_a_node() -> None:
    root = yaml_node("a: [1, x, 1.5, true, null]\n")
    assert root is not None
    assert [item.kind for item in root["a"]] == ["a number", "a string", "a number", "a boolean", "null"]
    assert (root.kind, root["a"].kind) == ("a mapping", "a list")
    assert (root.nearest("a", 1).text, root.nearest("a", 0).number) == ("x", 1)
    assert "b" not in root
    assert root.get("b") is None
    assert list(root) == []
    assert list(root["a"].items()) == []
    assert str(root.key_span("b")) == str(root.span)
    assert repr(root["a"]) == "Node([1, 'x', 1.5, True, None] at f.yaml:1:4)"
    with pytest.raises(KeyError):
        root["b"]
