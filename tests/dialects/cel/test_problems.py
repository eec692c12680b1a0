"""The messages for wrong expressions, and the underlined text.

The table is `problems.txt`, with one entry for each expression in Python escapes:

    > request.pth == "a"
    `request.pth` there is no variable `request.pth`
      = did you mean `request.path`?

`python -m tests.dialects.cel.test_problems` rewrites the table. Review its changes like code.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.dialects.cel import CelProblem, Expression, Variables, compile_cel
from eastgate.ir.attributes import PATH
from tests.dialects.cel.offer import OFFER, problem

TABLE = Path(__file__).with_name("problems.txt")


def encoded(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text.replace("\\", "\\\\")
    return text.encode("unicode_escape").decode()


def decoded(text: str) -> str:
    return text.encode("latin-1").decode("unicode_escape")


def entries() -> list[str]:
    return TABLE.read_text(encoding="utf-8").strip().split("\n\n")


def entry(first_line: str) -> str:
    text = decoded(first_line.removeprefix("> "))
    found = problem(text)
    way_out = f"\n  = {found.help}" if found.help else ""
    return f"{first_line}\n`{encoded(text[found.start : found.end])}` {found.message}{way_out}"


@pytest.mark.parametrize("expected", entries(), ids=lambda text: text.splitlines()[0])
def test_a_problem_is_a_sentence_and_a_place(expected: str) -> None:
    assert entry(expected.splitlines()[0]) == expected


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_expression_is_not_empty(text: str) -> None:
    assert problem(text) == CelProblem("the expression is empty", 0, len(text))


def test_an_early_end_is_after_the_last_word() -> None:
    assert problem("true &&  ") == CelProblem("the expression ends too early", 7, 7)


def test_the_length_is_limited() -> None:
    longest = "true" + " " * (16_384 - 4)
    assert isinstance(compile_cel(longest, OFFER), Expression)
    message = "the expression has 16386 characters, and at most 16384 are allowed"
    assert problem(longest + "  ") == CelProblem(message, 16_384, 16_386)


@pytest.mark.parametrize(
    "text",
    ["(" * 100 + "true" + ")" * 100, "+".join("1" * 60) + " == 60", "[1].all(x, " * 30 + "true" + ")" * 30, "[" * 8000],
    ids=["brackets", "sums", "loops", "lists"],
)
def test_the_depth_is_limited(text: str) -> None:
    assert problem(text) == CelProblem("the expression is nested too deeply", 0, len(text), "32 levels are allowed")


SIGNS = r"""( ) [ ] { } , : ? ! == != && || . + - @ \ ` // ' 'a' "b" 1 2u 3.0 b'x' é 𝒳"""
NAMES = (
    "request path headers mcp has in true null x all map size matches startsWith _has_request_path dyn timestamp int"
)
WORDS = st.sampled_from([*SIGNS.split(), *NAMES.split(), "\n", "\0", "\r"])


@given(st.lists(WORDS, max_size=14).map("".join) | st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=20))
def test_nothing_that_is_written_raises(text: str) -> None:
    found = compile_cel(text, OFFER)
    if isinstance(found, CelProblem):
        assert 0 <= found.start <= found.end <= len(text)
        assert found.message
        assert found.message.isprintable()


@pytest.mark.parametrize("paths", [["request path"], ["request", "request.path"], ["a.b_c", "a_b.c"]])
def test_a_dialect_cannot_offer_names_that_clash(paths: list[str]) -> None:
    with pytest.raises(ValueError, match=r"name|below"):
        Variables(texts=dict.fromkeys(paths, PATH))


if __name__ == "__main__":
    TABLE.write_text("\n\n".join(entry(old.splitlines()[0]) for old in entries()) + "\n", encoding="utf-8")
