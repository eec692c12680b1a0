"""Networks, ports and domain names, as API servers accept them."""

from __future__ import annotations

from eastgate.basics.regexes import regex
from eastgate.ir.addresses import Network, parse_network

__all__ = ["Network", "domain_pattern_problem", "network_of", "port_name_problem", "strict_network_of"]

_PREFIX = regex(r"[0-9]{1,3}")
_LEADING_ZEROS = regex(r"(^|\.)0+(?=[0-9])")
_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9_]*[a-zA-Z0-9])?"
_DOMAIN = regex(rf"(\*\.)?({_LABEL}\.)+{_LABEL}\.?")
_PORT_CHARACTERS = regex(r"[-a-z0-9]+")
_LETTER = regex(r"[a-z]")
_MAX_PORT_NAME_CHARACTERS = 15
_IPV4 = 4


def strict_network_of(text: str) -> Network | None:
    """Return the network of a CIDR as CEL's `isCIDR` accepts it: no octet begins with a 0.

    Host bits are dropped. For `isCIDR`, IPv4 written as IPv6 is not a CIDR.
    """
    address, slash, prefix = text.partition("/")
    if not slash or not _PREFIX.fullmatch(prefix) or (prefix != "0" and prefix.startswith("0")) or "%" in address:
        return None
    try:
        network = parse_network(text)
    except ValueError:
        return None
    return None if network.version == _IPV4 and ":" in address else network


def network_of(text: str) -> Network | None:
    """Return the network of a CIDR as the validation of NetworkPolicies accepts it: octets may begin with zeros."""
    address, slash, prefix = text.partition("/")
    if not slash or not _PREFIX.fullmatch(prefix) or "%" in address:
        return None
    sloppy = address if ":" in address else _LEADING_ZEROS.sub(r"\1", address)
    try:
        return parse_network(f"{sloppy}/{int(prefix)}")
    except ValueError:
        return None


def port_name_problem(text: str) -> str | None:
    """Return why a text is not a port name (IANA_SVC_NAME), or None if it is one."""
    if not text or len(text) > _MAX_PORT_NAME_CHARACTERS:
        return f"a name has 1 to {_MAX_PORT_NAME_CHARACTERS} characters"
    if not _PORT_CHARACTERS.fullmatch(text):
        return "a name has lower case letters, digits and dashes"
    if not _LETTER.search(text):
        return "a name has at least one letter"
    if text.startswith("-") or text.endswith("-") or "--" in text:
        return "a dash must be between letters or digits, and never beside another dash"
    return None


def domain_pattern_problem(text: str) -> str | None:
    """Return why a text is not a domain name of a peer, or None if it is one."""
    if _DOMAIN.fullmatch(text):
        return None
    if "*" in text:
        return "`*.` must be at the beginning, before a domain name with a dot"
    return "a domain name has labels of letters and digits, and at least one dot"
