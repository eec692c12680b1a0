"""Networks, ports and domain names, as API servers take them."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

from eastgate.regexes import regex

__all__ = ["Network", "domain_pattern_problem", "network_of", "port_name_problem", "strict_network_of"]

Network = IPv4Network | IPv6Network

_PREFIX = regex(r"[0-9]{1,3}")
_LEADING_ZEROS = regex(r"(^|\.)0+(?=[0-9])")
_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9_]*[a-zA-Z0-9])?"
_DOMAIN = regex(rf"(\*\.)?({_LABEL}\.)+{_LABEL}\.?")
_PORT_CHARACTERS = regex(r"[-a-z0-9]+")
_LETTER = regex(r"[a-z]")
_LONGEST_PORT_NAME = 15


def strict_network_of(text: str) -> Network | None:
    """Return the network of a CIDR as CEL's `isCIDR` takes it: host bits are dropped, and no octet begins with a 0."""
    address, slash, prefix = text.partition("/")
    if not slash or not _PREFIX.fullmatch(prefix) or (prefix != "0" and prefix.startswith("0")) or "%" in address:
        return None
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    return None if _mapped(network) is not None else network


def network_of(text: str) -> Network | None:
    """Return the network of a CIDR as the validation of NetworkPolicies takes it: octets may begin with zeros."""
    address, slash, prefix = text.partition("/")
    if not slash or not _PREFIX.fullmatch(prefix) or "%" in address:
        return None
    sloppy = address if ":" in address else _LEADING_ZEROS.sub(r"\1", address)
    try:
        network = ip_network(f"{sloppy}/{int(prefix)}", strict=False)
    except ValueError:
        return None
    return _mapped(network) or network


def _mapped(network: Network) -> IPv4Network | None:
    """Return the IPv4 network that is written as one of mapped addresses."""
    if isinstance(network, IPv4Network) or network.network_address.ipv4_mapped is None or network.prefixlen < 96:
        return None
    return IPv4Network((network.network_address.ipv4_mapped, network.prefixlen - 96))


def port_name_problem(text: str) -> str | None:
    """Describe why a text is no name of a port (IANA_SVC_NAME); None where it is one."""
    if not text or len(text) > _LONGEST_PORT_NAME:
        return f"a name has 1 to {_LONGEST_PORT_NAME} characters"
    if not _PORT_CHARACTERS.fullmatch(text):
        return "a name has lower case letters, digits and dashes"
    if not _LETTER.search(text):
        return "a name has at least one letter"
    if text.startswith("-") or text.endswith("-") or "--" in text:
        return "a dash stands between letters or digits, and alone"
    return None


def domain_pattern_problem(text: str) -> str | None:
    """Describe why a text is no domain name of a peer; None where it is one."""
    if _DOMAIN.fullmatch(text):
        return None
    if "*" in text:
        return "`*.` stands before a domain name with a dot, and nowhere else"
    return "a domain name has labels of letters and digits, and at least one dot"
