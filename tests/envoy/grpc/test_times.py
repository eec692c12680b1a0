"""The timeouts of a connection of the gRPC server, and its end."""

from __future__ import annotations

import asyncio

from eastgate.envoy.grpc.frames import ErrorCode
from tests.attacks.frames import ACK, END_HEADERS, GOAWAY, HEADERS, PING, frame, opening
from tests.envoy.grpc.peers import OPENING, Peer, block, call, later, on_loop, setting


@on_loop
async def test_who_does_not_begin_is_left() -> None:
    peer = Peer().send(OPENING[:10])
    later(peer, 9)
    assert not peer.transport.closed
    later(peer, 11)
    assert peer.transport.closed


@on_loop
async def test_a_call_that_does_not_arrive_is_reset_and_one_that_waits_is_not() -> None:
    peer = Peer().send(OPENING + frame(HEADERS, END_HEADERS, 1, block()) + call(b"/t.T/Later", stream=3))
    later(peer, 11)
    assert (peer.reset(1), peer.reset(3), peer.transport.closed) == (ErrorCode.CANCEL, None, False)
    peer.service.open.set()
    await peer.settle()
    assert peer.status(3) == 0


@on_loop
async def test_who_does_not_take_an_answer_is_left() -> None:
    peer = Peer().send(opening(setting(4, 0)) + call())
    later(peer, 9)
    assert not peer.transport.closed
    later(peer, 11)
    assert peer.transport.closed


@on_loop
async def test_who_is_silent_is_asked_and_then_left() -> None:
    peer = Peer().send(OPENING)
    later(peer, 121)
    probes = [each.payload for each in peer.frames if each.kind == PING]
    assert (len(probes), peer.transport.closed) == (1, False)
    peer.send(frame(PING, ACK, 0, probes[0]))
    later(peer, 121)
    assert not peer.transport.closed
    later(peer, 140)
    assert peer.transport.closed


# The end


@on_loop
async def test_at_the_end_calls_on_their_way_are_answered_and_then_none() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later"))
    draining = asyncio.create_task(peer.server.drain(60))
    await asyncio.sleep(0)
    peer.hear()
    assert peer.end == ErrorCode.NO_ERROR
    assert peer.send(call(stream=3)).status(3) == 0  # sent before the end was known
    while sum(each.kind == GOAWAY for each in peer.frames) < 2:
        await asyncio.sleep(0.01)
        peer.hear()
    assert peer.send(call(stream=5)).reset(5) == ErrorCode.REFUSED_STREAM
    assert not peer.transport.closed
    peer.service.open.set()
    await peer.settle()
    assert (peer.status(1), peer.transport.closed) == (0, True)
    peer.connection.connection_lost(None)
    await draining
    late = Peer(peer.service, peer.server)
    late.hear()
    assert late.transport.closed


@on_loop
async def test_what_is_open_after_the_grace_is_cut_off() -> None:
    peer = Peer().send(OPENING + call(b"/t.T/Later"))
    await peer.server.drain(0.0)
    assert peer.transport.closed


@on_loop
async def test_connections_over_the_limit_take_the_room_of_idle_ones_or_are_closed() -> None:
    busy = Peer(connections=3).send(OPENING + call(b"/t.T/Later"))
    called, idle = (Peer(busy.service, busy.server).send(OPENING) for _ in range(2))
    called.send(call())
    fresh = Peer(busy.service, busy.server).send(OPENING)
    idle.hear()
    assert (idle.end, idle.transport.closed) == (ErrorCode.NO_ERROR, True)  # it never made a call
    assert fresh.send(call(b"/t.T/Later")).end is None
    last = Peer(busy.service, busy.server).send(OPENING)
    assert called.transport.closed
    last.send(call(b"/t.T/Later"))
    refused = Peer(busy.service, busy.server)
    refused.hear()
    assert (refused.end, refused.transport.closed) == (ErrorCode.ENHANCE_YOUR_CALM, True)
    assert not any(peer.transport.closed for peer in (busy, fresh, last))
