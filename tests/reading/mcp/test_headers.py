"""Headers that repeat a message: the encoding of values, and the comparison with the body."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.reading.mcp.messages import Message, MessageKind
from eastgate.reading.mcp.tool_lists import agrees, decode_value, encode_value, media_type

CALL = Message("tools/call", "add", 1, MessageKind.REQUEST)

# As in the specification's table of examples
ENCODED = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
]


@pytest.mark.parametrize(("value", "encoded"), ENCODED)
def test_values_are_carried_as_the_specification_says(value: str, encoded: str) -> None:
    assert encode_value(value) == encoded
    assert decode_value(encoded) == value


@pytest.mark.parametrize("value", ["=?base64?!?=", "=?base64?YQ?=", "=?base64?YR==?=", "=?base64?/w==?="])
def test_values_in_doubt_are_none(value: str) -> None:
    assert decode_value(value) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_value_comes_back(value: str) -> None:
    encoded = encode_value(value)
    assert decode_value(encoded) == value
    assert encoded.isascii()
    assert encoded.isprintable()


LIST = Message("tools/list", None, 1, MessageKind.REQUEST)
RESPONSE = Message(None, None, 1, MessageKind.RESPONSE)

AGREEMENTS: list[tuple[list[Message], list[tuple[str, str]], bool]] = [
    ([CALL], [], True),
    ([CALL], [("mcp-method", "tools/call"), ("Mcp-Name", "add"), ("x", "y")], True),
    ([CALL], [("mcp-name", "=?base64?YWRk?=")], True),
    ([CALL], [("mcp-method", "tools/list")], False),
    ([CALL], [("mcp-method", "Tools/Call")], False),
    ([CALL], [("mcp-name", "rm")], False),
    ([CALL], [("mcp-name", "")], False),
    ([CALL], [("mcp-name", "=?base64?cm0=?=")], False),
    ([CALL], [("mcp-name", "=?base64?YWRk")], False),
    ([CALL], [("mcp-name", "add"), ("mcp-name", "rm")], False),
    ([CALL], [("mcp-name", "add"), ("MCP-NAME", "add")], False),
    ([LIST], [("mcp-name", "add")], False),
    ([LIST], [("mcp-name", "")], False),
    ([RESPONSE], [("mcp-method", "tools/call")], False),
    ([RESPONSE], [], True),
    ([CALL, CALL], [], True),
    ([CALL, CALL], [("mcp-method", "tools/call")], False),
    ([], [("mcp-method", "tools/call")], False),
]


@pytest.mark.parametrize(("messages", "headers", "expected"), AGREEMENTS)
def test_headers_agree_with_the_message(
    messages: list[Message], headers: list[tuple[str, str]], expected: bool
) -> None:
    assert agrees(messages, headers) is expected


TYPES = [
    ("application/json", "application/json"),
    ("Application/JSON ; charset=UTF-8", "application/json"),
    ('text/event-stream;charset="utf-8"', "text/event-stream"),
    ("application/json; charset=utf-16", None),
    ("application/json; charset=utf-8; charset=utf-16", None),
    ("application/json;x=y", None),
    ("application/json, text/plain", None),
    ("application/json ,text/plain", None),
    ("", None),
    ("application/json\n", None),
]


@pytest.mark.parametrize(("content_type", "expected"), TYPES)
def test_types_of_texts_in_utf_8(content_type: str, expected: str | None) -> None:
    assert media_type(content_type) == expected
