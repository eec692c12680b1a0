"""Patterns are compiled on first use, and work like those of `re`."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import eastgate
from eastgate.basics.regexes import _Regex, regex

PACKAGE = Path(eastgate.__file__).parent


def test_a_regex_compiles_once_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[Any, ...]] = []
    compile_ = re.compile

    def record(*arguments: Any) -> re.Pattern[Any]:
        compiled.append(arguments)
        return compile_(*arguments)

    monkeypatch.setattr(re, "compile", record)
    word = regex("[a-z]+", re.IGNORECASE)
    assert compiled == []
    assert word.fullmatch("Word")
    assert word.sub("-", "a 1 B") == "- 1 -"
    assert word.pattern == "[a-z]+"
    assert word.flags == compile_("[a-z]+", re.IGNORECASE).flags
    assert compiled[0] == ("[a-z]+", re.IGNORECASE)


def test_a_regex_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError):
        regex("a").unknown  # type: ignore[attr-defined]  # noqa: B018


def test_every_pattern_that_a_module_keeps_is_a_regex_that_compiles() -> None:
    eager, kept = [], []
    for file in PACKAGE.rglob("*.py"):
        source = file.read_text("utf-8")
        assigned = [node.value for node in ast.parse(source).body if isinstance(node, ast.Assign | ast.AnnAssign)]
        calls = [value for value in assigned if isinstance(value, ast.Call)]
        eager += [file.name for call in calls if ast.unparse(call.func) == "re.compile"]
        if "import regex" in source:
            module = import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
            kept += [value for value in vars(module).values() if isinstance(value, _Regex)]
    assert eager == []
    assert all(isinstance(re.compile(pattern.pattern), re.Pattern) for pattern in kept)
    assert kept
