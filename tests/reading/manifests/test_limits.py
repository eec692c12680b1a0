"""Texts that are made to exhaust a reader get a finding, quickly and with little memory."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from eastgate.reading.manifests import limits

from .reading import POD, json_nodes, json_plain, places, reading_of, yaml_node, yaml_plain

_DEEP = 1_000_000
_MOST_CALLS = 5_000_000


def _billion_laughs() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return POD + "\n".join(lines)


def _merge_bomb() -> str:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: v" for n in range(100)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], b{n}: x}}" for n in range(1, 9)]
    return POD + "\n".join(lines)


def _deep_through_aliases() -> str:
    lines = ["a0: &a0 " + "[" * 90 + "]" * 90]
    lines += [f"a{n}: &a{n} {'[' * 90}*a{n - 1}{']' * 90}" for n in range(1, 20)]
    return POD + "\n".join(lines)


def _deep_step_by_step() -> str:
    """Each alias alone is within the limit; a0 to a3 together are 40, 80, 95 and 110 levels deep."""
    return POD + "".join(
        f"a{n}: &a{n} {'[' * depth}{f'*a{n - 1}' if n else ''}{']' * depth}\n"
        for n, depth in enumerate([40, 40, 15, 15])
    )


_BOMBS: dict[str, tuple[Callable[[], str], str]] = {
    "aliases": (_billion_laughs, "EG1013"),
    "merges": (_merge_bomb, "EG1013"),
    "depth through aliases": (_deep_through_aliases, "EG1014"),
    "depth through aliases, step by step": (_deep_step_by_step, "EG1014"),
    "flow lists": (lambda: "[" * _DEEP, "EG1014"),
    "flow mappings": (lambda: "{" * _DEEP, "EG1014"),
    "flow mappings with keys": (lambda: "{a: " * _DEEP, "EG1014"),
    "json": (lambda: '{"a":' * _DEEP, "EG1014"),
    "json lists": (lambda: "[" * 5000 + "]" * 5000, "EG1014"),
    "block lists": (lambda: "- " * _DEEP, "EG1014"),
    "explicit keys": (lambda: "? " * _DEEP, "EG1014"),
    "block mappings": (lambda: "".join(" " * n + "a:\n" for n in range(2000)), "EG1014"),
    "flow inside a block": (lambda: POD + "spec: " + "[" * _DEEP, "EG1014"),
    "an alias in its own value": (lambda: POD + "spec: &x {a: [*x, *x]}", "EG1012"),
    "duplicate keys": (lambda: POD + "a: 1\n" * 300_000, "EG1022"),
    "json duplicate keys": (lambda: '{"a":1' + ',"a":1' * 300_000 + "}", "EG1022"),
    "wrong keys": (lambda: POD + "1: 1\n" * 300_000, "EG1022"),
    "undefined aliases": (lambda: POD + "".join(f"a{n}: *b{n}\n" for n in range(50_000)), "EG1022"),
    "directives": (lambda: "".join(f"%TAG !a{n}! tag:x\n" for n in range(50_000)) + "---\n" + POD, "EG1006"),
    "an open quote": (lambda: 'a: "' + "\n" * 2_000_000, "EG1009"),
    "an open bracket": (lambda: "a: [b,\n" + "\n" * 2_000_000, "EG1009"),
    "an open json string": (lambda: '{"a": "' + "\\\\" * 2_000_000, "EG1009"),
    "a long word in place of a key": (lambda: "x" * 5_000_000 + ": 1", "EG1006"),
    "a long duplicate key": (lambda: POD + f"{'x' * 900}: 1\n{'x' * 900}: 2\n", "EG1015"),
    "many keys that are none of ours": (lambda: "".join(f"apiVersio{n}: 1\n" for n in range(30_000)), "EG1032"),
    "a long number": (lambda: POD + "a: " + "9" * 1_000_000, "EG1020"),
    "a long json number": (lambda: '{"a": ' + "9" * 1_000_000 + "}", "EG1020"),
    "a long hexadecimal number": (lambda: POD + "a: 0x" + "f" * 1_000_000, "EG1020"),
    "control characters": (lambda: POD + "a: " + "\x01" * 1_000_000, "EG1005"),
    "blank lines before a mistake": (lambda: "a:b\n" + "\n" * 500_000 + "c: d\n", "EG1006"),
    "one bad json object after the other": (lambda: '{"a": x}\n' * 20_000, "EG1021"),
}  # fmt: skip


@contextmanager
def _counted_calls() -> Iterator[list[int]]:
    """Count the calls of functions: a measure of the work that does not depend on the machine."""
    calls = [0]

    def count(_frame: object, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            calls[0] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("bomb_name", _BOMBS)
def test_a_bomb_is_a_finding(bomb_name: str) -> None:
    bomb, code = _BOMBS[bomb_name]
    text = bomb()
    with _counted_calls() as calls:
        found = reading_of(text, "f.json" if "json" in bomb_name else "f.yaml").reporter.diagnostics
    assert calls[0] < _MOST_CALLS, "the work is bounded, whatever the text is"
    assert code in [finding.code.id for finding in found]
    assert all(len(finding.message) + len(finding.help or "") < 400 for finding in found)


@pytest.mark.parametrize("name", ["aliases", "flow lists", "json", "block lists", "depth through aliases"])
def test_a_bomb_takes_little_memory(name: str) -> None:
    text = _BOMBS[name][0]()
    tracemalloc.start()
    try:
        reading_of(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(text) + 20_000_000


def test_a_long_line_is_read() -> None:
    text = POD + "spec: '" + "x y " * 2_500_000 + "'\n"
    with _counted_calls() as calls:
        (document,) = reading_of(text).documents
        assert document.locate("spec").line == 5
    assert calls[0] < len(text), "no character is looked at by itself"


def test_as_deep_as_allowed_is_allowed() -> None:
    exactly = "[" * limits.MAX_DEPTH + "]" * limits.MAX_DEPTH
    plain, precise = yaml_plain(exactly), yaml_node(exactly)
    assert plain is not None
    assert precise is not None
    assert plain.value == precise.plain() == json.loads(exactly)
    fast = json_plain(exactly)
    assert fast is not None
    assert fast.value == json_nodes(exactly)[0].plain()
    deeper = f"[{exactly}]"
    assert yaml_plain(deeper) is None
    assert json_plain(deeper) is None
    assert places(deeper) == [("EG1014", 1, 101, "[")]
    assert places(deeper, "f.json") == [("EG1014", 1, 101, "[")]
    assert places(POD + "a:\n" + "".join(" " * n + "- \n" for n in range(1, 101)))[-1] == ("EG1014", 105, 101, "-")


def test_as_many_aliases_as_allowed_are_allowed() -> None:
    inner = "[" + "x, " * 98 + "x]"  # a hundred nodes
    text = POD + f"a: &a {inner}\nb: [{', '.join(['*a'] * 1000)}]\n"
    assert reading_of(text).reporter.diagnostics == []
    (told,) = places(text + "c: *a\n")
    assert told == ("EG1013", 7, 4, "*a")


def test_nested_aliases_are_counted() -> None:
    text = POD + "a: &a [" + "x, " * 999 + "]\nb: &b [" + "*a, " * 50 + "]\nc: *b\n"
    (told,) = places(text)
    assert told[:3] == ("EG1013", 7, 4)
