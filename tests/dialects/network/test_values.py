"""Networks, port names and domain names, as API servers accept them."""

from __future__ import annotations

import pytest

from eastgate.dialects.network.values import domain_pattern_problem, network_of, port_name_problem, strict_network_of


@pytest.mark.parametrize(
    ("text", "sloppy", "strict"),
    [
        ("10.0.0.0/8", "10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8", "10.0.0.0/8"),  # host bits
        ("010.0.0.0/8", "10.0.0.0/8", None),  # leading zeros: the number is still decimal
        ("10.0.0.0/08", "10.0.0.0/8", None),
        ("0.0.0.0/0", "0.0.0.0/0", "0.0.0.0/0"),
        ("000.0.0.0/0", "0.0.0.0/0", None),
        ("fd00::1/8", "fd00::/8", "fd00::/8"),
        ("::ffff:10.0.0.0/104", "10.0.0.0/8", None),  # IPv4 written as IPv6
        ("10.0.0.1", None, None),
        ("10.0.0.0/33", None, None),
        ("10.0.0.0/255.0.0.0", None, None),
        ("10.0.0.0/-1", None, None),
        ("10.0.0.0/8 ", None, None),
        ("10.0.0/8", None, None),
        ("fe80::%eth0/64", None, None),
        ("10.0.0.0/٨", None, None),
        ("", None, None),
        ("/8", None, None),
    ],
)
def test_networks(text: str, sloppy: str | None, strict: str | None) -> None:
    def shown(network: object) -> str | None:
        return None if network is None else str(network)

    assert (shown(network_of(text)), shown(strict_network_of(text))) == (sloppy, strict)


@pytest.mark.parametrize("name", ["http", "a", "a1", "1a", "a-b", "fifteen-letters"])
def test_names_of_ports(name: str) -> None:
    assert port_name_problem(name) is None


@pytest.mark.parametrize("name", ["", "80", "1-2", "HTTP", "a--b", "-a", "a-", "a_b", "sixteen-letters-", "ä"])
def test_invalid_names_of_ports(name: str) -> None:
    assert port_name_problem(name) is not None


@pytest.mark.parametrize("name", ["example.com", "example.com.", "*.example.com", "A.Example", "a_b.example", "1.2"])
def test_domain_names(name: str) -> None:
    assert domain_pattern_problem(name) is None


@pytest.mark.parametrize(
    "name", ["", "*", "*.", "localhost", "*.com", "a.*.com", "-a.com", "a..com", "a.com..", ".com"]
)
def test_invalid_domain_names(name: str) -> None:
    assert domain_pattern_problem(name) is not None
