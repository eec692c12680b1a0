"""Variables are filled in as Flux's envsubst does. A variable without a known value stays unchanged, and is open."""

from __future__ import annotations

import pytest

from eastgate.reading.repository import may_substitute, substitute
from eastgate.reading.repository.variables import FluxVariables

_KNOWN = {"A": "abcdEFGH28ij", "PATH": "/path/to/file", "FILE": "bash.string.txt", "EMPTY": "", "HOST": "a.b/c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no variables", "no variables"),
        ("x ${A} y", "x abcdEFGH28ij y"),
        ("$A and $ {A}", "$A and $ {A}"),
        ("${#A}", "12"),
        ("${A^}", "AbcdEFGH28ij"),
        ("${A^^}", "ABCDEFGH28IJ"),
        ("${A,,}", "abcdefgh28ij"),
        ("${PATH:1}", "path/to/file"),
        ("${PATH:1:4}", "path"),
        ("${PATH:-4}", "/path/to/file"),  # a default, not a position
        ("${PATH: -4}", "/path/to/file"),  # not a number in Go
        ("${A:9999}", ""),
        ("${NONE=xyz}", "xyz"),
        ("${NONE:=xyz}", "xyz"),
        ("${NONE:-}", ""),
        ("${EMPTY:=xyz}", "xyz"),
        ("${A:+xyz}", "abcdEFGH28ij"),  # Flux treats every one of these operators as a default
        ("${NONE:=${A}}", "abcdEFGH28ij"),
        ("${NONE:=a${A}-b}", "aabcdEFGH28ij-b"),
        ("${NONE:=a$$b}", "a$$b"),
        ("${NONE:=${ALSO:=x}}", "x"),
        ("${HOST/./-}", "a-b/c"),
        ("${HOST/\\//-}", "a.b-c"),
        ("${HOST//b/}", "a./c"),
        ("${HOST/#a/x}", "x.b/c"),
        ("${HOST/%c/x}", "a.b/x"),
        ("${FILE#*.}", "string.txt"),
        ("${FILE##*.}", "txt"),
        ("${FILE%.*}", "bash.string"),
        ("${FILE%%.*}", "bash"),
        ("$${A}", "${A}"),
        ("$$", "$"),
        ("$$$${A}", "$${A}"),
        ("a $${var${A}} b", "a ${varabcdEFGH28ij} b"),
    ],
)
def test_an_expression_is_filled_in(text: str, expected: str) -> None:
    assert substitute(text, _KNOWN) == (expected, ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("${DOMAIN}", ("DOMAIN",)),
        ("${DOMAIN}.${DOMAIN}", ("DOMAIN",)),
        ("${DOMAIN^^}", ("DOMAIN",)),
        ("${DOMAIN/a/b}", ("DOMAIN",)),
        ("${#DOMAIN}", ("DOMAIN",)),
        ("${SECRET:=default}", ("SECRET",)),
        ("${NONE:=${DOMAIN}}", ("DOMAIN",)),
        ("${a.b}", ("a.b",)),
        ("${NONE-x}", ("NONE-x",)),
        ("${", ("",)),
        ("${A", ("A",)),
        ("${A:=", ("A:=",)),
    ],
)
def test_a_variable_without_a_known_value_stays_unchanged(text: str, names: tuple[str, ...]) -> None:
    assert substitute(text, _KNOWN, ["SECRET"]) == (text, names)


def test_a_default_is_not_certain_while_a_source_is_not_read() -> None:
    assert substitute("${A} ${NONE:=x}", _KNOWN, None) == ("abcdEFGH28ij ${NONE:=x}", ("NONE",))


def test_an_empty_value_is_known_even_if_others_are_hidden() -> None:
    assert substitute("${EMPTY:=x}", _KNOWN, None) == ("x", ())


def test_nesting_without_end_is_refused() -> None:
    text = "${A:=" * 5000 + "}" * 5000
    assert substitute(text.replace("A", "NONE"), {})[1]


def test_values_that_grow_without_end_are_refused() -> None:
    text, names = substitute("${BIG}" * 100, {"BIG": "x" * 100_000})
    assert len(text) < 3_000_000
    assert names == ("...",)


def test_an_object_can_disable_substitution() -> None:
    off = "kustomize.toolkit.fluxcd.io/substitute"
    assert may_substitute({"metadata": {"labels": {off: "enabled"}}})
    assert may_substitute({"metadata": None})
    assert not may_substitute({"metadata": {"annotations": {off: "disabled"}}})
    assert not may_substitute({"metadata": {"labels": {off: "disabled"}}})


def test_a_value_that_is_nothing_but_a_variable_gets_the_type_of_its_text() -> None:
    variables = FluxVariables({"PORT": "80", "NAME": "80"}, is_used=True)
    assert variables.fill({"port": "${PORT}", "name": "web-${NAME}", "list": ["${PORT}", 1, "$${PORT}"]}) == {
        "port": 80,
        "name": "web-80",
        "list": [80, 1, "${PORT}"],
    }
