"""Lua inside Envoy reads messages as Python does: it accepts the same messages, with the same content."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from eastgate.envoy.config.gateway_filters import messages_lua
from eastgate.reading.mcp.messages import BadMessage, Message, MessageProblem, read_messages
from tests.reading.mcp.lua.running import Answer, ask, running_lua
from tests.reading.mcp.test_messages import BYTES, HARMLESS, READABLE, REFUSED, START

_SCRIPT = """
function answer(text)
  local list, problem = messages.read(text)
  if not list then return "-" .. problem end
  local lines = {}
  for index, message in ipairs(list) do
    lines[index] = table.concat({
      message.kind, message.method or "\\1", message.name or "\\1", message.id or "\\1",
    }, "\\2")
  end
  return "+" .. table.concat(lines, "\\3")
end
"""


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answer]:
    with running_lua(messages_lua() + _SCRIPT, tmp_path_factory.mktemp("messages")) as answer:
        yield answer


def _in_lua(lua: Answer, bodies: list[bytes]) -> list[tuple[Message, ...] | str]:
    return [_read(line) for line in ask(lua, [(body,) for body in bodies])]


def _read(line: bytes) -> tuple[Message, ...] | str:
    text = line.decode("utf-8")
    assert text.startswith(("=+", "=-")), text
    if text.startswith("=-"):
        return text[2:]
    messages: list[Message] = []
    for part in text[2:].split("\3"):
        kind, method, name, identifier = (None if field == "\1" else field for field in part.split("\2"))
        assert kind is not None
        read = None if identifier is None else json.loads(identifier)
        messages.append(Message(method, name, read, kind))  # type: ignore[arg-type]
    return tuple(messages)


def _in_python(body: bytes) -> tuple[Message, ...] | str:
    try:
        return read_messages(body)
    except BadMessage as error:
        return error.problem.value


def test_lua_reads_the_messages_that_python_reads(lua: Answer) -> None:
    bodies = [json.dumps(value, ensure_ascii=ascii_).encode() for value, _ in READABLE for ascii_ in (True, False)]
    bodies += [json.dumps([value for value, _ in READABLE], indent=1).encode()]
    bodies += [START + tail + b"}}" for tail in HARMLESS]
    assert _in_lua(lua, bodies) == [read_messages(body) for body in bodies]


def test_lua_refuses_the_messages_that_python_refuses(lua: Answer) -> None:
    cases: list[tuple[bytes, MessageProblem]] = [(json.dumps(value).encode(), problem) for value, problem in REFUSED]
    cases += BYTES
    assert _in_lua(lua, [body for body, _ in cases]) == [problem.value for _, problem in cases]


_PIECES = [
    *('{', '}', '[', ']', ':', ',', ' ', '\n', '"', '\\', '\\u0061', '\\ud83d', '\\ude00', '\\n', '\\x', '\0', '\x7f'),
    *('"name"', '"n\\u0061me"', '"Name"', '"uri"', '"params"', '"method"', '"id"', '"jsonrpc"', '"result"', '"error"'),
    *('"2.0"', '"tools/call"', '"tools/list"', '"x"', '""', 'null', 'true', 'nul', '1', '-0', '01', '1.5', '1e3', '-'),
    *('é', '😀', '\u0085', '\ufeff', 'NaN'),
]  # fmt: skip


def _mutants(count: int) -> list[bytes]:
    """Yield messages with a few pieces of text inserted, removed or exchanged."""
    chance = random.Random(3)  # noqa: S311 - the same for each run
    bodies: list[bytes] = []
    texts = [json.dumps(value, ensure_ascii=False) for value, _ in READABLE]
    for _ in range(count):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text) + 1)
            kept = at + chance.choice((0, 0, 0, 1, 2, 8))
            text = text[:at] + "".join(chance.choices(_PIECES, k=chance.randint(0, 4))) + text[kept:]
        body = bytearray(text.encode())
        if chance.random() < 0.1:
            body[chance.randrange(len(body))] = chance.randrange(256)
        bodies.append(bytes(body))
    return bodies


def _members() -> list[bytes]:
    """Yield messages with random members in any order."""
    chance = random.Random(4)  # noqa: S311 - the same for each run
    values: dict[str, list[Any]] = {
        "jsonrpc": ["2.0"] * 8 + ["1.0", 2, None],
        "id": [1, "a", 0, -1, 2**70, None, True, 1.0, [], {}, "é\n"],
        "method": ["tools/call"] * 6 + ["tools/list", "resources/read", "ping", "Ping", "vendor/x", "", " ", 1, None],
        "params": [{"name": "add"}] * 4
        + [{"name": name} for name in ("", "é", "a\0b", "\u0085", 1, None, ["a"], {"name": "a"})]
        + [{"uri": "a:b"}, {"": {}, "name": "a"}, {"name": "a", "NAME": "b"}, [], None, "x", {}],
        "result": [{}, None],
        "error": [{}],
        "ID": [1],
        "extra": [1],
        "é": [1],
    }
    weights = {"result": 0.1, "error": 0.1, "ID": 0.05, "extra": 0.2, "é": 0.05, "id": 0.8}
    bodies: list[bytes] = []
    for _ in range(3000):
        members = [key for key in values if chance.random() < weights.get(key, 0.95)]
        chance.shuffle(members)
        value = {key: chance.choice(values[key]) for key in members}
        bodies.append(json.dumps(value, ensure_ascii=chance.random() < 0.5).encode())
    return bodies


@pytest.mark.parametrize("bodies", [_mutants(6000), _members()], ids=["mutants", "members"])
def test_lua_and_python_agree(lua: Answer, bodies: list[bytes]) -> None:
    bodies = [body for body in bodies if body]
    by_python, by_lua = [_in_python(body) for body in bodies], _in_lua(lua, bodies)
    readable = 0
    for body, expected, actual in zip(bodies, by_python, by_lua, strict=True):
        if isinstance(expected, str):
            assert isinstance(actual, str), body
        else:
            assert actual == expected, body
            readable += 1
    assert readable > 100
