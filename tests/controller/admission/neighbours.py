"""Generated policies with several targets each, beside others and a baseline, which reveal a wider target."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eastgate.settings import Settings
from tests.convert.crowds import pod

Manifest = dict[str, Any]
GROUP = "gateway.networking.x-k8s.io"

LABELS = [{"app": app, "tier": tier} for app in ("web", "db") for tier in ("1", "2")]
TARGETS: list[Manifest] = [
    {"kind": "Pod", "selector": {"matchLabels": {"app": "web"}}},
    {"kind": "Pod", "selector": {"matchLabels": {"app": "db"}}},
    {"kind": "Pod", "selector": {"matchLabels": {"tier": "1"}}},
    {"kind": "Pod", "selector": {"matchLabels": {"app": "web", "tier": "2"}}},
    {"kind": "Pod", "selector": {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["1"]}]}},
    {"kind": "Service", "name": "web"},
    {"kind": "Service", "name": "db-1"},
]
RULES: list[Manifest] = [
    {"authorizationSource": {"serviceAccounts": ["b/x"]}},
    {"authorizationSource": {"serviceAccounts": ["b/*"]}},
    {"networkAttributes": {"ports": [80]}},
    {},
]


def service(name: str, labels: dict[str, str]) -> Manifest:
    spec = {"selector": labels, "ports": [{"port": 80}, {"port": 443}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "a"}, "spec": spec}


@st.composite
def policy(draw: st.DrawFn, name: str) -> Manifest:
    action = draw(st.sampled_from(["ALLOW", "ALLOW", "DENY"]))
    application = draw(st.integers(0, 4)) == 0
    spec: Manifest = {
        "targetRefs": draw(st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3, unique_by=str)),
        "action": action,
        "rules": draw(st.lists(st.sampled_from(RULES), min_size=action == "DENY", max_size=2)),
    }
    if application:
        spec["targetRefs"] = [each for each in spec["targetRefs"] if each["kind"] == "Pod"] or TARGETS[:1]
        spec["enforcementLevel"] = "APPLICATION"
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": f"{GROUP}/v1alpha2", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


@st.composite
def baseline(draw: st.DrawFn) -> Manifest:
    spec = {
        "tier": "Baseline",
        "priority": 1,
        "action": draw(st.sampled_from(["DENY", "ALLOW"])),
        "rules": [draw(st.sampled_from([rule for rule in RULES if "ports" not in str(rule)]))],
    }
    kind = {"apiVersion": "eastgate.dev/v1alpha1", "kind": "ClusterAuthorizationPolicy"}
    return {**kind, "metadata": {"name": "baseline"}, "spec": spec}


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    """Return four pods with all pairs of labels, two Services, and policies."""
    pods = [pod(f"p{number}", labels, [80, 443]) for number, labels in enumerate(LABELS)]
    services = [service("web", {"app": "web"}), service("db-1", {"app": "db", "tier": "1"})]
    policies = [draw(policy(f"q{number}")) for number in range(draw(st.integers(1, 3)))]
    tiers = [draw(baseline())] if draw(st.booleans()) else []
    chosen = Settings.from_mapping({"denyOnly": draw(st.sampled_from(["deny", "allow"]))})
    return [*pods, *services, *policies, *tiers], chosen
