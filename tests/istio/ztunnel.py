"""Decides like a ztunnel, by the policies that istiod sends to it (ztunnel's rbac.rs and state.rs).

A policy matches if ANY rule does, a rule if ALL its clauses do, a clause if ANY of its matches does (or it has none),
a match if ALL its fields do. A match without fields matches nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

Config = dict[str, Any]


@dataclass(frozen=True)
class Connection:
    """A ztunnel's view of a connection. A plaintext caller has no identity."""

    source: str
    address: str
    port: int
    identity: str | None

    @property
    def account(self) -> tuple[str, str]:
        """Return namespace and name of the caller's account; empty without such an identity."""
        parts = (self.identity or "").removeprefix("spiffe://").split("/")
        return (parts[2], parts[4]) if len(parts) == 5 and parts[1] == "ns" and parts[3] == "sa" else ("", "")


@dataclass(frozen=True)
class Verdict:
    """Whether a connection is allowed, and the policies that decided."""

    allowed: bool
    policies: tuple[str, ...]


def decide(policies: Iterable[Config], namespace: str, selecting: Iterable[str], connection: Connection) -> Verdict:
    """Decide about a connection to a workload of a namespace. Some policies select it by name."""
    names = set(selecting)
    applying = [policy for policy in policies if _applies(policy, namespace, names) and not policy.get("dry_run")]
    denying = [policy for policy in applying if policy.get("action") == "DENY" and matches(policy, connection)]
    if denying:
        return Verdict(False, tuple(map(_key, denying)))
    allowing = [policy for policy in applying if policy.get("action", "ALLOW") == "ALLOW"]
    matching = [policy for policy in allowing if matches(policy, connection)]
    return Verdict(not allowing or bool(matching), tuple(map(_key, matching)))


def matches(policy: Config, connection: Connection) -> bool:
    """Return whether any rule of a policy matches."""
    return any(
        all(_clause_matches(clause.get("matches", ()), connection) for clause in group.get("rules", ()))
        for group in policy.get("groups", ())
    )


def _applies(policy: Config, namespace: str, selecting: set[str]) -> bool:
    match policy.get("scope", "GLOBAL"):
        case "GLOBAL":
            return True
        case "NAMESPACE":
            return bool(policy["namespace"] == namespace)
    return _key(policy) in selecting


def _key(policy: Config) -> str:
    return f"{policy['namespace']}/{policy['name']}"


def _clause_matches(alternatives: list[Config], connection: Connection) -> bool:
    return not alternatives or any(match and _matches(match, connection) for match in alternatives)


def _matches(match: Config, connection: Connection) -> bool:
    namespace, account = connection.account
    tests: dict[str, Callable[[Any], bool]] = {
        "destination_ips": lambda network: _contains(network, connection.address),
        "source_ips": lambda network: _contains(network, connection.source),
        "destination_ports": lambda port: bool(port == connection.port),
        "service_accounts": lambda wanted: (wanted["namespace"], wanted["serviceAccount"]) == (namespace, account),
        "principals": lambda pattern: _principal_matches(pattern, connection.identity),
        "namespaces": lambda pattern: _text_matches(pattern, namespace),
    }
    return all(
        (field not in match or any(map(test, match[field])))
        and (f"not_{field}" not in match or not any(map(test, match[f"not_{field}"])))
        for field, test in tests.items()
    )


def _principal_matches(pattern: Config, identity: str | None) -> bool:
    return identity is not None and _text_matches(pattern, identity.removeprefix("spiffe://"))


def _text_matches(pattern: Config, text: str) -> bool:
    match pattern:
        case {"exact": exact}:
            return bool(text == exact)
        case {"prefix": prefix}:
            return text.startswith(prefix)
        case {"suffix": suffix}:
            return text.endswith(suffix)
    return text != ""  # presence


def _contains(network: Config, address: str) -> bool:
    return ip_address(address) in _network(network)


def _network(network: Config) -> IPv4Network | IPv6Network:
    packed = base64.b64decode(network["address"])
    return ip_network((packed, network.get("length", 0)), strict=False)
