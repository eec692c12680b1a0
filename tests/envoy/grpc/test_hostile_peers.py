"""For any bytes of peers, only valid calls reach a method, nothing breaks, and no memory is kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from tests.attacks.frames import frame
from tests.attacks.http2 import tries
from tests.envoy.grpc.peers import OPENING, Peer, call

_SESSION = OPENING + call(content=b"first") + call(b"/t.T/Other", b"second", 3) + call(content=b"third", stream=5)


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


def served(pieces: Sequence[bytes]) -> list[bytes]:
    """Serve bytes of a peer; return the messages that a method got. The server raises no error."""
    errors, log = _Errors(), logging.getLogger("eastgate.envoy.grpc")
    log.addHandler(errors)

    async def run() -> list[bytes]:
        peer = Peer()
        for piece in pieces:
            peer.send(piece)
        assert peer.transport.closed == (peer.end is not None)
        peer.connection.connection_lost(None)
        assert peer.connection.is_idle
        assert peer.server.hold(peer.server.limits.held, 0)  # no count remains
        return peer.service.calls

    try:
        return asyncio.run(run())
    finally:
        log.removeHandler(errors)
        assert errors.messages == []


@given(
    changes=st.lists(
        st.tuples(st.integers(0, len(_SESSION) - 1), st.integers(0, 3), st.binary(max_size=12)), min_size=1, max_size=4
    ),
    cuts=st.lists(st.integers(0, len(_SESSION)), max_size=6),
)
@example(changes=[(0, 1, b"")], cuts=[len(_SESSION)])  # the cut is after these bytes
def test_changed_bytes(changes: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
    written = bytearray(_SESSION)
    for at, removed, added in changes:
        written[at : at + removed] = added
    pieces = [bytes(written[start:end]) for start, end in pairwise(sorted((0, *cuts, len(written))))]
    assert len(served([piece for piece in pieces if piece])) <= 3


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 255), st.integers(0, 6), st.binary(max_size=24))))
def test_frames_of_all_kinds(frames: list[tuple[int, int, int, bytes]]) -> None:
    served([OPENING, *(frame(*each) for each in frames), call(stream=99)])


def test_attacks_on_proxies() -> None:
    for attack in tries():
        assert served([piece for piece in attack.pieces if piece]) == [], attack.name
