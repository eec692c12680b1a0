"""What may be written as an identity, a network, a duration."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_network

from eastgate.dialects.linkerd import codes
from eastgate.schema import Check, quoted
from eastgate.settings import Settings
from eastgate.sources.node import Node

__all__ = ["identity", "milliseconds", "network", "network_of"]

Network = IPv4Network | IPv6Network
Checking = Check[Settings]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS = re.compile(rf"(\*|{_LABEL})(\.{_LABEL})*")
_SPIFFE = "spiffe://"
_TRUST_DOMAIN = re.compile(r"[-a-z0-9._]+")
_SEGMENT = re.compile(r"[-A-Za-z0-9._]+")


def identity(node: Node, to: Checking) -> None:
    """The grammar of Linkerd's webhook."""
    problem = _identity_problem(node.text)
    if problem is not None:
        said, way_out = problem
        to.report(codes.IDENTITY, f"id {quoted(node.text)} is invalid: {said}", node, help=way_out)


_FORMS = "write a DNS name in lower case, `*`, `*.` and a DNS name, or a SPIFFE ID"


def _identity_problem(text: str) -> tuple[str, str] | None:
    if text.startswith(_SPIFFE):
        return _spiffe_problem(text.removeprefix(_SPIFFE))
    if _DNS.fullmatch(text):
        return None
    if _DNS.fullmatch(text.lower()):
        return "it has upper-case letters", f"write {text.lower()}"
    if _DNS.fullmatch(text.rstrip(".")):
        return "it ends with a dot", f"write {text.rstrip('.')}"
    return "it is not a DNS name", _FORMS


def _spiffe_problem(text: str) -> tuple[str, str] | None:
    domain, *segments = text.split("/")
    if not domain:
        return "its trust domain is missing", "write spiffe://<trust domain>/<path>"
    if not _TRUST_DOMAIN.fullmatch(domain):
        return "its trust domain has a character other than a-z 0-9 - . _", "write the trust domain as it is"
    if segments and not segments[-1]:
        return "it ends with a slash", "remove the slash"
    for segment in segments:
        if not segment:
            return "it has an empty segment", "write each / once"
        if segment in (".", ".."):
            return "it has a dot segment", "write the path without . and .."
        if not _SEGMENT.fullmatch(segment):
            return "a segment has a character other than A-Z a-z 0-9 - . _", "write the path as the certificate has it"
    return None


def network(node: Node, to: Checking) -> None:
    """A CIDR or one address."""
    if network_of(node) is None:
        to.report(codes.CIDR, f"{quoted(node.text)} is not a network", node, help="write a CIDR such as 10.0.0.0/8")


def network_of(node: Node) -> Network | None:
    """The network that is written; bits behind its prefix do not count."""
    try:
        return ip_network(node.text, strict=False)
    except ValueError:
        return None


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|us|ns|m|s)")
_UNITS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0, "us": 0.001, "ns": 0.000001}


def milliseconds(text: str) -> float | None:
    """A duration such as 1m30s; None where it is none."""
    if text == "0":
        return 0.0
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
