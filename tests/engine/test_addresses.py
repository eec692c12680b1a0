"""Every address has one spelling: an IPv4 address written as IPv6 is the IPv4 address."""

from __future__ import annotations

import pytest

from eastgate.ir import InNetwork
from eastgate.ir.addresses import mapped_problem, parse_address, parse_network


@pytest.mark.parametrize(
    "text", ["10.0.0.1", "::ffff:10.0.0.1", "::FFFF:10.0.0.1", "::ffff:a00:1", "0:0:0:0:0:ffff:0a00:0001"]
)
def test_every_spelling_of_an_ipv4_address_is_that_address(text: str) -> None:
    assert str(parse_address(text)) == "10.0.0.1"
    assert str(parse_network(text)) == "10.0.0.1/32"
    assert InNetwork((parse_network("10.0.0.0/8"),)).contains(text)
    assert not InNetwork((parse_network("::/0"),)).contains(text)


@pytest.mark.parametrize("text", ["::1", "2001:db8::1", "::10.0.0.1", "::fffe:10.0.0.1", "64:ff9b::a00:1"])
def test_other_ipv6_addresses_stay_ipv6(text: str) -> None:
    assert parse_address(text).version == 6
    assert InNetwork((parse_network("::/0"),)).contains(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
        ("::ffff:a00:0/104", "10.0.0.0/8"),
        ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
        ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
        ("::/0", "::/0"),
        ("::/96", "::/96"),
        ("::fffe:0:0/95", "::fffe:0:0/95"),
        ("10.1.2.3/8", "10.0.0.0/8"),
    ],
)
def test_a_network_of_mapped_addresses_is_one_of_ipv4(written: str, meant: str) -> None:
    assert str(parse_network(written)) == meant
    assert mapped_problem(written) is None


@pytest.mark.parametrize("text", ["::ffff:10.0.0.0/95", "::ffff:10.0.0.0/8", "::ffff:0:0/0"])
def test_mapped_addresses_with_others_among_them_are_no_network(text: str) -> None:
    with pytest.raises(ValueError, match="IPv4 and IPv6"):
        parse_network(text)
    assert mapped_problem(text) is not None


def test_strict_parsing_refuses_host_bits() -> None:
    with pytest.raises(ValueError, match="host bits"):
        parse_network("::ffff:10.0.0.1/104", strict=True)


@pytest.mark.parametrize("text", ["ten", "10.0.0.0/33", "::/129", ""])
def test_an_invalid_network_needs_no_other_help(text: str) -> None:
    assert mapped_problem(text) is None
