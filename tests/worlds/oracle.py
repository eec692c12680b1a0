"""An independent implementation of GEP-3779, from the text of the drafts and the rulings, on plain manifests.

It shares no code with the product: no schema, no IR, no index, no trust-domain helper. It decides only requests without
unknown attributes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """One request to one pod. `service`: the Service to which it is addressed, if any."""

    identity: str | None
    pod: Manifest
    port: int
    service: str | None
    method: str
    path: str


@dataclass(frozen=True)
class Rulebook:
    """The manifests, and the settings that choose a reading."""

    manifests: list[Manifest]
    trust_domain: str
    deny_only: str
    service_target: str

    def allows(self, ask: Ask) -> bool:
        """Return whether NETWORK and then APPLICATION allow the request."""
        return all(self._level_allows(level, ask) for level in ("network", "application"))

    def _level_allows(self, level: str, ask: Ask) -> bool:
        here = [p for p in self.manifests if _is_policy(p) and _level(p) == level and self._targets(p, ask)]
        tiers = {tier: [p for p in here if p["spec"].get("tier") == tier] for tier in ("Admin", "Baseline", None)}
        consulted = [*tiers["Admin"], *(tiers[None] or tiers["Baseline"])]
        if _looks_at_paths(consulted) and re.search(r"%(2f|5c|00)", ask.path, re.IGNORECASE):
            return False
        admin = self._first_match(tiers["Admin"], ask)
        if admin is not None:
            return admin == "ALLOW"
        if not tiers[None]:
            return self._first_match(tiers["Baseline"], ask) != "DENY"
        if any(p["spec"]["action"] == "DENY" and self._matches(p, ask) for p in tiers[None]):
            return False
        allowing = [p for p in tiers[None] if p["spec"]["action"] == "ALLOW"]
        if not allowing:
            return self.deny_only == "allow"
        return any(self._matches(p, ask) for p in allowing)

    def _first_match(self, policies: list[Manifest], ask: Ask) -> str | None:
        """Return ALLOW or DENY of the first matching policy, or None without a match or for PASS."""
        order = {"DENY": 0, "PASS": 1, "ALLOW": 2}
        ranked = sorted(policies, key=lambda p: (p["spec"]["priority"], order[p["spec"]["action"]]))
        action = next((p["spec"]["action"] for p in ranked if self._matches(p, ask)), None)
        return None if action == "PASS" else action

    # Targets

    def _targets(self, policy: Manifest, ask: Ask) -> bool:
        spec, meta = policy["spec"], ask.pod["metadata"]
        if policy["kind"] == "ClusterAuthorizationPolicy":
            subject = spec.get("subject", {})
            namespaces = [m for m in self.manifests if m["kind"] == "Namespace"]
            own: Manifest = next(
                (n for n in namespaces if n["metadata"]["name"] == meta["namespace"]), {"metadata": {}}
            )
            labels = {"kubernetes.io/metadata.name": meta["namespace"], **own["metadata"].get("labels", {})}
            return _selects(subject.get("namespaceSelector"), labels) and _selects(
                subject.get("podSelector"), meta.get("labels", {})
            )
        if policy["metadata"]["namespace"] != meta["namespace"]:
            return False
        refs = spec["targetRefs"]
        return any(self._target(ref, ask) for ref in (refs if isinstance(refs, list) else [refs]))

    def _target(self, ref: Manifest, ask: Ask) -> bool:
        meta = ask.pod["metadata"]
        if ref["kind"] == "Pod":
            return _selects(ref["selector"], meta.get("labels", {}))
        if self.service_target == "traffic":
            return ask.service == f"{meta['namespace']}/{ref['name']}"
        services = [m for m in self.manifests if m["kind"] == "Service" and m["metadata"]["name"] == ref["name"]]
        return any(
            s["metadata"]["namespace"] == meta["namespace"]
            and s["spec"]["selector"] != {}
            and s["spec"]["selector"].items() <= meta.get("labels", {}).items()
            for s in services
        )

    # Rules: a policy matches if ANY rule matches, and a rule if ALL of its parts match

    def _matches(self, policy: Manifest, ask: Ask) -> bool:
        spec = policy["spec"]
        rules = spec.get("tcpRules", spec.get("rules", []))
        return any(self._rule(policy, rule, ask) for rule in rules)

    def _rule(self, policy: Manifest, rule: Manifest, ask: Ask) -> bool:
        own = policy["metadata"].get("namespace", "")
        if "tcpRules" in policy["spec"]:
            sources = "sources" not in rule or any(self._old_source(s, ask) for s in rule["sources"])
            ports = "attributes" not in rule or any(_ports(a, ask) for a in rule["attributes"])
            return sources and ports
        if policy["kind"] == "XAuthorizationPolicy":
            sources = "sources" not in rule or any(self._x_source(s, own, ask) for s in rule["sources"])
            return sources and _ports(rule.get("networkAttributes", {}), ask)
        source = rule.get("authorizationSource")
        if source is not None:
            accounts = source.get("serviceAccounts", [])
            if ask.identity not in source.get("identities", []) and not any(
                self._account(a, own, ask) for a in accounts
            ):
                return False
        application = rule.get("applicationAttributes", {})
        return (
            _ports(rule.get("networkAttributes", {}), ask)
            and ("methods" not in application or ask.method in application["methods"])
            and ("paths" not in application or any(_path(p, ask.path) for p in application["paths"]))
        )

    def _old_source(self, source: Manifest, ask: Ask) -> bool:
        return (
            ask.identity in source.get("identities", [])
            or any(self._account(a, "", ask) for a in source.get("serviceAccounts", []))
            or any(self._account(f"{n}/*", "", ask) for n in source.get("namespaces", []))
        )

    def _x_source(self, source: Manifest, own: str, ask: Ask) -> bool:
        if source["type"] == "SPIFFE":
            return bool(ask.identity == source["spiffe"])
        account = source["serviceAccount"]
        return self._account(f"{account.get('namespace', own)}/{account['name']}", own, ask)

    def _account(self, account: str, own: str, ask: Ask) -> bool:
        namespace, name = account.split("/") if "/" in account else (own, account)
        wanted = "[^/]+" if name == "*" else re.escape(name)
        pattern = f"spiffe://{re.escape(self.trust_domain)}/ns/{re.escape(namespace)}/sa/{wanted}"
        return ask.identity is not None and re.fullmatch(pattern, ask.identity) is not None


def _is_policy(manifest: Manifest) -> bool:
    audit = manifest["metadata"].get("annotations", {}).get("eastgate.dev/mode") == "audit"
    return "AuthorizationPolicy" in manifest["kind"] and not audit


def _level(policy: Manifest) -> str:
    level: str = policy["spec"].get("enforcementLevel", "network")
    return level.lower()


def _looks_at_paths(policies: list[Manifest]) -> bool:
    rules = [rule for p in policies for rule in p["spec"].get("rules", [])]
    counts = [rule for rule in rules if "paths" in rule.get("applicationAttributes", {})]
    return any(rule["applicationAttributes"]["paths"] for rule in counts)


def _selects(selector: Manifest | None, labels: dict[str, str]) -> bool:
    for key, value in (selector or {}).get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for term in (selector or {}).get("matchExpressions", []):
        held = {
            "In": labels.get(term["key"]) in term.get("values", []),
            "NotIn": labels.get(term["key"]) not in term.get("values", []),
            "Exists": term["key"] in labels,
            "DoesNotExist": term["key"] not in labels,
        }[term["operator"]]
        if not held:
            return False
    return True


def _ports(attributes: Manifest, ask: Ask) -> bool:
    return "ports" not in attributes or ask.port in attributes["ports"]


def _path(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path.endswith(pattern[1:]) if pattern.startswith("*") else path == pattern
