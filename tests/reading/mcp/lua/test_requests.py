"""Lua inside Envoy reads requests as Python does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate.envoy.config.gateway_filters import requests_lua
from eastgate.reading.mcp.tool_lists import encode_value
from tests.reading.mcp.lua.running import Answer, ask, running_lua
from tests.reading.mcp.test_requests import BODY, JSON, READABLE, REFUSED, Headers

_SCRIPT = """
function answer(method, body, ...)
  local fields = { ... }
  local headers = {}
  function headers:get(name) return name == ":method" and method or nil end
  local function values(name)
    local found = {}
    for index = 1, #fields, 2 do
      if fields[index] == name then found[#found + 1] = fields[index + 1] end
    end
    return found
  end
  function headers:getNumValues(name) return #values(name) end
  function headers:getAtIndex(name, index) return values(name)[index + 1] end
  local list, problem = requests.read(headers, body)
  return list and #list or problem
end
"""


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answer]:
    with running_lua(requests_lua() + _SCRIPT, tmp_path_factory.mktemp("requests")) as answer:
        yield answer


def _row(method: str, headers: Headers, body: bytes) -> tuple[bytes, ...]:
    return (method.encode(), body, *(text.encode() for header in headers for text in header))


def test_lua_reads_the_messages_that_python_reads(lua: Answer) -> None:
    rows = [_row(method, headers, body) for method, headers, body, _ in READABLE]
    assert ask(lua, rows) == [f"={len(messages)}".encode() for *_, messages in READABLE]


def test_lua_refuses_the_messages_that_python_refuses(lua: Answer) -> None:
    rows = [_row(method, headers, body) for method, headers, body, _ in REFUSED]
    assert ask(lua, rows) == [f"={problem}".encode() for *_, problem in REFUSED]


def test_names_in_base64(lua: Answer) -> None:
    chance = random.Random(5)  # noqa: S311 - the same for each run
    names = ["".join(chance.choices("ab é😀=?/", k=length)) for length in range(1, 60)]
    rows = [
        _row("POST", [JSON, ("mcp-name", encode_value(name))], BODY.replace(b'"add"', f'"{name}"'.encode()))
        for name in names
    ]
    assert ask(lua, rows) == [b"=1"] * len(rows)


_REAL = """
function envoy_on_request(handle)
  local body = handle:body()
  local list, problem = requests.read(handle:headers(), body and body:getBytes(0, body:length()))
  handle:respond({ [":status"] = "200" }, list and list[1].name or problem)
end
"""


def test_requests_as_envoy_shows_them(tmp_path: Path) -> None:
    with running_lua(requests_lua(), tmp_path, _REAL) as answer:
        assert answer(BODY, JSON) == b"add"
        assert answer(BODY, JSON, ("Mcp-Name", "add")) == b"add"
        assert answer(BODY, JSON, ("Mcp-Name", "add"), ("Mcp-Name", "rm")) == b"headers"
        assert answer(BODY, JSON, ("mcp-name", "add,rm")) == b"headers"
        assert answer(BODY, JSON, ("Content-Type", "text/plain")) == b"content-type"
        assert answer(BODY, ("Content-Type", "application/json; charset=utf-8"), JSON) == b"content-type"
        assert answer(BODY, JSON, ("Content-Encoding", "gzip")) == b"content-encoding"
        assert answer(BODY, JSON, ("X-HTTP-Method-Override", "GET")) == b"http-method"
        assert answer(BODY + b"x", JSON) == b"syntax"
        assert answer(b"", JSON) == b"syntax"
