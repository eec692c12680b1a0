"""Istio's AuthorizationPolicy, evaluated on plain manifests.

It follows the notes on Istio and shares no code with Eastgate.

If a value can be read in a narrower and in a wider way, everything that allows uses the wider one. So a conversion that
is correct here is correct in Istio. Paths are those of a mesh that merges slashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One request, or (without method) one connection that is not HTTP. `service`: the addressed Service."""

    identity: str | None
    port: int
    method: str | None = None
    path: str | None = None
    host: str | None = None
    sni: str | None = None
    service: str | None = None


@dataclass(frozen=True)
class Istio:
    """The policies of a mesh."""

    policies: list[Manifest]
    trust_domain: str
    root_namespace: str = "istio-system"

    def allows(self, pod: Manifest, call: Call) -> bool:
        """Return the verdict of the workload, and before it of the waypoint of the Service."""
        here = [p for p in self.policies if "targetRefs" not in p["spec"] and self._selects(p, pod)]
        namespace = pod["metadata"]["namespace"]
        there = [
            p
            for p in self.policies
            if p["metadata"]["namespace"] == namespace
            and any(f"{namespace}/{ref['name']}" == call.service for ref in p["spec"].get("targetRefs", ()))
        ]
        return self._decide(there, call) and self._decide(here, call)

    def asks(self, gateway: str, call: Call) -> set[str]:
        """Return the providers that a Gateway asks about a request."""
        namespace, _, name = gateway.partition("/")
        return {
            p["spec"]["provider"]["name"]
            for p in self.policies
            if p["spec"].get("action") == "CUSTOM"
            and p["metadata"]["namespace"] == namespace
            and any(ref["kind"] == "Gateway" and ref["name"] == name for ref in p["spec"]["targetRefs"])
            and self._matches(p, call)
        }

    def denies(self, gateway: str, call: Call) -> bool:
        """Return whether a DENY policy of a Gateway refuses a request."""
        namespace, _, name = gateway.partition("/")
        return any(
            p["spec"].get("action") == "DENY"
            and p["metadata"]["namespace"] == namespace
            and any(ref["kind"] == "Gateway" and ref["name"] == name for ref in p["spec"].get("targetRefs", ()))
            and self._matches(p, call)
            for p in self.policies
        )

    def _selects(self, policy: Manifest, pod: Manifest) -> bool:
        if policy["metadata"]["namespace"] not in (self.root_namespace, pod["metadata"]["namespace"]):
            return False
        wanted = policy["spec"].get("selector", {}).get("matchLabels", {})
        return all(pod["metadata"].get("labels", {}).get(key) == value for key, value in wanted.items())

    def _decide(self, policies: list[Manifest], call: Call) -> bool:
        """Return the verdict of some policies. A DENY that matches denies.

        Without an ALLOW, all other requests are allowed. Otherwise an ALLOW must match.
        """
        live = [p for p in policies if p["metadata"].get("annotations", {}).get("istio.io/dry-run") != "true"]
        if any(self._matches(p, call) for p in live if p["spec"].get("action", "ALLOW") == "DENY"):
            return False
        allowing = [p for p in live if p["spec"].get("action", "ALLOW") == "ALLOW"]
        return not allowing or any(self._matches(p, call) for p in allowing)

    def _matches(self, policy: Manifest, call: Call) -> bool:
        denies = policy["spec"].get("action", "ALLOW") == "DENY"
        return any(self._rule(rule, call, denies=denies) for rule in policy["spec"].get("rules") or ())

    def _rule(self, rule: Manifest, call: Call, *, denies: bool) -> bool:
        """Return whether ALL of from, to and when match, each by ANY entry."""
        if call.method is None and _is_l7(rule):
            if not denies:
                return False  # the whole rule is dropped
            rule = {**rule, "to": [{"operation": _l4(one["operation"])} for one in rule.get("to", ())] or [{}]}
        return (
            ("from" not in rule or any(self._source(one["source"], call) for one in rule["from"]))
            and ("to" not in rule or any(_operation(one.get("operation", {}), call) for one in rule["to"]))
            and all(_condition(one, call) for one in rule.get("when", ()))
        )

    def _source(self, source: Manifest, call: Call) -> bool:
        readers: dict[str, Callable[[str], bool]] = {
            "principals": lambda value: self._principal(value, call.identity),
            "namespaces": lambda value: _namespace(value, call.identity),
        }
        return _fields(source, readers)

    def _principal(self, value: str, identity: str | None) -> bool:
        if identity is None:
            return False
        values = {value}
        domain, *rest = value.split("/")
        if len(rest) == 4 and domain in (self.trust_domain, "cluster.local"):
            values.add("/".join([self.trust_domain, *rest]))
        return any(_text(one, identity.removeprefix("spiffe://")) for one in values)


def _is_l7(rule: Manifest) -> bool:
    return any(key.removeprefix("not").lower() in _HTTP for to in rule.get("to", ()) for key in to["operation"])


_HTTP = ("hosts", "methods", "paths")


def _l4(operation: Manifest) -> Manifest:
    return {key: value for key, value in operation.items() if key.removeprefix("not").lower() not in _HTTP}


def _fields(given: Manifest, readers: dict[str, Callable[[str], bool]]) -> bool:
    """Return whether ALL fields match, each by ANY value and by no negated value."""
    for field, values in given.items():
        if field.startswith("not"):
            name = field[3].lower() + field[4:]
            if any(readers[name](value) for value in values):
                return False
        elif not any(readers[field](value) for value in values):
            return False
    return True


def _operation(operation: Manifest, call: Call) -> bool:
    readers: dict[str, Callable[[str], bool]] = {
        "ports": lambda value: value == str(call.port),
        "methods": lambda value: _text(value, call.method),
        "paths": lambda value: _text(value, _path(call.path)),
        "hosts": lambda value: _text(value.lower(), call.host.lower() if call.host is not None else None),
    }
    return _fields(operation, readers)


def _condition(condition: Manifest, call: Call) -> bool:
    assert condition["key"] == "connection.sni"
    return any(_text(value, call.sni) for value in condition["values"])


def _namespace(value: str, identity: str | None) -> bool:
    pattern = re.escape(value).replace(r"\*", ".*")
    return identity is not None and re.fullmatch(f".*/ns/{pattern}/.*", identity) is not None


def _text(pattern: str, value: str | None) -> bool:
    """Match a pattern: `*` is presence, then a leading star is a suffix, then a trailing star a prefix."""
    if value is None:
        return False
    if pattern == "*":
        return value != ""
    if pattern.startswith("*"):
        return value.endswith(pattern[1:])
    return value.startswith(pattern[:-1]) if pattern.endswith("*") else value == pattern


def _path(path: str | None) -> str | None:
    return re.sub("/{2,}", "/", path.partition("?")[0]) if path is not None else None


# Policies that Istio rejects

_SOURCE = {"principals", "notPrincipals", "namespaces", "notNamespaces"}
_OPERATION = {"hosts", "notHosts", "ports", "methods", "paths"}
_ACTIONS = {"ALLOW": False, "DENY": True, "CUSTOM": True}


def problems(policy: Manifest) -> list[str]:
    """Return the reasons why Istio's validation would reject a policy."""
    return list(_problems(policy["spec"]))


def _problems(spec: Manifest) -> Iterator[str]:
    if not set(spec) <= {"selector", "targetRefs", "action", "provider", "rules"}:
        yield "unknown field"
    if "selector" in spec and "targetRefs" in spec:
        yield "selector and targetRefs"
    if any("*" in key + value for key, value in spec.get("selector", {}).get("matchLabels", {}).items()):
        yield "a star in the selector"
    if _ACTIONS[spec["action"]] and not spec.get("rules"):
        yield f"{spec['action']} without rules"
    if ("provider" in spec) != (spec["action"] == "CUSTOM"):
        yield "provider goes with CUSTOM"
    if len(spec.get("rules", ())) > 512:
        yield "too many rules"
    for rule in spec.get("rules") or ():
        if any(key in rule and not rule[key] for key in ("from", "to", "when")):
            yield "an empty list"
        entries = [(one["source"], _SOURCE) for one in rule.get("from", ())]
        entries += [(one["operation"], _OPERATION) for one in rule.get("to", ())]
        for entry, fields in entries:
            if not entry or not set(entry) <= fields or any(not values or "" in values for values in entry.values()):
                yield f"{entry}"
        if spec["action"] == "CUSTOM" and "from" in rule:
            yield "CUSTOM with a source"
