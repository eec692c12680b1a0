"""Each workload has an address of its own, and keeps it."""

from __future__ import annotations

import os
import socket
from ipaddress import IPv4Network

import pytest

from eastgate.local.machine import addresses as module
from eastgate.local.machine.addresses import Addresses, AddressesExhausted, NetworkUnavailable
from tests.local.machine.envoys import free_port


def network(number: int, prefix: int = 20) -> str:
    """A network that no other test, nor the same one of another run, uses at the same time."""
    return f"127.{130 + os.getpid() % 100}.{16 * number}.0/{prefix}"


def test_addresses_follow_the_order_of_keys_and_stay() -> None:
    with Addresses(network(0)) as addresses:
        base = network(0).removesuffix(".0/20")
        assert addresses.own == f"{base}.1"
        assert addresses.assign(["b", "a"]) == {"a": f"{base}.2", "b": f"{base}.3"}
        assert addresses.assign(["b"]) == {"b": f"{base}.3"}
        assert addresses.assign(["0", "b"]) == {"0": f"{base}.4", "b": f"{base}.3"}
        assert addresses.assign(["0", "a", "b"])["a"] == f"{base}.2"


def test_an_address_is_given_to_another_only_when_there_is_no_new_one() -> None:
    with Addresses(network(1, 29)) as addresses:
        first = addresses.assign("abcde")
        assert len(set(first.values())) == 5
        addresses.assign("acde")
        addresses.assign("acd")
        assert addresses.assign("acdf")["f"] == first["b"]
        assert addresses.assign("acdfg")["g"] == first["e"]
        with pytest.raises(AddressesExhausted, match="too few addresses for 6"):
            addresses.assign("acdfgh")


def test_thousands_of_addresses_look_like_hosts() -> None:
    with Addresses(network(2)) as addresses:
        given = addresses.assign(f"{number:05}" for number in range(2000))
        assert len(set(given.values())) == 2000
        assert not any(address.endswith((".0", ".255")) for address in given.values())


def test_two_meshes_have_different_networks() -> None:
    with Addresses() as one, Addresses() as two:
        assert one.network != two.network
        assert one.network.prefixlen == 16
        with pytest.raises(NetworkUnavailable, match="another mesh uses"):
            Addresses(str(one.network))
    for _ in range(2):
        with Addresses(network(3)):  # it is available again
            pass


def test_a_network_with_a_listening_socket_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = IPv4Network(network(4)), IPv4Network(network(5))
    monkeypatch.setattr(module, "_USUAL_NETWORKS", (taken, free))
    with socket.socket() as somebody:
        somebody.bind((str(taken[77]), 0))
        somebody.listen()
        with Addresses() as addresses:
            assert addresses.network == free
            with pytest.raises(NetworkUnavailable, match="no network in 127"):
                Addresses()


@pytest.mark.parametrize(
    "network", ["10.0.0.0/16", "127.0.0.0/8", "127.1.0.0/30", "127.1.0.1/16", "nonsense", "::1/64"]
)
def test_other_networks_are_refused(network: str) -> None:
    with pytest.raises(NetworkUnavailable):
        Addresses(network)


def test_a_port_that_can_be_opened_stays() -> None:
    with Addresses() as addresses:
        port = free_port(addresses.own)
        assert addresses.bind_ports([port])[port].port == port
        with socket.socket() as ours:
            ours.bind((addresses.own, port))
            ours.listen()
            assert addresses.bind_ports([port])[port].port == port  # unchanged: the mesh uses it now


def test_a_port_that_is_not_permitted_is_moved_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with Addresses() as addresses:
        _refuse_below(1024, monkeypatch)
        bound = addresses.bind_ports([80, 10080, 443])
        assert (bound[10080].port, bound[10080].reason) == (10080, "")
        assert bound[80].port == 20080  # another process wants 10080
        assert str(bound[443]) == "port 443 is for the system only: using 10443"
        assert addresses.bind_ports([443])[443] is bound[443]
        assert addresses.bind_ports([10443])[10443].port == 20443


def test_a_port_that_is_in_use_on_all_addresses_is_moved() -> None:
    with Addresses() as addresses, socket.socket() as somebody:
        somebody.bind(("0.0.0.0", 0))  # noqa: S104 - this is the case to test
        somebody.listen()
        port = somebody.getsockname()[1]
        bound = addresses.bind_ports([port])[port]
        assert bound.port != port
        assert 1024 < bound.port < 65536
        assert bound.reason == "in use on all addresses"


def _refuse_below(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a user who is not root."""

    class Unprivileged(socket.socket):
        def bind(self, address: object) -> None:
            assert isinstance(address, tuple)
            if address[1] < first:
                raise PermissionError(13, "Permission denied")
            super().bind(address)

    monkeypatch.setattr(socket, "socket", Unprivileged)
