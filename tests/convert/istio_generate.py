"""Generated policies of Istio on few pods, so that they share pods, with most fields of a rule."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eastgate.settings import Settings
from tests.convert.crowds import pod

Manifest = dict[str, Any]

LABELS = [{"app": "web"}, {"app": "db"}, {"app": "web", "tier": "front"}, {}]
_SELECTORS = [None, {"app": "web"}, {"app": "web"}, {"app": "db"}, {"tier": "front"}, {"app": "web", "tier": "front"}]
_PRINCIPALS = [
    "td/ns/a/sa/x",
    "td/ns/a/sa/y",
    "td/ns/b/sa/x",
    "cluster.local/ns/a/sa/x",
    "evil/ns/a/sa/x",
    "td/ns/a/sa/*",
    "td/ns/a/sa/x/deeper",
    "td/ns/*",
    "*/ns/a/sa/x",
    "*/sa/x",
    "*",
]
_SOURCES: dict[str, list[str]] = {
    "principals": _PRINCIPALS,
    "namespaces": ["a", "b", "c", "*"],
    "serviceAccounts": ["x", "a/x", "b/y"],
    "trustDomains": ["td", "evil", "*"],
    "ipBlocks": ["10.0.0.0/8"],
    "requestPrincipals": ["iss/sub"],
}
_OPERATIONS: dict[str, list[str]] = {
    "ports": ["80", "443"],
    "methods": ["GET", "POST", "P*", "*"],
    "paths": ["/a", "/a/*", "*/b", "*", "/a/{*}", "/a*b"],
    "hosts": ["h", "*.example.com"],
}
_CONDITIONS: dict[str, list[str]] = {
    "source.principal": _PRINCIPALS,
    "source.namespace": ["a", "b"],
    "destination.port": ["80", "9090"],
    "source.ip": ["10.0.0.0/8"],
    "request.headers[x]": ["1"],
}
_COMMON = {
    "source": ["principals", "principals", "namespaces", "serviceAccounts"],
    "operation": ["ports", "methods", "paths"],
}


@st.composite
def _entry(draw: st.DrawFn, part: str, fields: dict[str, list[str]]) -> Manifest:
    names = st.sampled_from(_COMMON[part]) if draw(st.integers(0, 3)) else st.sampled_from(sorted(fields))
    chosen: Manifest = {}
    for name in draw(st.lists(names, min_size=1, max_size=2, unique=True)):
        written = name if draw(st.integers(0, 5)) else f"not{name[0].upper()}{name[1:]}"
        chosen[written] = draw(st.lists(st.sampled_from(fields[name]), min_size=1, max_size=2, unique=True))
    accounts = {"serviceAccounts", "notServiceAccounts"} & chosen.keys()
    if accounts:  # these fields are used alone
        chosen = {name: values for name, values in chosen.items() if name in accounts}
    return {part: chosen}


@st.composite
def _rule(draw: st.DrawFn) -> Manifest:
    rule: Manifest = {}
    if draw(st.integers(0, 3)):
        rule["from"] = draw(st.lists(_entry("source", _SOURCES), min_size=1, max_size=2))
    if draw(st.booleans()):
        rule["to"] = draw(st.lists(_entry("operation", _OPERATIONS), min_size=1, max_size=2))
    if not draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(_CONDITIONS)))
        field = draw(st.sampled_from(["values", "values", "notValues"]))
        rule["when"] = [{"key": key, field: [draw(st.sampled_from(_CONDITIONS[key]))]}]
    return rule


@st.composite
def _policy(draw: st.DrawFn, name: str) -> Manifest:
    action = draw(st.sampled_from(["ALLOW", "ALLOW", "ALLOW", "DENY", "DENY", "AUDIT"]))
    rules = draw(st.lists(_rule(), min_size=0 if action == "ALLOW" else 1, max_size=3))
    spec: Manifest = {"action": action, "rules": rules}
    labels = draw(st.sampled_from(_SELECTORS))
    if labels is not None:
        spec["selector"] = {"matchLabels": labels}
    metadata: Manifest = {"name": name, "namespace": draw(st.sampled_from(["a", "a", "a", "istio-system"]))}
    if action != "AUDIT" and not draw(st.integers(0, 9)):
        metadata["annotations"] = {"istio.io/dry-run": "true"}
    return {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


@st.composite
def meshes(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    """Draw a namespace with few pods, and policies that may select all of them."""
    pods = [pod(f"p{n}", labels, draw(st.sampled_from([[80], [80, 443], []]))) for n, labels in enumerate(LABELS)]
    policies = [draw(_policy(f"q{n}")) for n in range(draw(st.integers(1, 3)))]
    modes = [{"istio.io/dataplane-mode": "ambient"}, *[{}] * 4]
    namespace: Manifest = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "a", "labels": draw(st.sampled_from(modes))},
    }
    written = {
        "trustDomain": draw(st.sampled_from(["td", "td", "cluster.local"])),
        "denyOnly": draw(st.sampled_from(["deny", "allow"])),
        "linkerdDefaultPolicy": "deny",
    }
    return [namespace, *pods, *policies], Settings.from_mapping(written)
