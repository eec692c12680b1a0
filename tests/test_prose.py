"""The English of the repository is plain: the number of sentences that look hard to read only falls."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.prose import Mark, kind_of, markdown_texts, marked_files, marks_in, python_texts, sentences

# How many sentences are marked. Lower it with every text that you improve; never raise it.
BOUND = 82
SLACK = 10  # marks that may be fewer before the bound has to follow


@pytest.fixture(scope="module")
def marks() -> list[Mark]:
    return [mark for file in marked_files() for mark in marks_in(file)]


@pytest.mark.real
def test_no_more_sentences_are_hard_to_read_than_before(marks: list[Mark]) -> None:
    by_file = Counter(mark.file for mark in marks).most_common(12)
    assert len(marks) <= BOUND, f"`python -m tests.prose PATH` lists them; most are in {by_file}"
    assert len(marks) >= BOUND - SLACK, f"fewer than before: set BOUND to {len(marks)}"


@pytest.mark.real
def test_no_line_of_prose_is_too_wide_for_a_diff(marks: list[Mark]) -> None:
    assert [mark for mark in marks if mark.kind == "wide"] == []


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Whoever has none of these is nobody.", "subject"),
        ("A caller without a certificate, a known address or a token is anonymous.", ""),
        ("Rules carry their origin, and words are made of it where it is told.", "telling"),
        ("What becomes of answers that are partial.", "clause"),
        ("What does exit status 3 mean?", ""),
        ("Return the SPIFFE ID for a Linkerd mesh name, or None.", ""),
        (" ".join(["word"] * 36), "long"),
    ],
)
def test_a_sentence_has_the_mark_of_what_makes_it_hard(sentence: str, kind: str) -> None:
    assert kind_of(sentence, begins=True) == kind


def test_code_and_quotations_are_no_prose() -> None:
    assert sentences("Set `whom` to “nobody”. See [the page](whoever.md).") == ["Set X to X.", "See the page."]


def test_code_blocks_are_no_prose_and_keep_the_line_numbers() -> None:
    page = "# Title\n\n```sh\nwhoever\n\nnobody\n```\n\nText.\n"
    assert [(text.line, text.text) for text in markdown_texts(page) if text.text.strip()] == [
        (1, "Title"),
        (9, "Text.\n"),
    ]


def test_docstrings_comments_and_messages_are_prose() -> None:
    module = '"""Docstring."""\n\nNAME = "key"\nTEXT = "the policy selects no pod of it"  # a comment\n'
    assert [(text.line, text.text) for text in python_texts(module)] == [
        (1, "Docstring."),
        (4, "the policy selects no pod of it"),
        (4, "a comment"),
    ]
