"""Lists of tools show the tools that a caller may call, and leave everything else as the server wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.reading.mcp.messages import BadMessage, MessageProblem
from eastgate.reading.mcp.sse import read_events
from eastgate.reading.mcp.tool_lists import ToolFilter, filter_tools

JSON = "application/json"
SSE = "text/event-stream"


def _may_call(name: str) -> bool:
    return name.startswith("a")


def _answer(*names: str, **members: Any) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": {"type": "object", "name": "b"}} for name in names]
    return {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools, "nextCursor": "x"} | members}


def _filter_json(text: str) -> str:
    return filter_tools(text.encode(), JSON, _may_call).decode()


CUTS = [
    ('[{"name":"a1"},{"name":"a2"}]', '[{"name":"a1"},{"name":"a2"}]'),
    ('[{"name":"b"},{"name":"a"}]', '[{"name":"a"}]'),
    ('[{"name":"a"},{"name":"b"}]', '[{"name":"a"}]'),
    ('[{"name":"b"},{"name":"a"},{"name":"c"},{"name":"d"},{"name":"a2"}]', '[{"name":"a"},{"name":"a2"}]'),
    ('[{"name":"b"},{"name":"c"}]', "[]"),
    ('[ {"name":"b"} ]', "[  ]"),
    ("[]", "[]"),
    ('[ {"name":"a", "x":1.0e5,"y":"\\u00e4\\/ä"} ,\n{"name":"b"}]', '[ {"name":"a", "x":1.0e5,"y":"\\u00e4\\/ä"}]'),
    ('[{"name":"\\u0061"},{"name":"\\u0062"}]', '[{"name":"\\u0061"}]'),
    ('[{"x":{"name":"a"},"name":"b"},{"x":{"name":"b"},"name":"a"}]', '[{"x":{"name":"b"},"name":"a"}]'),
]


@pytest.mark.parametrize(("before", "after"), CUTS)
@pytest.mark.parametrize(
    "around",
    [
        '{"jsonrpc":"2.0","id":1,"result":{"tools":%s,"nextCursor":"b"}}',
        ' {"id" : "x" , "result" : { "tools\\u0020":[{"name":"b"}], "_meta":{"a":[1,{}]}, "tools" : %s } , "x":"2"}\n',
        '[{"jsonrpc":"2.0","method":"notifications/message","params":{"tools":[{"name":"b"}]}},'
        '{"jsonrpc":"2.0","id":null,"result":{"tools":%s}}, {"jsonrpc":"2.0","id":2,"result":{}}]',
    ],
    ids=["compact", "spaced", "batch"],
)
def test_only_tools_are_cut_out(around: str, before: str, after: str) -> None:
    assert _filter_json(around % before) == around % after


def test_every_list_of_a_batch_is_filtered() -> None:
    filtered = json.loads(_filter_json(json.dumps([_answer("a", "b"), _answer("b", "a")])))
    assert [[tool["name"] for tool in answer["result"]["tools"]] for answer in filtered] == [["a"], ["a"]]


def test_a_filtered_list_is_not_public() -> None:
    answer = '{"jsonrpc":"2.0","id":1,"result":{"cacheScope":"public","tools":[{"name":"b"}],"ttlMs":9}}'
    assert _filter_json(answer) == '{"jsonrpc":"2.0","id":1,"result":{"cacheScope":"private","tools":[],"ttlMs":9}}'
    assert '"private"' in _filter_json(answer.replace('"name":"b"', '"name":"a"'))
    other = answer.replace('"tools"', '"prompts"')
    assert _filter_json(other) == other


def test_an_answer_without_a_body_stays_empty() -> None:
    assert filter_tools(b"", JSON, _may_call) == b""
    assert filter_tools(b"", SSE, _may_call) == b""


REFUSED = [
    ("x", JSON, MessageProblem.SYNTAX),
    ("null", JSON, MessageProblem.NOT_A_MESSAGE),
    ("[1]", JSON, MessageProblem.NOT_A_MESSAGE),
    ('{"result":{"tools":{}}}', JSON, MessageProblem.TOOLS),
    ('{"result":{"tools":null}}', JSON, MessageProblem.TOOLS),
    ('{"result":{"tools":["b"]}}', JSON, MessageProblem.TOOLS),
    ('{"result":{"tools":[{}]}}', JSON, MessageProblem.TOOLS),
    ('{"result":{"tools":[{"name":["a"]}]}}', JSON, MessageProblem.TOOLS),
    ('{"result":{"tools":[{"name":"a","Name":"b"}]}}', JSON, MessageProblem.LOOKALIKE_KEY),
    ('{"result":{"tools":[],"Tools":[{"name":"b"}]}}', JSON, MessageProblem.LOOKALIKE_KEY),
    ('{"Result":{"tools":[{"name":"b"}]}}', JSON, MessageProblem.LOOKALIKE_KEY),
    ('{"result":{"tools":[{"name":"b","name":"a"}]}}', JSON, MessageProblem.DUPLICATE_KEY),
    ('{"result":{"tools":[]},"result":{"tools":[{"name":"b"}]}}', JSON, MessageProblem.DUPLICATE_KEY),
    ('{"method":"x","result":{"tools":[]}}', JSON, MessageProblem.AMBIGUOUS_KIND),
    ('{"error":{},"result":{"tools":[]}}', JSON, MessageProblem.AMBIGUOUS_KIND),
    ("{}", "text/plain", MessageProblem.CONTENT_TYPE),
    ("{}", "", MessageProblem.CONTENT_TYPE),
    ("{}", "application/json; charset=utf-16", MessageProblem.CONTENT_TYPE),
    ("{}", "application/json, text/event-stream", MessageProblem.CONTENT_TYPE),
    ("{}", "application/json-patch+json", MessageProblem.CONTENT_TYPE),
    ("data: /messages\n\n", SSE, MessageProblem.SYNTAX),
    ("data: {\n\ndata: }\n\n", SSE, MessageProblem.SYNTAX),
    ('data: {"result":{"tools":[{"name":1}]}}\n\n', SSE, MessageProblem.TOOLS),
    ('data: {"result":{"tools":[{"name":1}]}}', SSE, MessageProblem.TOOLS),
    ('data: \ufeff{"result":1}\n\n', SSE, MessageProblem.ENCODING),
]


@pytest.mark.parametrize(("text", "content_type", "problem"), REFUSED)
def test_an_answer_in_doubt_is_refused(text: str, content_type: str, problem: MessageProblem) -> None:
    with pytest.raises(BadMessage) as refused:
        filter_tools(text.encode(), content_type, _may_call)
    assert refused.value.problem is problem


@pytest.mark.parametrize("content_type", ["Application/JSON ; charset=UTF-8", 'application/json;charset="utf-8"'])
def test_content_types_that_mean_json(content_type: str) -> None:
    assert filter_tools(b'{"result":{"tools":[{"name":"b"}]}}', content_type, _may_call) == b'{"result":{"tools":[]}}'


def test_bytes_that_are_not_text_are_refused() -> None:
    for body, content_type in ((b'{"a":"\xff"}', JSON), (b'data: {"a":"\xff"}\n\n', SSE)):
        with pytest.raises(BadMessage):
            filter_tools(body, content_type, _may_call)


STREAMS = [
    "event: message\ndata: %s\n\n",
    "id: 1\ndata:\n\nevent: message\nid: 2\nretry: 50\ndata: %s\n\n: ping\n\n",
    ": b\n:\n\ndata:%s\nid: 7\nother: {\n\n",
    "\ufeffdata: %s\n\n",
    "data: {\ndata: \ndata: %s\n\n",
    "event: message\ndata: %s\n",
    "event: message\ndata: %s",
]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("template", STREAMS)
def test_a_stream_is_filtered_in_place(template: str, ending: str) -> None:
    opening = "" if "{\n" in template and "other" not in template else "{"
    before = opening + '"jsonrpc":"2.0","result":{"tools":[{"name":"b"},{"name":"a"}]}}'
    after = opening + '"jsonrpc":"2.0","result":{"tools":[{"name":"a"}]}}'
    stream = (template % before).replace("\n", ending).encode()
    expected = (template % after).replace("\n", ending).encode()
    filtered = filter_tools(stream, SSE, _may_call)
    assert filtered == expected
    pieces = ToolFilter(_may_call)
    assert b"".join(pieces.feed(stream[i : i + 1]) for i in range(len(stream))) + pieces.close() == expected


def test_lines_of_data_without_a_colon_count() -> None:
    stream = b'data\ndata:{"result":{"tools":\ndata\ndata:[{"name":"b"}]}}\n\n'
    assert filter_tools(stream, SSE, _may_call) == b'data:\ndata:{"result":{"tools":\ndata:\ndata:[]}}\n\n'


def test_an_unchanged_answer_keeps_every_byte() -> None:
    stream = b'\r\n\ndata:  {"result"\r\ndata:\t:1}\nid\nevent:\r\rdata: {"method":"notifications/message"}\r\n\r\n:x'
    assert filter_tools(stream, SSE, _may_call) == stream


def test_events_go_out_as_soon_as_they_are_complete() -> None:
    stream = ToolFilter(_may_call)
    assert stream.feed(b": ping\n") == b": ping\n"
    assert stream.feed(b"event: message\nid: 1\ndata: {") == b"event: message\nid: 1\n"
    assert stream.feed(b'"result":{}}\n') == b""
    assert stream.feed(b"\nid: 2") == b'data: {"result":{}}\n\n'
    assert stream.close() == b"id: 2"


def test_nothing_goes_out_after_an_error() -> None:
    stream = ToolFilter(_may_call)
    with pytest.raises(BadMessage):
        stream.feed(b"data: {\n\n")
    with pytest.raises(BadMessage):
        stream.feed(b": ping\n\n")
    with pytest.raises(BadMessage):
        stream.close()


@pytest.mark.parametrize("chunk", [b"x" * 300, b"data: 1234567890\n" * 30], ids=["line", "event"])
def test_an_endless_event_is_refused(chunk: bytes) -> None:
    stream = ToolFilter(_may_call, 256)
    with pytest.raises(BadMessage) as refused:
        stream.feed(chunk)
    assert refused.value.problem is MessageProblem.TOO_LARGE


_TEXT = st.text('ab{}[]",\\ :\u2028é', max_size=6)


@given(st.lists(st.tuples(st.sampled_from("abc"), _TEXT), max_size=6), _TEXT, st.booleans(), st.integers(1, 9))
def test_filtering_equals_parsing_and_writing(
    tools: list[tuple[str, str]], other: str, pretty: bool, size: int
) -> None:
    listed = [{"title": title, "name": name + title} for name, title in tools]
    value = {"id": other, "result": {other + "x": listed, "tools": listed, "nextCursor": other}}
    text = json.dumps(value, indent=1 if pretty else None, ensure_ascii=not pretty)
    wanted = {**value, "result": {**value["result"], "tools": [tool for tool in listed if _may_call(tool["name"])]}}  # type: ignore[dict-item]
    assert json.loads(_filter_json(text)) == wanted
    stream = "".join(f"data: {line}\n" for line in text.split("\n")).encode() + b"\n"
    pieces = ToolFilter(_may_call)
    filtered = b"".join(pieces.feed(stream[i : i + size]) for i in range(0, len(stream), size)) + pieces.close()
    assert [json.loads(event.data) for event in read_events(filtered)] == [wanted]
