"""Grammars of identities, networks, ports and durations."""

from __future__ import annotations

import re

from eastgate.basics.regexes import regex
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem
from eastgate.dialects.linkerd import codes
from eastgate.ir.addresses import Network, mapped_problem, parse_network
from eastgate.ir.spiffe import is_segment, is_trust_domain
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, Text, quoted
from eastgate.reading.manifests.shapes.codes import BAD_NAME
from eastgate.settings import Settings

Checking = Check[Settings]
Problem = tuple[str, str]  # the problem, and what to write instead


# Names


def name_beside_namespace(name: Text[Settings]) -> Text[Settings]:
    """Return the shape of a name beside a namespace field. It reports a name that includes the namespace."""

    def rule(node: Node, to: Checking) -> None:
        namespace, slash, rest = node.text.partition("/")
        if slash and dns_label_problem(namespace) is None and dns_subdomain_problem(rest) is None:
            message = f"{quoted(node.text)} is not a valid name: the namespace is a field of its own"
            to.report(BAD_NAME, message, node, help=f"write name: {rest}, namespace: {namespace}")
        elif name.rule is not None:
            name.rule(node, to)

    return Text(name.what, rule)


# Identities

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS = regex(rf"(\*|{_LABEL})(\.{_LABEL})*")
_SPIFFE = "spiffe://"
_FORMS = "write a DNS name in lower case, `*.` and a DNS name, `*` for every identity"


def check_identity(node: Node, to: Checking) -> None:
    """Report a text that is neither a DNS name nor a SPIFFE ID, as Linkerd's webhook does."""
    spiffe = node.text.startswith(_SPIFFE)
    problem = _spiffe_problem(node.text.removeprefix(_SPIFFE)) if spiffe else _dns_problem(node.text, "identityRefs")
    _report_identity(node, problem, to)


def check_dns_identity(node: Node, to: Checking) -> None:
    """Report a text that is no DNS name, by the grammar of the CRD.

    ServerAuthorizations are older than SPIFFE IDs in Linkerd.
    """
    problem = _dns_problem(node.text, "serviceAccounts")
    if node.text.startswith(_SPIFFE):
        problem = "a ServerAuthorization has DNS names only", "name it in a MeshTLSAuthentication instead"
    _report_identity(node, problem, to)


def _report_identity(node: Node, problem: Problem | None, to: Checking) -> None:
    if problem is not None:
        reason, way_out = problem
        to.report(codes.IDENTITY, f"id {quoted(node.text)} is invalid: {reason}", node, help=way_out)


def _dns_problem(text: str, accounts: str) -> Problem | None:
    """Describe why a text is no DNS name. `accounts` is the field to use for service accounts."""
    if _DNS.fullmatch(text):
        return None
    for near in (text.lower(), text.strip().rstrip("."), f"*.{text.removeprefix('*').lstrip('.')}"):
        if _DNS.fullmatch(near) and near.count("*") == text.count("*"):
            way_out = f"write {near}" if "*" not in near else f'write "{near}"'
            break
    else:
        way_out = _FORMS + (", or a SPIFFE ID" if accounts == "identityRefs" else "")
        if "*" in text:
            way_out = "write `*` alone, or `*.` before a suffix"
        elif text.lower().startswith(_SPIFFE):
            way_out = f"write {_SPIFFE} in lower case"
        elif "/" in text or ":" in text:
            way_out += f"; a service account goes into `{accounts}`"
    return "identity must be a valid SPIFFE id or a DNS SAN", way_out


def _spiffe_problem(text: str) -> Problem | None:
    domain, *segments = text.split("/")
    if not domain:
        return "SPIFFE trust domain is missing", "write spiffe://<trust domain>/<path>"
    if not is_trust_domain(domain):
        limits = "lowercase letters, numbers, dots, dashes, and underscores"
        lower = is_trust_domain(domain.lower())
        way_out = f"write {_SPIFFE}{domain.lower()}/.." if lower else "write the trust domain alone, without a port"
        return f"SPIFFE trust domain characters are limited to {limits}", way_out
    for segment in segments[:-1]:
        if not segment:
            return "SPIFFE path cannot contain empty segments", "write each / once"
    if segments and not segments[-1]:
        return "SPIFFE path cannot have a trailing slash", f"write {_SPIFFE}{text.rstrip('/')}"
    if {".", ".."} & set(segments):
        return "SPIFFE path cannot contain dot segments", "write the path without . and .."
    if not all(is_segment(segment) for segment in segments):
        limits = "letters, numbers, dots, dashes, and underscores"
        way_out = "write the whole SPIFFE ID of the certificate: it has no wildcards"
        return f"SPIFFE path segment characters are limited to {limits}", way_out
    return None


# Networks

_PREFIX = regex(r"/[0-9]{1,3}")


def check_network(node: Node, to: Checking) -> None:
    """Report a text that is neither a CIDR nor an address."""
    if network_of(node) is None:
        reason, way_out = _network_problem(node.text)
        to.report(codes.CIDR, f"{quoted(node.text)} is not a network{reason}", node, help=way_out)


def network_of(node: Node) -> Network | None:
    """Return the network in a text, ignoring bits after its prefix; None if it is no network."""
    slash = node.text.find("/")
    if "%" in node.text or (slash >= 0 and not _PREFIX.fullmatch(node.text[slash:])):
        return None  # a zone or a mask: Python accepts them and Linkerd does not
    return _parse(node.text)


def _parse(text: str) -> Network | None:
    try:
        return parse_network(text)
    except ValueError:
        return None


def _network_problem(text: str) -> Problem:
    address, slash, prefix = text.strip().partition("/")
    alone = _parse(address)
    if (mapped := mapped_problem(text)) is not None:
        return "", mapped
    if text.strip() in ("*", "any", "all"):
        return "", "for every address write two networks, 0.0.0.0/0 and ::/0"
    if alone is None:
        way_out = "write a CIDR such as 10.0.0.0/8 or fd00::/8, or an address such as 10.0.0.1"
        return f": {quoted(address)} is not an IP address" if slash else "", way_out
    masked = _parse(f"{address}/{prefix}")
    if masked is not None and "%" not in text:
        return ": its prefix is a number of bits" if slash and not prefix.isdigit() else "", f"write {masked}"
    if "%" in text:
        return ": it has a zone", f"write {address.partition('%')[0]}{slash}{prefix}"
    return f": the prefix is not between 0 and {alone.max_prefixlen}", f"write {address}/{alone.max_prefixlen} or less"


# Ports

_PORT_NAME = regex(r"(?=.*[a-z])(?!.*--)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_MAX_PORT_NAME_LENGTH = 15


def is_port(text: str) -> bool:
    """Return whether a text is a port number, as in an annotation."""
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535


def port_problem(name: str) -> Problem | None:
    """Describe why Kubernetes does not accept a name for a port."""
    if name.isascii() and name.isdigit():
        return "it is a number in quotes", f"write {name} without quotes"
    if re.fullmatch(r"[0-9]+ *[-:,] *[0-9]+", name):
        return "a Server has one port", "write a Server for each port"
    if not _PORT_NAME.fullmatch(name):
        near = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        good = _PORT_NAME.fullmatch(near) and len(near) <= _MAX_PORT_NAME_LENGTH
        way_out = f"write {near}, and give the port that name" if good else "write the number of the port"
        return "a name of a port is of lower-case letters, digits and single dashes", way_out
    if len(name) > _MAX_PORT_NAME_LENGTH:
        return f"a name of a port has at most {_MAX_PORT_NAME_LENGTH} characters", "write the number of the port"
    return None


# Durations

_DURATION = regex(r"([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|us|µs|μs|ns|m|s)")
_UNITS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0, "ns": 0.000001}


def milliseconds(text: str) -> float | None:
    """Return a duration such as 1m30s; None if it is invalid or negative."""
    positive = text.removeprefix("+")
    if positive == "0":
        return 0.0
    parts = _DURATION.findall(positive)
    if not parts or "".join(number + unit for number, unit in parts) != positive:
        return None
    return sum(float(number) * _UNITS.get(unit, 0.001) for number, unit in parts)
