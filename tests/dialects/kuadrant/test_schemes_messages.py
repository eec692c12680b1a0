"""The diagnostics of wrong schemes: the code, the underlined text, the message, and the help.

`scheme_messages.txt` has one block for each mistake; `pytest tests/dialects/kuadrant --update` rewrites the diagnostics
in it. A block begins with its name and its surroundings: a scheme of 2022 in the style old or new, nothing (whole), or
an AuthConfig (config).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.schemes import AUTH_CONFIG_SPEC, codes, read_scheme
from tests.dialects.kuadrant.scheme_texts import judge, node
from tests.dialects.kuadrant.schemes.reading import problems

GOLDEN = Path(__file__).parent / "scheme_messages.txt"
START = {
    "old": ("identity", "hosts: [a.example]\n", "identity: [{name: all, anonymous: {}}]\n"),
    "new": ("authentication", "hosts: [a.example]\n", "authentication: {all: {anonymous: {}}}\n"),
    "whole": ("", "", ""),
    "config": ("authentication", "hosts: [a.example]\n", "authentication: {all: {anonymous: {}}}\n"),
}


@dataclass(frozen=True)
class Block:
    name: str
    style: str
    written: str
    said: str

    @property
    def text(self) -> str:
        """Return the scheme: the text of the block, and around it the required fields of its style."""
        word, hosts, identities = START[self.style]
        return hosts + ("" if self.written.startswith(word) else identities) + self.written

    def __str__(self) -> str:
        return f"=== {self.name} ({self.style})\n{self.written}\n---\n{self.said}\n"


def blocks() -> list[Block]:
    found = re.split(r"^=== (.*) \((old|new|whole|config)\)\n", GOLDEN.read_text("utf-8"), flags=re.MULTILINE)
    parts = zip(found[1::3], found[2::3], found[3::3], strict=True)
    return [Block(name, style, *_halves(body)) for name, style, body in parts]


def _halves(body: str) -> tuple[str, str]:
    written, _, said = body.rstrip("\n").partition("\n---")
    return written, said.lstrip("\n")


def judged(block: Block) -> tuple[Scheme | None, list[Diagnostic]]:
    """Return the diagnostics of a scheme: of an AuthPolicy of 2022, or of an AuthConfig."""
    if block.style != "config":
        return judge(block.text)
    written = node(block.text)
    found = problems(AUTH_CONFIG_SPEC, written)
    return (None if any(one.is_error for one in found) else read_scheme(written, "shop")), found


def shown(found: list[Diagnostic]) -> str:
    return "\n".join(
        f"{one.code.id} at {one.span.underlined if one.span else None}\n  {one.message}\n  {one.help}" for one in found
    )


BLOCKS = blocks()
WARNINGS = {codes.METHOD_NOT_SENT}  # every other code is an error


def test_each_mistake_is_said_as_in_the_golden(update: bool) -> None:
    now = [Block(one.name, one.style, one.written, shown(judged(one)[1])) for one in BLOCKS]
    if update:
        GOLDEN.write_text("\n".join(map(str, now)), encoding="utf-8")
    assert list(map(str, now)) == list(map(str, blocks()))


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_a_mistake_is_an_error_with_a_place_and_a_way_out(block: Block) -> None:
    read, found = judged(block)
    assert found
    assert (read is None) is any(one.code not in WARNINGS for one in found)
    assert all(one.is_error is (one.code not in WARNINGS) for one in found)
    assert all(one.message and one.help and one.span and one.span.underlined for one in found)
    places = [(one.span.line, one.span.column) for one in found if one.span]
    assert len(places) == len(set(places)), "one mistake, one diagnostic"


def test_every_code_has_its_mistake() -> None:
    all_codes = {value.id for value in vars(codes).values() if isinstance(value, Code)}
    assert all_codes - set(re.findall(r"^(EG\d{4}) at", GOLDEN.read_text("utf-8"), flags=re.MULTILINE)) == set()


def test_names_are_unique() -> None:
    names = [block.name for block in BLOCKS]
    assert sorted(names) == sorted(set(names))


def test_one_mistake_does_not_hide_another() -> None:
    text = """
hosts: [A]
identitees: []
callbacks: []
identity: [{name: a, oidc: {endpoint: ftp://a}, colour: red}]
authorization: {}
when: [{patternRef: none}, {selector: a, operator: matches, value: "("}]
"""
    _, found = judge(text)
    said = [one.code.id for one in found]
    assert sorted(said) == ["EG1201", "EG1201", "EG5005", "EG5101", "EG5104", "EG5107", "EG5112", "EG5136"]
