"""Placed workloads have addresses of their own, and share localhost with all processes."""

from __future__ import annotations

from ipaddress import ip_network

from eastgate.cluster import LiveWorld, Pod


def world() -> LiveWorld:
    return LiveWorld.of([Pod("a", "p", ips=("10.0.0.1",)), Pod("a", "q")])


def test_where_nothing_is_placed_localhost_is_the_pod_itself() -> None:
    found = world()
    assert found.placement is None
    assert [found.address_of(one) for one in found.workloads.values()] == ["10.0.0.1", None]


def test_a_workload_that_is_placed_is_known_to_itself_by_its_address() -> None:
    found = world()
    found.assign_addresses({"a/p": "127.64.0.2"})
    placed, other = found.workloads["a/p"], found.workloads["a/q"]
    assert found.placement is not None
    assert found.placement.itself(placed.key) == (ip_network("127.64.0.2/32"),)
    assert found.placement.itself(other.key) == ()
    assert (found.address_of(placed), found.address_of(other)) == ("127.64.0.2", None)


def test_addresses_side_by_side_are_one_network() -> None:
    found = world()
    found.assign_addresses({"a/p": "127.64.0.2", "a/q": "127.64.0.3"})
    assert found.placement is not None
    assert list(map(str, found.placement.networks)) == ["127.64.0.2/31"]
    found.assign_addresses({"a/p": "127.64.0.2", "a/q": "fd00::1"})
    assert list(map(str, found.placement.networks)) == ["127.64.0.2/32", "fd00::1/128"]


def test_placing_tells_what_it_changes() -> None:
    found = world()
    assert found.assign_addresses({"a/p": "127.64.0.2"}).changed == {"a/p", "a/q"}
    assert not found.assign_addresses({"a/p": "127.64.0.2"})
