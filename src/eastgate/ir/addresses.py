"""Reads IP addresses and networks. An IPv4 address that is written as IPv6 (`::ffff:10.0.0.1`) is the IPv4 address.

Every address and every network of the product goes through here, so that no spelling of an address evades a block.
A block of IPv6 addresses, `::/0` too, has no IPv4 address in it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96  # before the IPv4 address in an IPv6 address that means one


def parse_address(text: object) -> Address:
    """Return the address of a text. Raises ValueError."""
    address = ip_address(str(text))
    return address if isinstance(address, IPv4Address) else address.ipv4_mapped or address


def parse_network(text: object, *, strict: bool = False) -> Network:
    """Return the network of a CIDR, or of one address; with `strict`, no bit behind the prefix may be set.

    Raises ValueError, also for a block with mapped and with other IPv6 addresses: its meaning is unclear.
    """
    network = ip_network(str(text), strict=strict)
    if isinstance(network, IPv4Network) or (mapped := _mapped(str(text))) is None:
        return network
    if network.prefixlen < _MAPPED_BITS:
        raise ValueError(f"{text} has IPv4 and IPv6 addresses in it")
    return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS), strict=False)


def mapped_problem(text: str) -> str | None:
    """Return the help for a network with mapped and with other IPv6 addresses; None for any other."""
    try:
        mapped, network = _mapped(text), ip_network(text, strict=False)
    except ValueError:
        return None
    if mapped is None or network.prefixlen >= _MAPPED_BITS:
        return None
    return f"the prefix of an IPv4 network that is written as IPv6 is {_MAPPED_BITS} or more; better write it as IPv4"


def _mapped(text: str) -> IPv4Address | None:
    host = text.partition("/")[0]
    return IPv6Address(host).ipv4_mapped if ":" in host else None
