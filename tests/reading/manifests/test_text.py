"""Bytes become text, and offsets become lines and columns."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .reading import POD, found, place, places, reading_of, text_of

_UTF16_HELP = "this looks like UTF-16: save the file as UTF-8 (in PowerShell, `Out-File -Encoding utf8`)"


@pytest.mark.parametrize("name", ["f.yaml", "f.json"])
def test_a_byte_order_mark_is_no_part_of_the_text(name: str) -> None:
    text = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}'
    for content in (b"\xef\xbb\xbf" + text.encode(), "\ufeff" + text):
        (document,) = reading_of(content, name).documents
        assert str(document.locate("apiVersion")) == f"{name}:1:15"


@pytest.mark.parametrize(
    ("content", "told", "message"),
    [
        (b"a: 1\nb: \xc3\xa9\xff x\n", ("EG1004", 2, 5, "\ufffd"), "byte 0xFF is not UTF-8"),
        (b"a: \xe9t\xe9\n", ("EG1004", 1, 4, "\ufffd"), "byte 0xE9 is not UTF-8"),
        (b"a: \xc3", ("EG1004", 1, 4, "\ufffd"), "byte 0xC3 is not UTF-8"),
        ("a: \ud800", ("EG1004", 1, 4, "\ufffd"), "the lone surrogate U+D800 is not UTF-8"),
    ],
)
def test_a_byte_that_is_not_utf8_is_shown(content: bytes | str, told: tuple[str, int, int, str], message: str) -> None:
    for name in ("f.yaml", "f.json"):
        (finding,) = found(content, name)
        assert (place(finding), finding.message, finding.help) == (told, message, "save the file as UTF-8")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_recognised(encoding: str) -> None:
    content = POD.encode(encoding)
    (finding,) = found(content)
    assert finding.help == (
        _UTF16_HELP if encoding == "utf-16" else "this looks like UTF-16 or like no text at all: save it as UTF-8"
    )


def test_a_wrong_byte_in_one_document_does_not_hide_the_others() -> None:
    content = (
        POD.encode() + b"---\na: \xff\n---\n" + POD.replace("name: a", "name: b").encode() + b"---\nb: \xfe \xfe\n"
    )
    reading = reading_of(content)
    assert [document.name for document in reading.documents] == ["a", "b"]
    assert [place(finding)[:3] for finding in reading.reporter] == [("EG1004", 6, 4), ("EG1004", 13, 4)]


def test_a_binary_file_is_one_finding() -> None:
    assert len(places(bytes(range(256)) * 50 + b"\n---\n" * 50)) == 1


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab\n\r\x0b\x0c\x1c\x85\u2028\u2029é😀"), max_size=20))
def test_a_position_points_at_its_character(content: str) -> None:
    text = text_of(content)
    for offset, character in enumerate(content):
        line, column = text.position(offset)
        if len(character.splitlines()[0]):
            assert text.source.line(line)[column - 1] == character
        span = text.span(offset, offset + 1)
        assert text.extent(span) == (offset, offset + 1)


@pytest.mark.parametrize(
    ("content", "end"),
    [("", (1, 1)), ("ab", (1, 3)), ("ab\n", (2, 1)), ("a\nb", (2, 2)), ("a\n\n", (3, 1)), ("a\r\n", (2, 1))],
)
def test_the_end_of_a_text_is_on_a_line_of_its_own_only_behind_a_line_break(content: str, end: tuple[int, int]) -> None:
    assert text_of(content).position(len(content)) == end
