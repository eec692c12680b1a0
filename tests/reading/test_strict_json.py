"""The strict reader of JSON: each of its callers refuses texts that readers may read differently."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.dialects.kuadrant.authorino.gjson import jsontext
from eastgate.dialects.kuadrant.authorino.gjson.bounds import TooMuch
from eastgate.reading.mcp.messages import BadMessage, MessageProblem
from eastgate.reading.mcp.messages import read_json as read_message
from eastgate.reading.strict_json import JsonFlaw, JsonProblem, read_json, read_object


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


REFUSED = [
    # The text, the reasons of a token and of an MCP message to refuse it, and whether it is JSON for Authorino's paths.
    ("", JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ("{", JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ("1 2", JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ("01", JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ("[1,]", JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ("{'a': 1}", JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ('"\x01"', JsonFlaw.SYNTAX, MessageProblem.SYNTAX, False),
    ("NaN", JsonFlaw.NUMBER, MessageProblem.SYNTAX, False),
    ("[-Infinity]", JsonFlaw.NUMBER, MessageProblem.SYNTAX, False),
    ('{"a": 1, "a": 1}', JsonFlaw.DUPLICATE, MessageProblem.DUPLICATE_KEY, True),
    ('[{"a": 1, "\\u0061": 1}]', JsonFlaw.DUPLICATE, MessageProblem.DUPLICATE_KEY, True),
    ('"\\ud83d"', JsonFlaw.CHARACTER, MessageProblem.SURROGATE, True),
    ('{"\\ude00\\ud83d": 1}', JsonFlaw.CHARACTER, MessageProblem.SURROGATE, True),
    (nested(65), JsonFlaw.DEPTH, MessageProblem.TOO_DEEP, True),
]


@pytest.mark.parametrize(("text", "flaw", "problem", "is_json"), REFUSED)
def test_each_caller_refuses_the_same_texts(text: str, flaw: JsonFlaw, problem: MessageProblem, is_json: bool) -> None:
    with pytest.raises(JsonProblem) as refused:
        read_json(text.encode())
    assert refused.value.flaw is flaw
    with pytest.raises(BadMessage) as bad:
        read_message(text)
    assert bad.value.problem is problem
    assert jsontext.is_json(text) is is_json


@pytest.mark.parametrize("number", [str(2**64), str(-(2**63) - 1), "9" * 5000, "1e999", "-1e999"])
def test_only_tokens_have_bounds_of_numbers(number: str) -> None:
    with pytest.raises(JsonProblem) as refused:
        read_json(number.encode())
    assert refused.value.flaw is JsonFlaw.NUMBER
    assert jsontext.is_json(number)
    if len(number) < 5000:  # Python reads no more digits
        assert read_message(number) == json.loads(number)
    else:
        with pytest.raises(BadMessage):
            read_message(number)


@pytest.mark.parametrize("text", [str(2**64 - 1), str(-(2**63)), "1e308", nested(32), '"' + "[" * 99 + '"'])
def test_numbers_within_the_limits_are_read(text: str) -> None:
    assert read_json(text.encode()) == read_message(text) == jsontext.read_json(text) == json.loads(text)


def test_each_caller_has_its_own_depth() -> None:
    with pytest.raises(JsonProblem, match="more than 32 deep"):
        read_json(nested(33).encode())
    assert read_message(nested(64)) == jsontext.read_json(nested(64))
    with pytest.raises(BadMessage):
        read_message("[[]]", 1)


@pytest.mark.parametrize("text", ["[" * 100_000, nested(100_000), '{"a":' * 100_000])
def test_no_depth_is_too_much(text: str) -> None:
    with pytest.raises(JsonProblem):
        read_json(text.encode())
    with pytest.raises(BadMessage):
        read_message(text)
    with pytest.raises(TooMuch):
        jsontext.is_json(text)


@pytest.mark.parametrize("data", [b"\xff", b"\xff\xfe1\x00", b"\xef\xbb\xbf1", b'"\xed\xa0\xbd"'])
def test_other_encodings_are_refused(data: bytes) -> None:
    with pytest.raises(JsonProblem):
        read_json(data)


@pytest.mark.parametrize("data", [b"[]", b"1", b"null", b'"a"'])
def test_only_an_object_is_an_object(data: bytes) -> None:
    with pytest.raises(JsonProblem, match="is not a JSON object"):
        read_object(data)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(), st.lists, max_leaves=9))
def test_json_of_python_is_read_by_all(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert read_json(text.encode()) == read_message(text) == jsontext.read_json(text) == value
