"""Messages are read strictly: ambiguous ones are refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.reading.mcp.messages import METHODS, BadMessage, Message, MessageKind, MessageProblem, read_messages


def _call(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}} | members


def _without(member: str) -> dict[str, Any]:
    return {key: value for key, value in _call().items() if key != member}


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


READABLE = [
    (_call(), Message("tools/call", "add", 1, MessageKind.REQUEST)),
    (_call(id="a"), Message("tools/call", "add", "a", MessageKind.REQUEST)),
    (_call(params={"name": "add", "arguments": {"Name": "rm"}}), Message("tools/call", "add", 1, MessageKind.REQUEST)),
    (_call(method="prompts/get"), Message("prompts/get", "add", 1, MessageKind.REQUEST)),
    (_call(method="resources/read", params={"uri": "a:b"}), Message("resources/read", "a:b", 1, MessageKind.REQUEST)),
    (_call(method="resources/list", params={}), Message("resources/list", None, 1, MessageKind.REQUEST)),
    (_call(method="tools/list", params=None), Message("tools/list", None, 1, MessageKind.REQUEST)),
    (_call(method="vendor/method"), Message("vendor/method", None, 1, MessageKind.REQUEST)),
    (_call(method="tools/list") | {"id": 2**60}, Message("tools/list", None, 2**60, MessageKind.REQUEST)),
    (_without("id"), Message("tools/call", "add", None, MessageKind.NOTIFICATION)),
    ({"jsonrpc": "2.0", "id": 1, "result": {}}, Message(None, None, 1, MessageKind.RESPONSE)),
    ({"jsonrpc": "2.0", "id": None, "error": {"code": 1}}, Message(None, None, None, MessageKind.RESPONSE)),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message"), READABLE)
def test_a_message_is_read(value: Any, message: Message) -> None:
    assert read_messages(_encode(value)) == (message,)


def test_a_batch_gives_its_messages_in_order() -> None:
    assert read_messages(_encode([value for value, _ in READABLE])) == tuple(message for _, message in READABLE)


def test_escapes_are_decoded_before_names_are_compared() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools\\/call","params":{"n\\u0061me":"\\u0061dd"}}'
    assert read_messages(body) == (Message("tools/call", "add", 1, MessageKind.REQUEST),)


REFUSED = [
    (_call(jsonrpc="1.0"), MessageProblem.VERSION),
    (_call(jsonrpc=2.0), MessageProblem.VERSION),
    (_without("jsonrpc"), MessageProblem.VERSION),
    (_call(method=1), MessageProblem.METHOD),
    (_call(method=["tools/call"]), MessageProblem.METHOD),
    (_call(method=""), MessageProblem.METHOD),
    (_call(method=None), MessageProblem.METHOD),
    (_call(method="Tools/Call"), MessageProblem.METHOD),
    (_call(method="tools/call "), MessageProblem.METHOD),
    (_call(method="tool\u017f/call"), MessageProblem.METHOD),
    (_call(method="tools\uff0fcall"), MessageProblem.METHOD),
    (_call(method="tools/call\0"), MessageProblem.METHOD),
    (_call(params={}), MessageProblem.NAME),
    (_call(params={"name": 1}), MessageProblem.NAME),
    (_call(params={"name": ["add"]}), MessageProblem.NAME),
    (_call(params={"name": {"name": "add"}}), MessageProblem.NAME),
    (_call(params={"name": None}), MessageProblem.NAME),
    (_call(params={"name": ""}), MessageProblem.NAME),
    (_call(params={"name": "add\0rm"}), MessageProblem.NAME),
    (_call(params={"name": "add\r\nx: y"}), MessageProblem.NAME),
    (_call(params=None), MessageProblem.NAME),
    (_without("params"), MessageProblem.NAME),
    (_call(method="resources/read"), MessageProblem.NAME),
    (_call(params=["add"]), MessageProblem.PARAMS),
    (_call(params="add"), MessageProblem.PARAMS),
    (_call(params={"name": "add", "Name": "rm"}), MessageProblem.LOOKALIKE_KEY),
    (_call(params={"name": "add", "name\0": "rm"}), MessageProblem.LOOKALIKE_KEY),
    (_call(Method="tools/list"), MessageProblem.LOOKALIKE_KEY),
    (_call() | {"param\u017f": {"name": "rm"}}, MessageProblem.LOOKALIKE_KEY),
    (_call(id=None), MessageProblem.ID),
    (_call(id=1.5), MessageProblem.ID),
    (_call(id=True), MessageProblem.ID),
    (_call(id=[1]), MessageProblem.ID),
    (_call(id={}), MessageProblem.ID),
    (_call(result={}), MessageProblem.AMBIGUOUS_KIND),
    (_call(error={}), MessageProblem.AMBIGUOUS_KIND),
    ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, MessageProblem.AMBIGUOUS_KIND),
    ({"jsonrpc": "2.0", "id": 1}, MessageProblem.NOT_A_MESSAGE),
    ({"jsonrpc": "2.0", "id": None, "result": {}}, MessageProblem.ID),
    ({"jsonrpc": "2.0", "result": {}}, MessageProblem.ID),
    ({"jsonrpc": "2.0", "error": {}}, MessageProblem.ID),
    ({}, MessageProblem.VERSION),
    ([], MessageProblem.EMPTY_BATCH),
    ([_call(), []], MessageProblem.NOT_A_MESSAGE),
    ([_call(), [_call()]], MessageProblem.NOT_A_MESSAGE),
    ([_call(), 1], MessageProblem.NOT_A_MESSAGE),
    ([_call(), _call(params={})], MessageProblem.NAME),
    ([_call()] * 65, MessageProblem.TOO_MANY),
    (1, MessageProblem.NOT_A_MESSAGE),
    ("tools/call", MessageProblem.NOT_A_MESSAGE),
    (None, MessageProblem.NOT_A_MESSAGE),
]  # fmt: skip


@pytest.mark.parametrize(("value", "problem"), REFUSED)
def test_a_message_in_doubt_is_refused(value: Any, problem: MessageProblem) -> None:
    with pytest.raises(BadMessage) as refused:
        read_messages(_encode(value))
    assert refused.value.problem is problem


START = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"'

BYTES = [
    (b"", MessageProblem.SYNTAX),
    (b" ", MessageProblem.SYNTAX),
    (START, MessageProblem.SYNTAX),
    (START + b"}} {}", MessageProblem.SYNTAX),
    (START + b"}}\0", MessageProblem.SYNTAX),
    (START + b"}},", MessageProblem.SYNTAX),
    (START + b",}}", MessageProblem.SYNTAX),
    (START + b',"x":NaN}}', MessageProblem.SYNTAX),
    (START + b',"x":[-Infinity]}}', MessageProblem.SYNTAX),
    (START + b',"x":01}}', MessageProblem.SYNTAX),
    (START + b',"x":"a\nb"}}', MessageProblem.SYNTAX),
    (START + b",'x':1}}", MessageProblem.SYNTAX),
    (START + b',"x":"\\x41"}}', MessageProblem.SYNTAX),
    (START + b"}}//", MessageProblem.SYNTAX),
    (START + b',"x":' + b"1" * 5000 + b"}}", MessageProblem.SYNTAX),
    (b"\xef\xbb\xbf" + START + b"}}", MessageProblem.ENCODING),
    (START + b',"x":"\xff"}}', MessageProblem.ENCODING),
    (START + b',"x":"\xc0\xaf"}}', MessageProblem.ENCODING),
    (START + b',"x":"\xed\xa0\x80"}}', MessageProblem.ENCODING),
    ((START + b"}}").decode().encode("utf-16"), MessageProblem.ENCODING),
    (START + b',"name":"rm"}}', MessageProblem.DUPLICATE_KEY),
    (START + b',"n\\u0061me":"rm"}}', MessageProblem.DUPLICATE_KEY),
    (START + b',"name":["rm"]}}', MessageProblem.DUPLICATE_KEY),
    (START + b'},"params":{"name":"rm"}}', MessageProblem.DUPLICATE_KEY),
    (START + b',"x":[{"a":1,"a":2}]}}', MessageProblem.DUPLICATE_KEY),
    (START + b',"x":"\\ud800"}}', MessageProblem.SURROGATE),
    (START + b',"x":"\\udc00\\ud800"}}', MessageProblem.SURROGATE),
    (START + b',"x":"\\uD83D\\u0041"}}', MessageProblem.SURROGATE),
    (START + b',"\\uDFFF":1}}', MessageProblem.SURROGATE),
    (START + b',"x":' + b"[" * 63 + b"]" * 63 + b"}}", MessageProblem.TOO_DEEP),
    (b"[" * 100_000, MessageProblem.TOO_DEEP),
    (b'{"a":' * 100_000, MessageProblem.TOO_DEEP),
    (START + b"}}" + b" " * 1024 * 1024, MessageProblem.TOO_LARGE),
]


@pytest.mark.parametrize(("body", "problem"), BYTES, ids=range(len(BYTES)))
def test_bytes_in_doubt_are_refused(body: bytes, problem: MessageProblem) -> None:
    with pytest.raises(BadMessage) as refused:
        read_messages(body)
    assert refused.value.problem is problem


HARMLESS = [
    b',"x":"\\\\ud800"',
    b',"x":"\\ud83d\\ude00"',
    b',"x":' + b"[" * 62 + b"]" * 62,
    b',"x":[' + b"{}," * 99 + b"1]",
]


@pytest.mark.parametrize("tail", HARMLESS)
def test_texts_that_only_look_wrong_are_read(tail: bytes) -> None:
    assert read_messages(START + tail + b"}}") == (Message("tools/call", "add", 1, MessageKind.REQUEST),)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(METHODS)), st.text(max_size=8), _JSON)
def test_the_result_equals_that_of_the_standard_library(method: str, name: str, arguments: Any) -> None:
    value = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"name": name, "arguments": arguments}}
    body = _encode(value)
    try:
        (message,) = read_messages(body)
    except BadMessage:
        return
    read = json.loads(body)
    assert message.method == read["method"]
    assert message.name is None or message.name == read["params"]["name"]


@given(st.binary(max_size=40))
def test_nothing_but_a_bad_message_is_raised(body: bytes) -> None:
    with contextlib.suppress(BadMessage):
        read_messages(body)
