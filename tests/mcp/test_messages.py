"""Messages are read strictly: what two readers might take differently is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.mcp.messages import METHODS, Kind, Message, read_messages
from eastgate.mcp.problems import BadMessage, Problem


def _call(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add"}} | members


def _without(member: str) -> dict[str, Any]:
    return {key: value for key, value in _call().items() if key != member}


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


READABLE = [
    (_call(), Message("tools/call", "add", 1, Kind.REQUEST)),
    (_call(id="a"), Message("tools/call", "add", "a", Kind.REQUEST)),
    (_call(params={"name": "add", "arguments": {"Name": "rm"}}), Message("tools/call", "add", 1, Kind.REQUEST)),
    (_call(method="prompts/get"), Message("prompts/get", "add", 1, Kind.REQUEST)),
    (_call(method="resources/read", params={"uri": "a:b"}), Message("resources/read", "a:b", 1, Kind.REQUEST)),
    (_call(method="resources/list", params={}), Message("resources/list", None, 1, Kind.REQUEST)),
    (_call(method="tools/list", params=None), Message("tools/list", None, 1, Kind.REQUEST)),
    (_call(method="vendor/method"), Message("vendor/method", None, 1, Kind.REQUEST)),
    (_call(method="tools/list") | {"id": 2**60}, Message("tools/list", None, 2**60, Kind.REQUEST)),
    (_without("id"), Message("tools/call", "add", None, Kind.NOTIFICATION)),
    ({"jsonrpc": "2.0", "id": 1, "result": {}}, Message(None, None, 1, Kind.RESPONSE)),
    ({"jsonrpc": "2.0", "id": None, "error": {"code": 1}}, Message(None, None, None, Kind.RESPONSE)),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message"), READABLE)
def test_a_message_is_read(value: Any, message: Message) -> None:
    assert read_messages(_encode(value)) == (message,)


def test_a_batch_gives_its_messages_in_order() -> None:
    assert read_messages(_encode([value for value, _ in READABLE])) == tuple(message for _, message in READABLE)


def test_escapes_are_decoded_before_names_are_compared() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"m\\u0065thod":"tools\\/call","params":{"n\\u0061me":"\\u0061dd"}}'
    assert read_messages(body) == (Message("tools/call", "add", 1, Kind.REQUEST),)


REFUSED = [
    (_call(jsonrpc="1.0"), Problem.VERSION),
    (_call(jsonrpc=2.0), Problem.VERSION),
    (_without("jsonrpc"), Problem.VERSION),
    (_call(method=1), Problem.METHOD),
    (_call(method=["tools/call"]), Problem.METHOD),
    (_call(method=""), Problem.METHOD),
    (_call(method=None), Problem.METHOD),
    (_call(method="Tools/Call"), Problem.METHOD),
    (_call(method="tools/call "), Problem.METHOD),
    (_call(method="tool\u017f/call"), Problem.METHOD),
    (_call(method="tools\uff0fcall"), Problem.METHOD),
    (_call(method="tools/call\0"), Problem.METHOD),
    (_call(params={}), Problem.NAME),
    (_call(params={"name": 1}), Problem.NAME),
    (_call(params={"name": ["add"]}), Problem.NAME),
    (_call(params={"name": {"name": "add"}}), Problem.NAME),
    (_call(params={"name": None}), Problem.NAME),
    (_call(params={"name": ""}), Problem.NAME),
    (_call(params={"name": "add\0rm"}), Problem.NAME),
    (_call(params={"name": "add\r\nx: y"}), Problem.NAME),
    (_call(params=None), Problem.NAME),
    (_without("params"), Problem.NAME),
    (_call(method="resources/read"), Problem.NAME),
    (_call(params=["add"]), Problem.PARAMS),
    (_call(params="add"), Problem.PARAMS),
    (_call(params={"name": "add", "Name": "rm"}), Problem.LOOKALIKE_KEY),
    (_call(params={"name": "add", "name\0": "rm"}), Problem.LOOKALIKE_KEY),
    (_call(Method="tools/list"), Problem.LOOKALIKE_KEY),
    (_call() | {"param\u017f": {"name": "rm"}}, Problem.LOOKALIKE_KEY),
    (_call(id=None), Problem.ID),
    (_call(id=1.5), Problem.ID),
    (_call(id=True), Problem.ID),
    (_call(id=[1]), Problem.ID),
    (_call(id={}), Problem.ID),
    (_call(result={}), Problem.AMBIGUOUS_KIND),
    (_call(error={}), Problem.AMBIGUOUS_KIND),
    ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, Problem.AMBIGUOUS_KIND),
    ({"jsonrpc": "2.0", "id": 1}, Problem.NOT_A_MESSAGE),
    ({"jsonrpc": "2.0", "id": None, "result": {}}, Problem.ID),
    ({"jsonrpc": "2.0", "result": {}}, Problem.ID),
    ({"jsonrpc": "2.0", "error": {}}, Problem.ID),
    ({}, Problem.VERSION),
    ([], Problem.EMPTY_BATCH),
    ([_call(), []], Problem.NOT_A_MESSAGE),
    ([_call(), [_call()]], Problem.NOT_A_MESSAGE),
    ([_call(), 1], Problem.NOT_A_MESSAGE),
    ([_call(), _call(params={})], Problem.NAME),
    ([_call()] * 65, Problem.TOO_MANY),
    (1, Problem.NOT_A_MESSAGE),
    ("tools/call", Problem.NOT_A_MESSAGE),
    (None, Problem.NOT_A_MESSAGE),
]  # fmt: skip


@pytest.mark.parametrize(("value", "problem"), REFUSED)
def test_a_message_in_doubt_is_refused(value: Any, problem: Problem) -> None:
    with pytest.raises(BadMessage) as refused:
        read_messages(_encode(value))
    assert refused.value.problem is problem


START = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"'

BYTES = [
    (b"", Problem.SYNTAX),
    (b" ", Problem.SYNTAX),
    (START, Problem.SYNTAX),
    (START + b"}} {}", Problem.SYNTAX),
    (START + b"}}\0", Problem.SYNTAX),
    (START + b"}},", Problem.SYNTAX),
    (START + b",}}", Problem.SYNTAX),
    (START + b',"x":NaN}}', Problem.SYNTAX),
    (START + b',"x":[-Infinity]}}', Problem.SYNTAX),
    (START + b',"x":01}}', Problem.SYNTAX),
    (START + b',"x":"a\nb"}}', Problem.SYNTAX),
    (START + b",'x':1}}", Problem.SYNTAX),
    (START + b',"x":"\\x41"}}', Problem.SYNTAX),
    (START + b"}}//", Problem.SYNTAX),
    (START + b',"x":' + b"1" * 5000 + b"}}", Problem.SYNTAX),
    (b"\xef\xbb\xbf" + START + b"}}", Problem.ENCODING),
    (START + b',"x":"\xff"}}', Problem.ENCODING),
    (START + b',"x":"\xc0\xaf"}}', Problem.ENCODING),
    (START + b',"x":"\xed\xa0\x80"}}', Problem.ENCODING),
    ((START + b"}}").decode().encode("utf-16"), Problem.ENCODING),
    (START + b',"name":"rm"}}', Problem.DUPLICATE_KEY),
    (START + b',"n\\u0061me":"rm"}}', Problem.DUPLICATE_KEY),
    (START + b',"name":["rm"]}}', Problem.DUPLICATE_KEY),
    (START + b'},"params":{"name":"rm"}}', Problem.DUPLICATE_KEY),
    (START + b',"x":[{"a":1,"a":2}]}}', Problem.DUPLICATE_KEY),
    (START + b',"x":"\\ud800"}}', Problem.SURROGATE),
    (START + b',"x":"\\udc00\\ud800"}}', Problem.SURROGATE),
    (START + b',"x":"\\uD83D\\u0041"}}', Problem.SURROGATE),
    (START + b',"\\uDFFF":1}}', Problem.SURROGATE),
    (START + b',"x":' + b"[" * 63 + b"]" * 63 + b"}}", Problem.TOO_DEEP),
    (b"[" * 100_000, Problem.TOO_DEEP),
    (b'{"a":' * 100_000, Problem.TOO_DEEP),
    (START + b"}}" + b" " * 1024 * 1024, Problem.TOO_LARGE),
]


@pytest.mark.parametrize(("body", "problem"), BYTES, ids=range(len(BYTES)))
def test_bytes_in_doubt_are_refused(body: bytes, problem: Problem) -> None:
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
def test_what_only_looks_wrong_is_read(tail: bytes) -> None:
    assert read_messages(START + tail + b"}}") == (Message("tools/call", "add", 1, Kind.REQUEST),)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(METHODS)), st.text(max_size=8), _JSON)
def test_what_is_read_is_what_the_standard_library_reads(method: str, name: str, arguments: Any) -> None:
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
