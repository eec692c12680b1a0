"""Texts that patterns match, for examples of requests."""

from __future__ import annotations

import re

import pytest

from eastgate.reach.samples import texts_matching


@pytest.mark.parametrize(
    "pattern",
    [
        "/api/v[0-9]+",
        "^/(a|b)/.*$",
        r"/users/\d{3,5}/[^/]+",
        r"[\w.-]+@example\.com",
        "(?:x|yy){2}z?",
        r"\S\s\S",
        "[^a-z]",
        "",
        ".+?",
    ],
)
def test_a_text_is_one_that_the_pattern_matches(pattern: str) -> None:
    text = next(texts_matching(pattern), None)
    assert text is not None
    assert re.fullmatch(pattern, text)


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=x)y", "((a{1000}){1000}){1000}", r"[\d\D]\b\B"])
def test_a_hard_pattern_gives_a_matching_text_or_none(pattern: str) -> None:
    text = next(texts_matching(pattern), None)
    assert text is None or re.fullmatch(pattern, text)
