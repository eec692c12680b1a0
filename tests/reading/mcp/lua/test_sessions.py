"""Lua inside Envoy treats session ids as Python does, and computes the HMAC of the standard."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate.envoy.config.gateway_filters import sessions_lua
from tests.reading.mcp.lua.running import Answer, ask, running_lua
from tests.reading.mcp.sessions import MAX_LENGTH, unwrap_session, wrap_session
from tests.reading.mcp.test_sessions import BACKEND, FORGED, KEY, NOT_ALLOWED, PEER

_SCRIPT = """
local headers = {}
function headers.new(values)
  local self = { values = values }
  function self:getNumValues() return #self.values end
  function self:get() return self.values[1] end
  function self:remove() self.values = {} end
  function self:add(_, value) self.values[#self.values + 1] = value end
  return self
end
function answer(what, key, ...)
  local bound = sessions.new(key)
  if what == "take" or what == "give" then
    local peer, backend = ...
    local made = headers.new({ select(3, ...) })
    return bound[what](made, peer, backend) .. ":" .. table.concat(made.values, "|")
  end
  return bound[what](...)
end
"""


@pytest.fixture(scope="module")
def lua(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answer]:
    with running_lua(sessions_lua() + _SCRIPT, tmp_path_factory.mktemp("sessions")) as answer:
        yield answer


@pytest.mark.parametrize(("key", "peer", "backend", "token"), FORGED)
def test_no_other_agent_can_use_it(lua: Answer, key: bytes, peer: str, backend: str, token: str) -> None:
    given = wrap_session(KEY, PEER, BACKEND, "id")
    sent = token.format(given, given)
    assert unwrap_session(key, peer, backend, sent) is None
    row = (b"unwrap", key, peer.encode(), backend.encode(), sent.encode())
    assert ask(lua, [row]) == [b"=nil"]


def test_upper_case_digits_are_another_tag(lua: Answer) -> None:
    token = wrap_session(KEY, PEER, BACKEND, "ID")
    assert token is not None
    assert unwrap_session(KEY, PEER, BACKEND, token.upper()) is None
    assert ask(lua, [(b"unwrap", KEY, PEER.encode(), BACKEND.encode(), token.upper().encode())]) == [b"=nil"]


@pytest.mark.parametrize("session", NOT_ALLOWED, ids=range(len(NOT_ALLOWED)))
def test_ids_that_the_protocol_does_not_allow_are_refused(lua: Answer, session: str) -> None:
    assert wrap_session(KEY, PEER, BACKEND, session) is None
    row = (b"wrap", KEY, PEER.encode(), BACKEND.encode(), session.encode())
    assert ask(lua, [row]) == [b"=nil"]


def test_headers_are_replaced(lua: Answer) -> None:
    token = (wrap_session(KEY, PEER, BACKEND, "id") or "").encode()
    ends = KEY, PEER.encode(), BACKEND.encode()
    rows = {
        (b"give", *ends): b"=none:",
        (b"give", *ends, b"id"): b"=ok:" + token,
        (b"give", *ends, b"id", b"id"): b"=bad:",
        (b"give", *ends, b"i d"): b"=bad:",
        (b"take", *ends): b"=none:",
        (b"take", *ends, token): b"=ok:id",
        (b"take", *ends, token, token): b"=bad:",
        (b"take", *ends, b"id"): b"=bad:",
        (b"take", *ends, b""): b"=bad:",
    }
    assert ask(lua, list(rows)) == list(rows.values())


# RFC 4231, test cases 1 to 4, 6 and 7
VECTORS = [
    (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (b"\xaa" * 20, b"\xdd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    (bytes(range(1, 26)), b"\xcd" * 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
    (
        b"\xaa" * 131,
        b"Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ),
    (
        b"\xaa" * 131,
        b"This is a test using a larger than block-size key and a larger than block-size data. "
        b"The key needs to be hashed before being used by the HMAC algorithm.",
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    ),
]


def test_the_vectors_of_the_standard(lua: Answer) -> None:
    rows: list[tuple[bytes, ...]] = [(b"authenticated", key, message) for key, message, _ in VECTORS]
    assert ask(lua, rows) == [b"=" + digest.encode() for _, _, digest in VECTORS]


def test_lua_computes_the_same_as_python(lua: Answer) -> None:
    chance = random.Random(1)  # noqa: S311 - the same for each run
    messages = [chance.randbytes(length) for length in (*range(140), 1000, 4096)]
    keys = [chance.randbytes(chance.choice((1, 16, 32, 63, 64, 65, 200))) for _ in messages]
    rows: list[tuple[bytes, ...]] = [
        (b"authenticated", key, message) for key, message in zip(keys, messages, strict=True)
    ]
    expected = [hmac.new(key, message, hashlib.sha256).hexdigest() for _, key, message in rows]
    assert ask(lua, rows) == [b"=" + digest.encode() for digest in expected]


def test_lua_and_python_take_each_others_tokens(lua: Answer) -> None:
    chance = random.Random(2)  # noqa: S311 - the same for each run
    visible = [chr(code) for code in range(0x21, 0x7F)]
    ids = ["".join(chance.choices(visible, k=length)) for length in (*range(1, 60), MAX_LENGTH)]
    tokens = [wrap_session(KEY, PEER, BACKEND, session) or "" for session in ids]
    ends = KEY, PEER.encode(), BACKEND.encode()
    wrapped = ask(lua, [(b"wrap", *ends, session.encode()) for session in ids])
    assert wrapped == [b"=" + token.encode() for token in tokens]
    unwrapped = ask(lua, [(b"unwrap", *ends, token.encode()) for token in tokens])
    assert unwrapped == [b"=" + session.encode() for session in ids]
    assert [unwrap_session(KEY, PEER, BACKEND, token) for token in tokens] == ids


def test_a_script_can_stand_behind_the_module(tmp_path: Path) -> None:
    with running_lua(sessions_lua() + "function answer(x) return x end", tmp_path) as answer:
        assert ask(answer, [(b"a",)]) == [b"=a"]


_REAL = """
local bound = sessions.new(("k"):rep(32))
local peer, backend = "peer", "backend"
function envoy_on_request(handle)
  local headers = handle:headers()
  if headers:get("x-do") == "give" then
    headers:replace("x-state", bound.give(headers, peer, backend))
  else
    headers:replace("x-state", bound.take(headers, peer, backend))
  end
  handle:respond({ [":status"] = "200" }, headers:get("x-state") .. ":" .. (headers:get("mcp-session-id") or "-"))
end
"""


def test_headers_as_envoy_has_them(tmp_path: Path) -> None:
    token = wrap_session(KEY, "peer", "backend", "id") or ""
    name = "Mcp-Session-Id"
    with running_lua(sessions_lua(), tmp_path, _REAL) as answer:
        assert answer(b"") == b"none:-"
        assert answer(b"", (name, token)) == b"ok:id"
        assert answer(b"", (name, "id")) == b"bad:-"
        assert answer(b"", (name, "")) == b"bad:-"
        assert answer(b"", (name, token), (name, token)) == b"bad:-"
        assert answer(b"", (name, f"{token},{token}")) == b"bad:-"
        assert answer(b"", (name, "id"), ("x-do", "give")) == b"ok:" + token.encode()
        assert answer(b"", (name, "i d"), ("x-do", "give")) == b"bad:-"
        assert answer(b"", (name, "id"), (name, "id"), ("x-do", "give")) == b"bad:-"
