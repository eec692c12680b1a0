"""A session id works only for the agent that received it, at the server that issued it."""

from __future__ import annotations

import pytest

from tests.reading.mcp.sessions import MAX_LENGTH, unwrap_session, wrap_session

KEY = b"k" * 32
PEER = "spiffe://cluster.local/ns/prod/sa/agent"
BACKEND = "prod/tools"


def test_the_same_peer_gets_its_session_back() -> None:
    token = wrap_session(KEY, PEER, BACKEND, "a.b")
    assert token is not None
    assert token.startswith("a.b.")
    assert unwrap_session(KEY, PEER, BACKEND, token) == "a.b"


FORGED = [
    (b"other" * 8, PEER, BACKEND, "{}"),
    (KEY, PEER + "2", BACKEND, "{}"),
    (KEY, PEER, BACKEND + "2", "{}"),
    (KEY, PEER[:-1], "t\0" + BACKEND, "{}"),
    (KEY, "", BACKEND, "{}"),
    (KEY, PEER, "", "{}"),
    (KEY, PEER, BACKEND, "x{}"),
    (KEY, PEER, BACKEND, "{}0"),
    (KEY, PEER, BACKEND, "{} "),
    (KEY, PEER, BACKEND, " {}"),
    (KEY, PEER, BACKEND, "{},{}"),
    (KEY, PEER, BACKEND, "{}\r\nx: y"),
    (KEY, PEER, BACKEND, "id"),
    (KEY, PEER, BACKEND, "id."),
    (KEY, PEER, BACKEND, "." + "0" * 32),
    (KEY, PEER, BACKEND, "id." + "0" * 32),
    (KEY, PEER, BACKEND, ""),
    (KEY, PEER, BACKEND, "." * 40),
]


@pytest.mark.parametrize(("key", "peer", "backend", "token"), FORGED)
def test_no_other_agent_can_use_it(key: bytes, peer: str, backend: str, token: str) -> None:
    given = wrap_session(KEY, PEER, BACKEND, "id")
    assert unwrap_session(key, peer, backend, token.format(given, given)) is None


def test_upper_case_digits_are_another_tag() -> None:
    token = wrap_session(KEY, PEER, BACKEND, "ID")
    assert token is not None
    assert unwrap_session(KEY, PEER, BACKEND, token.upper()) is None


NOT_ALLOWED = ["", " ", "a b", "a\tb", "a\r\nset-cookie: x", "a\0", "a\x7f", "\u00e4", "a" * (MAX_LENGTH + 1)]


@pytest.mark.parametrize("session", NOT_ALLOWED, ids=range(len(NOT_ALLOWED)))
def test_ids_that_the_protocol_does_not_allow_are_refused(session: str) -> None:
    assert wrap_session(KEY, PEER, BACKEND, session) is None


def test_the_longest_id_is_taken_back() -> None:
    token = wrap_session(KEY, PEER, BACKEND, "~" * MAX_LENGTH)
    assert token is not None
    assert unwrap_session(KEY, PEER, BACKEND, token) == "~" * MAX_LENGTH
