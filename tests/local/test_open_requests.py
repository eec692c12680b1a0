"""Open requests that are decided again, and the treatment of those that are denied now."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from envoy.config.listener.v3 import listener_pb2

from eastgate.control.enforcement import Enforcement
from eastgate.control.events import Enforced, MeshEvent
from eastgate.control.fleet import SiteChange, everything
from eastgate.control.sites import ProxySite
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server.resources import LISTENER
from eastgate.envoy.server.store import Store
from eastgate.local import open_requests
from eastgate.local.open_requests import OpenRequestMonitor
from eastgate.settings import Settings
from tests.faults.worlds import HTTP, allow, reading, sa, world

_NODE = "shop/server"
_BASE = [*world(), allow("connect", "alice", "bob")]
_BEFORE = reading(*_BASE, allow("api", "alice", "bob", paths=["/api/*"]))(Settings())
_AFTER = reading(*_BASE, allow("api", "alice", paths=["/api/*"]))(Settings())


@dataclass
class _Mesh:
    """A control plane without proxies, with the log lines that proxies would send."""

    events: list[MeshEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = Store()
        self.enforcement = Enforcement(_BEFORE, self.store)
        self.sites = {
            _NODE: ProxySite(_NODE, "127.0.0.2", {HTTP: HTTP}, {HTTP: SocketAddress("/app")}, calls_out=False)
        }
        self.enforcement.follow(SiteChange(self.sites), everything(_BEFORE.world))
        self.open = OpenRequestMonitor(self.enforcement, self.events.append)
        self.settle()

    def settle(self) -> None:
        self.open.on_event(Enforced(1.0, (_NODE,)))

    def revoke(self) -> None:
        self.enforcement.decide_by(_AFTER)
        self.enforcement.follow(SiteChange(), everything(_AFTER.world))

    def log(self, who: str = "bob", began: float = -60.0, **more: Any) -> None:
        """A line about a request that begins this number of seconds from now."""
        line = {
            "eastgate": "open",
            "workload": _NODE,
            "port": HTTP,
            "peer": sa(who),
            "source": "127.0.0.1:4711",
            "began": f"{time.time() + began:.3f}",
            "method": "GET",
            "host": "a",
            "path": "/api/x",
            "decision": "200:open",
        }
        self.open.on_record({**line, **more})

    def chains(self) -> set[str]:
        """The names of the filter chains that lead to requests."""
        resource = self.store.of_type(_NODE, LISTENER)[f"connections/{HTTP}"]
        listener = listener_pb2.Listener.FromString(resource.body)
        return {one.name for one in listener.filter_chains if one.name.startswith("requests:")}


def test_only_what_began_before_a_change_is_decided_again() -> None:
    mesh = _Mesh()
    mesh.log()
    assert not mesh.events  # it is allowed
    mesh.revoke()
    mesh.settle()
    mesh.log(began=30)
    assert not mesh.events  # the proxy has decided it by the same policies
    mesh.log("alice")
    assert not mesh.events
    mesh.log()
    assert len(mesh.events) == 1


def test_until_a_change_has_settled_everything_is_decided_again() -> None:
    mesh = _Mesh()
    mesh.revoke()
    mesh.log(began=0)
    assert len(mesh.events) == 1


def test_requests_that_end_together_are_ended_once() -> None:
    mesh = _Mesh()
    mesh.revoke()
    for source in ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:1"):
        mesh.log(source=source)
    assert len(mesh.events) == 1


def test_a_proxy_that_does_not_close_them_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = _Mesh()
    mesh.revoke()
    mesh.log()
    monkeypatch.setattr(open_requests, "_CLOSING_SECONDS", 0.0)
    mesh.log()
    assert len(mesh.events) == 2


def test_when_the_clock_was_set_everything_is_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = _Mesh()
    mesh.revoke()
    mesh.settle()
    clock = open_requests._clock_offset()
    monkeypatch.setattr(open_requests, "_clock_offset", lambda: clock - 3600)
    mesh.log(began=30)
    assert len(mesh.events) == 1


@pytest.mark.parametrize("peer", ["none", "-"])
def test_a_caller_known_by_a_token_is_decided_again_by_its_identity(peer: str) -> None:
    mesh = _Mesh()
    mesh.revoke()
    mesh.log(peer=peer, identity=sa("alice"))
    assert not mesh.events
    mesh.log(peer=peer, identity=sa("bob"))
    assert len(mesh.events) == 1


def test_what_cannot_be_asked_is_denied() -> None:
    mesh = _Mesh()
    mesh.revoke()
    mesh.log("alice", path="no-path")
    assert len(mesh.events) == 1


def test_what_was_refused_and_lines_about_other_things_end_nothing() -> None:
    mesh = _Mesh()
    mesh.revoke()
    mesh.log(decision="403:none-of-1")
    mesh.log(decision=None)
    mesh.log(eastgate="request")
    mesh.log(workload="shop/gone")
    assert not mesh.events


def test_only_the_callers_own_chain_gets_another_name() -> None:
    mesh = _Mesh()
    mesh.revoke()
    before = mesh.chains()
    mesh.log()
    assert before - mesh.chains() == {f"requests:{sa('bob')}"}
    assert mesh.chains() - before == {f"requests:{sa('bob')}~1"}
