"""Lua inside Envoy reads requests as Python does."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from eastgate.mcp.headers import encode_value
from eastgate.mcp.lua import requests_lua
from tests.mcp.lua.running import Answer, ask, running_lua
from tests.mcp.test_requests import BODY, JSON, READABLE, REFUSED, Headers

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


def test_what_python_reads(lua: Answer) -> None:
    rows = [_row(method, headers, body) for method, headers, body, _ in READABLE]
    assert ask(lua, rows) == [f"={len(messages)}".encode() for *_, messages in READABLE]


def test_what_python_refuses(lua: Answer) -> None:
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
