"""AuthPolicies (`kuadrant.io/v1`), folded and reported as in kuadrant-operator, on plain manifests.

It shares no code with the product. The source is kuadrant-operator v1.5.2 (`api/v1/merge_strategies.go`,
`api/v1/authpolicy_types.go`, `internal/controller/auth_policy_status_updater.go`) and policy-machinery v0.8.0
(`machinery/gateway_api_topology.go`). `make kuadrant` compares this oracle with their own code. It assumes a healthy
cluster: every listener is programmed, and all components of Kuadrant are installed and in sync.

`kuadrant_requests_oracle` decides requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

Manifest = dict[str, Any]

ROUTE_KINDS = ("HTTPRoute", "GRPCRoute")
NEWEST = "9999-12-31T23:59:59Z"  # a manifest without a creation time does not exist yet


@dataclass(frozen=True)
class Rule:
    """A rule of the effective policy: its content and the policy that it comes from, as namespace/name."""

    value: Any
    source: str


Rules = dict[str, Rule]


@dataclass(frozen=True, order=True)
class Path:
    """A path from a Gateway to a rule of a route, through one listener."""

    gateway: str  # namespace/name
    listener: str
    kind: str
    route: str  # namespace/name
    rule: str  # its name, or a name by its position

    @property
    def identifier(self) -> str:
        """Return the path in upstream's form, without the GatewayClass."""
        return f"{self.gateway}|{self.gateway}#{self.listener}|{self.route}|{self.route}#{self.rule}"


@dataclass(frozen=True, order=True)
class Condition:
    """A condition of a policy's status."""

    type: str
    status: str
    reason: str
    message: str


def in_order(condition: Condition) -> Condition:
    """Return a condition with the policies of its message sorted. Upstream's order is random."""
    before, bracket, names = condition.message.partition("[")
    if not bracket:
        return condition
    return replace(condition, message=f"{before}[{' '.join(sorted(names.removesuffix(']').split()))}]")


def key_of(manifest: Manifest) -> str:
    return f"{manifest['metadata']['namespace']}/{manifest['metadata']['name']}"


def rule_names(route: Manifest) -> list[str]:
    """Return the names of a route's rules. A rule without a name gets one by its position."""
    rules = route["spec"].get("rules", [])
    return [rule.get("name", f"rule-{position}") for position, rule in enumerate(rules, start=1)]


# The content of one policy


def _block(policy: Manifest) -> Manifest:
    spec: Manifest = policy["spec"]
    return spec.get("defaults") or spec.get("overrides") or spec


def rules_of(policy: Manifest) -> Rules:
    """Return the rules of one policy by their keys."""
    block, source = _block(policy), key_of(policy)
    scheme = block.get("rules", {})
    response = scheme.get("response", {})
    success = response.get("success", {})
    named = {
        "patterns": block.get("patterns", {}),
        "authentication": scheme.get("authentication", {}),
        "metadata": scheme.get("metadata", {}),
        "authorization": scheme.get("authorization", {}),
        "callbacks": scheme.get("callbacks", {}),
        "response.success.headers": success.get("headers", {}),
        "response.success.metadata": success.get("filters", {}),
    }
    rules = {f"{group}#{name}": value for group, entries in named.items() for name, value in entries.items()}
    if block.get("when"):
        rules["conditions#"] = block["when"]
    for denial in ("unauthenticated", "unauthorized"):
        if denial in response:
            rules[f"response.{denial}#"] = response[denial]
    return {key: Rule(value, source) for key, value in rules.items()}


def fold(policies: list[Manifest]) -> Rules:
    """Return the effective rules of policies that are sorted from the least specific to the most."""
    effective = rules_of(policies[-1])
    for policy in reversed(policies[:-1]):
        effective = _merge(policy, effective)
    return effective


def _merge(source: Manifest, target: Rules) -> Rules:
    """Merge a policy into the rules of more specific ones, by the strategy of the policy.

    Atomic defaults yield to rules with a scheme, and every policy that the API server admits has one.
    """
    own = rules_of(source)
    overrides = "overrides" in source["spec"]
    merges = _block(source).get("strategy", "atomic") == "merge"
    if not merges:
        return own if overrides else target
    return {**target, **own} if overrides else {**own, **target}


# Policies on a path


class Topology:
    """Gateways, routes and the AuthPolicies on them."""

    def __init__(self, manifests: list[Manifest]) -> None:
        self.manifests = manifests

    def of_kind(self, *kinds: str) -> list[Manifest]:
        return [manifest for manifest in self.manifests if manifest["kind"] in kinds]

    @property
    def policies(self) -> list[Manifest]:
        return self.of_kind("AuthPolicy")

    def find(self, kind: str, key: str) -> Manifest | None:
        return next((manifest for manifest in self.of_kind(kind) if key_of(manifest) == key), None)

    def paths(self) -> list[Path]:
        """Return all paths. Only references count, not hostnames, namespaces and ports."""
        return sorted(
            {
                Path(key_of(gateway), listener, route["kind"], key_of(route), rule)
                for route in self.of_kind(*ROUTE_KINDS)
                for gateway, listener in self._listeners(route)
                for rule in rule_names(route)
            }
        )

    def _listeners(self, route: Manifest) -> Iterator[tuple[Manifest, str]]:
        for reference in route["spec"].get("parentRefs", []):
            gateway = self.find("Gateway", gateway_key(reference, route))
            for listener in gateway["spec"]["listeners"] if gateway else []:
                if reference.get("sectionName", listener["name"]) == listener["name"]:
                    assert gateway is not None
                    yield gateway, listener["name"]

    def policies_on(self, path: Path) -> list[Manifest]:
        """Return the policies on a path, the least specific first. On one target the oldest is first."""
        targets = [
            ("Gateway", path.gateway, None),
            ("Gateway", path.gateway, path.listener),
            (path.kind, path.route, None),
            (path.kind, path.route, path.rule),
        ]
        policies = sorted((policy for policy in self.policies if not is_deleted(policy)), key=_age)
        return [policy for target in targets for policy in policies if target_of(policy) == target]

    def effective(self, path: Path) -> Rules | None:
        """Return the effective rules of a path, or None without a policy."""
        policies = self.policies_on(path)
        return fold(policies) if policies else None

    # The status of a policy

    def conditions(self, policy: Manifest) -> list[Condition]:
        """Return the conditions in the status of a policy. A policy in deletion has none."""
        if is_deleted(policy):
            return []
        if not self._is_target_present(policy):
            reference = policy["spec"]["targetRef"]
            name = "#".join(reference[field] for field in ("name", "sectionName") if field in reference)
            return [Condition("Accepted", "False", "TargetNotFound", f"AuthPolicy target {name} was not found")]
        return [Condition("Accepted", "True", "Accepted", "AuthPolicy has been accepted"), self._enforced(policy)]

    def _is_target_present(self, policy: Manifest) -> bool:
        kind, key, section = target_of(policy)
        target = self.find(kind, key)
        if target is None:
            return False
        if kind == "Gateway":
            sections = [listener["name"] for listener in target["spec"]["listeners"]]
        else:
            sections = rule_names(target)
        return section is None or section in sections

    def _enforced(self, policy: Manifest) -> Condition:
        in_force, overriding = self.enforcement(policy)
        if in_force:
            extent = "partially" if overriding else "successfully"
            return Condition("Enforced", "True", "Enforced", f"AuthPolicy has been {extent} enforced")
        if not overriding:
            message = "AuthPolicy is not in the path to any existing routes"
            return Condition("Enforced", "False", "Unknown", message)
        names = " ".join(sorted({name for _, _, name in overriding}))
        return Condition("Enforced", "False", "Overridden", f"AuthPolicy is overridden by [{names}]")

    def enforcement(self, policy: Manifest) -> tuple[set[tuple[Path, str]], set[tuple[Path, str, str]]]:
        """Return the rules of a policy that are in force on each path, and the others with the overriding policy."""
        in_force, overriding = set(), set()
        for path in self.paths():
            if policy not in self.policies_on(path) or not self._is_protected(path):
                continue
            effective = self.effective(path) or {}
            for key in rules_of(policy):
                rule = effective.get(key)
                if rule is not None and rule.source == key_of(policy):
                    in_force.add((path, key))
                elif rule is not None:
                    overriding.add((path, key, rule.source))
                else:
                    overriding.update((path, key, other.source) for other in effective.values())
        return in_force, overriding

    def is_routed_as_protected(self, policy: Manifest) -> bool:
        """Return whether upstream protects exactly those paths of a policy that requests can take."""
        paths = [path for path in self.paths() if policy in self.policies_on(path)]
        return all(self._is_protected(path) == self._is_routed(path) for path in paths)

    def _is_routed(self, path: Path) -> bool:
        route, gateway = self.find(path.kind, path.route), self.find("Gateway", path.gateway)
        assert route is not None
        assert gateway is not None
        (listener,) = (held for held in gateway["spec"]["listeners"] if held["name"] == path.listener)
        references = [held for held in route["spec"]["parentRefs"] if gateway_key(held, route) == path.gateway]
        return any(is_attached(gateway, listener, route, reference) for reference in references)

    def _is_protected(self, path: Path) -> bool:
        return self._belongs(path) and self._is_accepted(path)

    def _belongs(self, path: Path) -> bool:
        """Return whether upstream assigns the route to the listener, and protects it there.

        It does not if each hostname of the route is wider than the listener's. With a listener for `api.toys.com` and a
        route for `*.toys.com`, requests arrive, but no policy is enforced on them.
        """
        route, gateway = self.find(path.kind, path.route), self.find("Gateway", path.gateway)
        assert route is not None
        assert gateway is not None
        (listener,) = (held for held in gateway["spec"]["listeners"] if held["name"] == path.listener)
        hostnames = route["spec"].get("hostnames")
        return not hostnames or any(is_within(name, listener.get("hostname", "*")) for name in hostnames)

    def _is_accepted(self, path: Path) -> bool:
        """Return whether the route's status has an acceptance by the Gateway.

        For an HTTPRoute, upstream reads the first entry of the status for this Gateway; for a GRPCRoute, the first
        one for this listener. The status has an entry for each reference, in the order of the references.
        """
        route, gateway = self.find(path.kind, path.route), self.find("Gateway", path.gateway)
        assert route is not None
        assert gateway is not None
        for reference in route["spec"]["parentRefs"]:
            section = reference.get("sectionName")
            fits = path.kind == "HTTPRoute" or section in (None, path.listener)
            if gateway_key(reference, route) == path.gateway and fits:
                return is_accepted(gateway, route, reference)
        return False


def is_deleted(policy: Manifest) -> bool:
    return "deletionTimestamp" in policy["metadata"]


def _age(policy: Manifest) -> tuple[str, str]:
    return policy["metadata"].get("creationTimestamp", NEWEST), key_of(policy)


def target_of(policy: Manifest) -> tuple[str, str, str | None]:
    """Return kind, namespace/name and section of a policy's target."""
    reference = policy["spec"]["targetRef"]
    key = f"{policy['metadata']['namespace']}/{reference['name']}"
    return reference["kind"], key, reference.get("sectionName")


# Attachment of routes in Gateway API


def gateway_key(reference: Manifest, route: Manifest) -> str:
    return f"{reference.get('namespace', route['metadata']['namespace'])}/{reference['name']}"


def is_accepted(gateway: Manifest, route: Manifest, reference: Manifest) -> bool:
    """Return whether a listener of a parent reference accepts the route."""
    return any(is_attached(gateway, listener, route, reference) for listener in gateway["spec"]["listeners"])


def is_attached(gateway: Manifest, listener: Manifest, route: Manifest, reference: Manifest) -> bool:
    """Return whether a listener accepts a route by this reference."""
    if reference.get("sectionName", listener["name"]) != listener["name"]:
        return False
    origin = listener.get("allowedRoutes", {}).get("namespaces", {}).get("from", "Same")
    if origin != "All" and gateway["metadata"]["namespace"] != route["metadata"]["namespace"]:
        return False
    hostnames = route["spec"].get("hostnames") or ["*"]
    return any(overlaps(listener.get("hostname", "*"), hostname) for hostname in hostnames)


def takes(pattern: str, host: str) -> bool:
    """Return whether a hostname, which may be a wildcard, matches a host."""
    if pattern == "*":
        return True
    return host.endswith(pattern[1:]) and host != pattern[2:] if pattern.startswith("*.") else host == pattern


def overlaps(left: str, right: str) -> bool:
    """Return whether two hostnames have a host in common. A label that no test uses replaces a wildcard."""
    tried = [name.replace("*", "any", 1) for name in (left, right) if name != "*"] or ["any"]
    return any(takes(left, host) and takes(right, host) for host in tried)


def is_within(inner: str, outer: str) -> bool:
    """Return whether every host of one hostname is a host of the other."""
    return outer == "*" or (inner != "*" and takes(outer, inner.replace("*", "any", 1)))
