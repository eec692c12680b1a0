"""Each workload has an address of its own, and keeps it."""

from __future__ import annotations

import socket
from ipaddress import IPv4Network

import pytest

from eastgate.mesh.local import addresses as module
from eastgate.mesh.local.addresses import Addresses, AddressesExhausted, NetworkUnavailable
from tests.mesh.local.envoys import free_port


def test_addresses_follow_the_order_of_keys_and_stay() -> None:
    with Addresses("127.201.0.0/16") as addresses:
        assert addresses.own == "127.201.0.1"
        assert addresses.assign(["b", "a"]) == {"a": "127.201.0.2", "b": "127.201.0.3"}
        assert addresses.assign(["b"]) == {"b": "127.201.0.3"}
        assert addresses.assign(["0", "b"]) == {"0": "127.201.0.4", "b": "127.201.0.3"}
        assert addresses.assign(["0", "a", "b"])["a"] == "127.201.0.2"


def test_an_address_is_given_to_another_only_when_there_is_no_new_one() -> None:
    with Addresses("127.201.0.0/29") as addresses:
        first = addresses.assign("abcde")
        assert len(set(first.values())) == 5
        addresses.assign("acde")
        addresses.assign("acd")
        assert addresses.assign("acdf")["f"] == first["b"]
        assert addresses.assign("acdfg")["g"] == first["e"]
        with pytest.raises(AddressesExhausted, match="too few addresses for 6"):
            addresses.assign("acdfgh")


def test_thousands_of_addresses_look_like_hosts() -> None:
    with Addresses("127.201.0.0/16") as addresses:
        given = addresses.assign(f"{number:05}" for number in range(2000))
        assert len(set(given.values())) == 2000
        assert not any(address.endswith((".0", ".255")) for address in given.values())


def test_two_meshes_have_different_networks() -> None:
    with Addresses() as one, Addresses() as two:
        assert one.network != two.network
        assert one.network.prefixlen == 16
        with pytest.raises(NetworkUnavailable, match="another mesh uses"):
            Addresses(str(one.network))
        again = str(one.network)
    with Addresses(again):
        pass


def test_a_network_in_which_somebody_listens_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_USUAL", (IPv4Network("127.202.0.0/16"), IPv4Network("127.203.0.0/16")))
    with socket.socket() as somebody:
        somebody.bind(("127.202.3.4", 0))
        somebody.listen()
        with Addresses() as addresses:
            assert str(addresses.network) == "127.203.0.0/16"
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
        assert addresses.bind_port(port).port == port
        with socket.socket() as ours:
            ours.bind((addresses.own, port))
            ours.listen()
            assert addresses.bind_port(port).port == port  # as it was: it is the mesh that uses it now


def test_a_port_that_is_not_permitted_is_moved_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with Addresses() as addresses:
        _refuse_below(1024, monkeypatch)
        bound = addresses.bind_ports([80, 10080, 443])
        assert (bound[10080].port, bound[10080].reason) == (10080, "")
        assert bound[80].port == 20080  # 10080 is wanted by somebody else
        assert str(bound[443]) == "port 443 is for the system only: using 10443"
        assert addresses.bind_port(443) is bound[443]
        assert addresses.bind_port(10443).port == 20443


def test_a_port_that_somebody_has_on_all_addresses_is_moved() -> None:
    with Addresses() as addresses, socket.socket() as somebody:
        somebody.bind(("0.0.0.0", 0))  # noqa: S104 - this is the case to test
        somebody.listen()
        port = somebody.getsockname()[1]
        bound = addresses.bind_port(port)
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
