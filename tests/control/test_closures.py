"""Ports that are closed because their proxy lacks resources, and their opening."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from eastgate.control import closures as closures_module
from eastgate.control.closures import TRUST, ClosingResources, Closures
from eastgate.envoy.server.resources import CLUSTER, EXTENSION, LISTENER, SECRET, ResourceKey, XdsResource
from eastgate.envoy.server.status import ResourceRejection, ResourceState, ResourceStatus

NODE, PORT = "shop/cart", 80
CLOSING = ClosingResources(
    XdsResource(LISTENER, "connections/80", b"closed"), (LISTENER, "inbound/80"), (EXTENSION, "80/audit")
)
WHO, RULES, OUTER = (LISTENER, "connections/80"), (EXTENSION, "80/requests"), (LISTENER, "inbound/80")
POLICY = "Kind/shop/p"


@pytest.fixture(autouse=True)
def any_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept any body: the bodies of these resources are not messages."""
    monkeypatch.setattr(closures_module, "find_obstacle", lambda _: None)


def _resources(version: str = "1") -> list[XdsResource]:
    keys = [WHO, RULES, OUTER, CLOSING.audit, (CLUSTER, "app/80")]
    return [XdsResource(*key, version.encode(), frozenset({POLICY})) for key in keys]


def _trust(version: str = "1") -> list[XdsResource]:
    return [XdsResource(SECRET, "trust", version.encode())]


def _guard(closures: Closures, version: str = "1", trust: str = "1") -> dict[ResourceKey, bytes]:
    return {one.key: one.body for one in closures.guard(NODE, PORT, _resources(version), _trust(trust), CLOSING)}


def _reject(closures: Closures, key: ResourceKey, version: str = "1") -> None:
    body = XdsResource(*key, version.encode()).version
    closures.reject(NODE, key, ResourceRejection(body, "no", frozenset({POLICY}), datetime.now(UTC)))


def _states(*but: ResourceKey) -> dict[ResourceKey, ResourceState]:
    keys = [RULES, OUTER, CLOSING.audit, TRUST]
    return {key: ResourceState.WAITING if key in but else ResourceState.ACCEPTED for key in keys}


@pytest.mark.parametrize("key", [WHO, RULES, OUTER, TRUST])
def test_a_rejected_deciding_resource_closes_the_port(key: ResourceKey) -> None:
    closures = Closures()
    _reject(closures, key)
    assert _guard(closures)[WHO] == b"closed"
    closure = closures.closed[NODE, PORT]
    assert (closure.policies, closure.where) == ((POLICY,), "shop/cart port 80")
    assert "no" in closure.reason


@pytest.mark.parametrize("key", [CLOSING.audit, (CLUSTER, "app/80")])
def test_a_rejected_resource_that_does_not_decide_closes_nothing(key: ResourceKey) -> None:
    closures = Closures()
    _reject(closures, key)
    assert _guard(closures)[WHO] == b"1"
    assert not closures.closed


def test_a_rejection_of_something_older_closes_nothing() -> None:
    closures = Closures()
    _reject(closures, RULES, "0")
    assert _guard(closures)[WHO] == b"1"


def test_a_port_opens_when_everything_else_was_accepted_and_not_before() -> None:
    closures = Closures()
    _reject(closures, RULES)
    _guard(closures)
    assert not closures.open(NODE, _states()), "what was rejected is still wanted"
    assert _guard(closures, "2")[WHO] == b"closed"
    assert (NODE, PORT) in closures.closed
    for key in (RULES, OUTER, TRUST):
        assert not closures.open(NODE, _states(key))
    assert closures.open(NODE, _states(CLOSING.audit))
    assert _guard(closures, "2")[WHO] == b"2"
    assert not closures.closed
    assert not closures.has_closed_ports(NODE)


def test_a_proxy_that_rejects_the_closing_listener_loses_the_outer_listener() -> None:
    closures = Closures()
    _reject(closures, RULES)
    _guard(closures)
    closures.reject(NODE, WHO, ResourceRejection(CLOSING.listener.version, "no", frozenset(), datetime.now(UTC)))
    assert {WHO, OUTER}.isdisjoint(_guard(closures))


def test_a_port_that_is_gone_is_not_closed() -> None:
    closures = Closures()
    _reject(closures, RULES)
    _guard(closures)
    closures.keep(NODE, [81])
    assert not closures.closed
    assert not closures.has_closed_ports(NODE)


def test_a_rejection_is_forgotten_after_a_later_acceptance() -> None:
    """For example, an address that was in use is free again."""
    closures = Closures()
    _reject(closures, OUTER)
    _guard(closures)
    version = XdsResource(*OUTER, b"1").version
    assert closures.forget_accepted(NODE, [ResourceStatus(*OUTER, version, version, None)])
    _guard(closures)
    assert closures.open(NODE, _states())
    assert _guard(closures)[WHO] == b"1"
