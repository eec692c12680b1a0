"""Checks beyond the types of fields: those of the API server for NetworkPolicies, and those of both CRD versions."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.dialects.network import codes
from eastgate.dialects.network.values import (
    Network,
    domain_pattern_problem,
    network_of,
    port_name_problem,
    strict_network_of,
)
from eastgate.ir.addresses import mapped_problem
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, enumerated, quoted
from eastgate.settings import Settings

Checking = Check[Settings]
Demand = Callable[[Node, Checking], None]

_MAX_PORT = 65535
_MAX_CIDR_CHARACTERS = 43
_MAX_RULE_NAME_CHARACTERS = 100
_WRITE_CIDR = "write it like 10.0.0.0/8; for one address 10.0.0.1/32"


# NetworkPolicy


def check_peer(node: Node, to: Checking) -> None:
    """Report a peer without fields, and a peer with both addresses and pods."""
    fields = [key for key, _ in node.items()]
    if not fields:
        way_out = "for any peer leave the list out; for all pods write namespaceSelector: {}"
        to.report(codes.EMPTY_PEER, "must specify a peer", node, help=way_out)
    elif "ipBlock" in fields and len(fields) > 1:
        way_out = "put `- ` before ipBlock to make it a separate entry"
        message = "may not specify both ipBlock and another peer"
        to.report(codes.BLOCK_BESIDE_SELECTOR, message, node.key_span("ipBlock"), help=way_out)


def check_cidr(node: Node, to: Checking) -> None:
    """Report a block that an API server refuses as a CIDR."""
    if network_of(node.text) is None:
        to.report(codes.CIDR, f"{quoted(node.text)} is not a valid CIDR", node, help=_cidr_help(node.text))


def _cidr_help(text: str) -> str:
    if (mapped := mapped_problem(text)) is not None:
        return mapped
    length = 128 if ":" in text else 32
    if "/" not in text and network_of(f"{text}/{length}") is not None:
        return f"write {text}/{length} for this address"
    return _WRITE_CIDR


def check_block(node: Node, to: Checking) -> None:
    """Report exceptions that are not inside their block."""
    block = network_of(node["cidr"].text)
    for excepted in node.get("except") or ():
        network = network_of(excepted.text)
        if block is not None and network is not None and not _is_strictly_inside(network, block):
            message = f"{quoted(excepted.text)} must be a strict subset of `{node['cidr'].text}`"
            way_out = "write a smaller network inside of it; to exclude all of it, remove the block"
            to.report(codes.EXCEPT, message, excepted, help=way_out)


def _is_strictly_inside(inner: Network, outer: Network) -> bool:
    if inner.version != outer.version or inner.prefixlen <= outer.prefixlen:
        return False
    return inner.network_address in outer


def check_port(node: Node, to: Checking) -> None:
    """Report a port that is neither a number nor a name, and a range without a start."""
    port, last = node.get("port"), node.get("endPort")
    if port is not None and not _is_port(port, to):
        return
    if last is None:
        return
    if port is None:
        message = "may not be specified when `port` is not specified"
        to.report(codes.END_PORT, f"`endPort` {message}", node.key_span("endPort"), help="write port: <the first port>")
    elif isinstance(port.value, str):
        message = "`endPort` may not be specified when `port` is a name"
        to.report(codes.END_PORT, message, node.key_span("endPort"), help="write port: <the first port> as a number")
    elif last.number < port.number:
        message = f"{last.number} must be greater than or equal to `port`, which is {port.number}"
        to.report(codes.END_PORT, message, last, help=f"write endPort: {port.number}, or more")


def _is_port(node: Node, to: Checking) -> bool:
    value = node.value
    if isinstance(value, str):
        problem = port_name_problem(value)
        if problem is None:
            return True
        is_number = value.isascii() and value.isdigit()
        way_out = f"write {value} without quotes" if is_number else "write the name of a container's port"
        to.report(codes.PORT, f"{quoted(value)} is not a port: {problem}", node, help=way_out)
    elif isinstance(value, bool) or not isinstance(value, int):
        to.report(codes.PORT, f"expected a port, found {node.kind}", node, help="write a number, or a name")
    elif not 1 <= value <= _MAX_PORT:
        message = f"{value} is not between 1 and {_MAX_PORT}"
        to.report(codes.PORT, message, node, help="for all ports leave `port` out")
    else:
        return True
    return False


def check_policy_types(node: Node, to: Checking) -> None:
    """Report more types than exist."""
    if len(list(node)) > 2:
        message = "may not specify more than two policyTypes"
        to.report(codes.POLICY_TYPES, message, node, help="write [Ingress], [Egress] or [Ingress, Egress]")


# Cluster-wide policies


def exactly_one(what: str, *, empty: str) -> Demand:
    """Return a check that a mapping has exactly one of its fields."""

    def demand(node: Node, to: Checking) -> None:
        fields = [key for key, _ in node.items()]
        if not fields:
            to.report(codes.ONE_FIELD, f"{what} has exactly one field, and this has none", node, help=empty)
        elif len(fields) > 1:
            names = enumerated([f"`{name}`" for name in fields], "and")
            way_out = "write one entry for each: ANY of them may match"
            to.report(codes.ONE_FIELD, f"{what} has exactly one field, not {names}", node, help=way_out)

    return demand


def filled(what: str, most: int, *, empty: str) -> Demand:
    """Return a check that a list has at least one entry, and no more than an API server accepts."""

    def demand(node: Node, to: Checking) -> None:
        if not list(node):
            to.report(codes.EMPTY_LIST, f"{what} has at least one entry", node, help=empty)
        at_most(what, most)(node, to)

    return demand


def at_most(what: str, most: int) -> Demand:
    """Return a check that a list has no more entries than an API server accepts."""

    def demand(node: Node, to: Checking) -> None:
        count = len(list(node))
        if count > most:
            way_out = "write a second rule, or a second policy"
            to.report(codes.TOO_MANY, f"{what} has at most {most} entries, and this has {count}", node, help=way_out)

    return demand


def no_duplicates(node: Node, to: Checking) -> None:
    """Report a duplicate entry of a set."""
    seen: set[str] = set()
    for item in node:
        if item.text in seen:
            to.report(codes.DUPLICATE, f"{quoted(item.text)} is written twice", item, help="remove one of them")
        seen.add(item.text)


def check_network(node: Node, to: Checking) -> None:
    """Report a network that `isCIDR` refuses."""
    if strict_network_of(node.text) is None or len(node.text) > _MAX_CIDR_CHARACTERS:
        to.report(codes.CIDR, f"{quoted(node.text)} is not a valid CIDR", node, help=_cidr_help(node.text))


def check_domain(node: Node, to: Checking) -> None:
    """Report a domain name that the pattern of the CRD refuses."""
    problem = domain_pattern_problem(node.text)
    if problem is not None:
        way_out = "write a name such as example.com, or *.example.com for its subdomains"
        to.report(codes.DOMAIN_NAME, f"{quoted(node.text)} is not a domain name: {problem}", node, help=way_out)


def check_domain_action(node: Node, to: Checking) -> None:
    """Report a rule that would deny or pass by domain names."""
    action = node["action"].text
    for peer in node["to"]:
        if action in ("Deny", "Pass") and "domainNames" in peer:
            way_out = "accept the names in one rule, and deny networks in a later rule"
            message = f"a rule with `action: {action}` cannot have domainNames"
            to.report(codes.DOMAIN_DENIED, message, peer.key_span("domainNames"), help=way_out)


def check_named_port(ports_field: str, name_field: str) -> Demand:
    """Return a check that a rule with named ports has only pods as peers."""

    def demand(node: Node, to: Checking) -> None:
        outside = [name for peer in node["to"] for name in ("networks", "nodes", "domainNames") if name in peer]
        for item in node.get(ports_field) or ():
            if outside and name_field in item:
                message = f"`{outside[0]}` cannot be set with a named port: only pods have names for ports"
                way_out = "write the port number, or a separate rule for these peers"
                to.report(codes.NAMED_PORT_OUTSIDE, message, item.key_span(name_field), help=way_out)

    return demand


def check_range(node: Node, to: Checking) -> None:
    """Report a range of v1alpha2 whose end is not larger than its start."""
    start, end = node["start"].number, node["end"].number
    if start >= end:
        message = f"start port {start} must be less than end port {end}"
        way_out = f"write number: {start}" if start == end else f"write start: {end}, end: {start}"
        to.report(codes.RANGE, message, node, help=way_out)


def check_v1alpha1_range(node: Node, to: Checking) -> None:
    """Report a range of v1alpha1 that contains no port."""
    start, end = node["start"].number, node["end"].number
    if start > end:
        message = f"no port is in a range from {start} to {end}"
        to.report(codes.EMPTY_RANGE, message, node, help=f"write start: {end}, end: {start}")


def check_rule_name(node: Node, to: Checking) -> None:
    """Report a name of a rule that is too long."""
    if len(node.text) > _MAX_RULE_NAME_CHARACTERS:
        message = (
            f"the name of a rule has at most {_MAX_RULE_NAME_CHARACTERS} characters, and this has {len(node.text)}"
        )
        to.report(codes.RULE_NAME, message, node, help="write a shorter name")


def check_baseline_name(document: Node, to: Checking) -> None:
    """Report a baseline with a name other than `default`."""
    name = document["metadata"].get("name")
    if name is not None and name.value != "default":
        message = "only one BaselineAdminNetworkPolicy, with the name `default`, can be in a cluster"
        to.report(codes.BASELINE_NAME, message, name, help="write name: default")
