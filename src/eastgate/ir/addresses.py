"""Parsers of IP addresses and networks. An IPv4 address written as IPv6 (`::ffff:10.0.0.1`) is the IPv4 address.

All code of Eastgate parses addresses and networks with this module, so that no spelling of an address evades a block.
A block of IPv6 addresses contains no IPv4 address. This is also true of `::/0`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from eastgate.basics.regexes import regex

# Comparison of hosts: the same in every dialect and in the proxies that enforce policies.
#
# A host is compared without port, letter case and trailing dot. A request with an invalid host or port is refused
# before any policy is evaluated, because servers disagree about its meaning.


_GROUP: Final = "[0-9a-f]{1,4}"
_BYTE: Final = "(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})"


def _ipv6() -> str:
    """Return a regular expression for IPv6 addresses, with or without an IPv4 address at their end."""
    four = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
    forms = [rf"(?:{_GROUP}:){{7}}{_GROUP}", rf"(?:{_GROUP}:){{6}}{four}", rf"(?:{_GROUP}:){{1,7}}:"]
    forms += [rf"(?:{_GROUP}:){{1,{before}}}(?::{_GROUP}){{1,{7 - before}}}" for before in range(1, 7)]
    forms += [rf"(?:{_GROUP}:){{1,{before}}}(?::{_GROUP}){{0,{5 - before}}}:{four}" for before in range(1, 6)]
    forms += [rf":(?::{_GROUP}){{1,7}}", rf":(?::{_GROUP}){{0,5}}:{four}", "::"]
    return "|".join(forms)


# RE2 and Python read these expressions alike, and proxies get the same ones. Letter case is ignored.
PORT_PATTERN: Final = (
    "0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"  # 0 to 65535
)
HOST_PATTERN: Final = rf"(?:[a-z0-9._-]*[a-z0-9_-]\.?|\[(?:{_ipv6()})\])(?::{PORT_PATTERN})?"

_HOST = regex(HOST_PATTERN, re.IGNORECASE | re.ASCII)
_PORT = regex(rf":{PORT_PATTERN}$", re.ASCII)


def is_host(raw: str) -> bool:
    """Return whether a text is a valid host of a request: a name or an address, with an optional port."""
    return _HOST.fullmatch(raw) is not None


def comparable_host(raw: str) -> str:
    """Return a host without port and trailing dot, in lower case."""
    return _PORT.sub("", raw.lower()).removesuffix(".")


def comparable_sni(raw: str) -> str:
    """Return the name in a TLS handshake in lower case, and otherwise unchanged.

    An SNI has no port and no trailing dot (RFC 6066). Proxies, too, take such an ending for a part of the name.
    """
    return raw.lower()


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_MAPPED_BITS: Final = 96  # of an IPv4 address written as IPv6, before its last 32 bits


def parse_address(text: object) -> Address:
    """Return the address of a text. Raises ValueError."""
    address = ip_address(str(text))
    return address if isinstance(address, IPv4Address) else address.ipv4_mapped or address


def parse_network(text: object, *, strict: bool = False) -> Network:
    """Return the network of a CIDR, or of one address. With `strict`, no bit after the prefix may be set.

    Raises ValueError, also for a block that contains both IPv4 addresses written as IPv6 and others: its meaning is
    unclear.
    """
    network = ip_network(str(text), strict=strict)
    if isinstance(network, IPv4Network) or (mapped := _mapped(str(text))) is None:
        return network
    if network.prefixlen < _MAPPED_BITS:
        raise ValueError(f"{text} has IPv4 and IPv6 addresses in it")
    return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS), strict=False)


def mapped_problem(text: str) -> str | None:
    """Return the help text for a block that contains IPv4 addresses written as IPv6 and others, or None."""
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
