"""Generated clusters: pods, services, namespaces, and valid policies of every form. Few names, so that they match."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Manifest = dict[str, Any]

NAMESPACES = ["a", "b"]
ACCOUNTS = ["x", "y"]
DOMAINS = ["td", "evil"]
PORTS = [80, 443]
LABELS = {"app": ["web", "db"], "tier": ["1", "2"]}
GROUP = "gateway.networking.x-k8s.io"

IDENTITIES = [f"spiffe://{d}/ns/{n}/sa/{s}" for d in DOMAINS for n in NAMESPACES for s in ACCOUNTS]
IDENTITIES += ["spiffe://td/ns/a/sa/x/deeper", "spiffe://td/workload"]
identities = st.sampled_from(IDENTITIES)
labels = st.fixed_dictionaries({}, optional={key: st.sampled_from(values) for key, values in LABELS.items()})
few_ports = st.lists(st.sampled_from(PORTS), max_size=2)
METHODS = ["GET", "POST"]
PATTERNS = ["/api", "/api/*", "*.png", "/*", "*", "/"]
PATHS = ["/", "/api", "/api/1", "/x.png", "/api%2F1"]


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=dict(fields))


@st.composite
def requirement(draw: st.DrawFn) -> Manifest:
    key = draw(st.sampled_from([*LABELS, "missing"]))
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    values = draw(st.lists(st.sampled_from(LABELS.get(key, ["z"])), min_size=1, max_size=2))
    return {"key": key, "operator": operator, "values": values}


selectors: st.SearchStrategy[Manifest] = st.just({}) | optional(
    matchLabels=labels, matchExpressions=st.lists(requirement(), max_size=2)
)


@st.composite
def account(draw: st.DrawFn, *, bare: bool = True, whole: bool = True) -> str:
    name = draw(st.sampled_from([*ACCOUNTS, "*"] if whole else ACCOUNTS))
    if bare and name != "*" and draw(st.booleans()):
        return name
    return f"{draw(st.sampled_from(NAMESPACES))}/{name}"


def rule(level: str, *, bare: bool) -> st.SearchStrategy[Manifest]:
    fields = {
        "authorizationSource": optional(
            identities=st.lists(identities, max_size=2), serviceAccounts=st.lists(account(bare=bare), max_size=2)
        ),
        "networkAttributes": optional(ports=few_ports),
    }
    if level == "application":
        fields["applicationAttributes"] = optional(
            paths=st.lists(st.sampled_from(PATTERNS), max_size=2),
            methods=st.lists(st.sampled_from(METHODS), max_size=2),
        )
    return st.just({}) | optional(**fields)


def _metadata(draw: st.DrawFn, name: str, namespace: str | None) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if draw(st.integers(0, 9)) == 0:
        metadata["annotations"] = {"eastgate.dev/mode": draw(st.sampled_from(["audit", "enforce"]))}
    return metadata


pod_target: st.SearchStrategy[Manifest] = selectors.map(lambda selector: {"kind": "Pod", "selector": selector})
service_target: st.SearchStrategy[Manifest] = st.sampled_from(["s0", "s1"]).map(
    lambda name: {"group": "", "kind": "Service", "name": name}
)


@st.composite
def v1alpha2(draw: st.DrawFn, name: str, *, ambient: bool) -> Manifest:
    written = draw(st.sampled_from([None, "NETWORK", "network", "APPLICATION", "Application"]))
    level = (written or "network").lower()
    target = pod_target
    if level == "application" and ambient:
        target = service_target
    elif written is None:
        target = pod_target | service_target
    action = draw(st.sampled_from(["ALLOW", "ALLOW", "DENY"]))
    spec: Manifest = {
        "targetRefs": draw(st.lists(target, min_size=1, max_size=2)),
        "action": action,
        "rules": draw(st.lists(rule(level, bare=True), min_size=1 if action == "DENY" else 0, max_size=3)),
    }
    if written is not None:
        spec["enforcementLevel"] = written
    metadata = _metadata(draw, name, draw(st.sampled_from(NAMESPACES)))
    return {"apiVersion": f"{GROUP}/v1alpha2", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


@st.composite
def v1alpha1(draw: st.DrawFn, name: str) -> Manifest:
    source = st.one_of(
        st.fixed_dictionaries({"identities": st.lists(identities, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"serviceAccounts": st.lists(account(bare=False, whole=False), min_size=1, max_size=2)}),
        st.fixed_dictionaries({"namespaces": st.lists(st.sampled_from(NAMESPACES), min_size=1, max_size=2)}),
    )
    old_rule = optional(
        sources=st.lists(source, min_size=1, max_size=2),
        attributes=st.lists(optional(ports=few_ports), min_size=1, max_size=2),
    )
    action = draw(st.sampled_from(["ALLOW", "DENY"]))
    target = pod_target | service_target
    spec = {
        "targetRefs": draw(target | st.lists(target, min_size=1, max_size=2)),
        "action": action,
        "tcpRules": draw(st.lists(old_rule, min_size=1 if action == "DENY" else 0, max_size=2)),
    }
    metadata = _metadata(draw, name, draw(st.sampled_from(NAMESPACES)))
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


@st.composite
def x_policy(draw: st.DrawFn, name: str) -> Manifest:
    source = st.one_of(
        identities.map(lambda i: {"type": "SPIFFE", "spiffe": i}),
        st.fixed_dictionaries(
            {"name": st.sampled_from([*ACCOUNTS, "*"])}, optional={"namespace": st.sampled_from(NAMESPACES)}
        ).map(lambda a: {"type": "ServiceAccount", "serviceAccount": a}),
    )
    x_rule = optional(sources=st.lists(source, max_size=2), networkAttributes=optional(ports=few_ports))
    spec = {
        "targetRefs": [draw(pod_target)],
        "action": "ALLOW",
        "enforcementLevel": "Network",
        "rules": draw(st.lists(x_rule, max_size=2)),
    }
    metadata = _metadata(draw, name, draw(st.sampled_from(NAMESPACES)))
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "XAuthorizationPolicy", "metadata": metadata, "spec": spec}


@st.composite
def cluster_policy(draw: st.DrawFn, name: str) -> Manifest:
    level = draw(st.sampled_from(["NETWORK", "APPLICATION"]))
    action = draw(st.sampled_from(["ALLOW", "DENY", "PASS"]))
    spec = {
        "tier": draw(st.sampled_from(["Admin", "Baseline"])),
        "priority": draw(st.integers(0, 1)),
        "subject": draw(optional(namespaceSelector=selectors, podSelector=selectors)),
        "action": action,
        "enforcementLevel": level,
        "rules": draw(st.lists(rule(level.lower(), bare=False), min_size=1 if action == "DENY" else 0, max_size=2)),
    }
    return {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "ClusterAuthorizationPolicy",
        "metadata": _metadata(draw, name, None),
        "spec": spec,
    }


def policy(name: str, *, ambient: bool) -> st.SearchStrategy[Manifest]:
    return st.one_of(v1alpha2(name, ambient=ambient), v1alpha1(name), x_policy(name), cluster_policy(name))


@st.composite
def pod(draw: st.DrawFn, name: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": draw(st.sampled_from(NAMESPACES)), "labels": draw(labels)},
        "spec": {"serviceAccountName": draw(st.sampled_from(ACCOUNTS))},
    }


@st.composite
def service(draw: st.DrawFn, name: str, namespace: str) -> Manifest:
    ports = [{"port": port} for port in PORTS]
    spec = {"selector": draw(labels), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


@st.composite
def namespace(draw: st.DrawFn, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": draw(labels)}}


@st.composite
def clusters(draw: st.DrawFn, *, ambient: bool) -> list[Manifest]:
    pods = [draw(pod(f"p{n}")) for n in range(draw(st.integers(1, 3)))]
    services = [draw(service(f"s{n}", ns)) for n in range(2) for ns in NAMESPACES if draw(st.booleans())]
    namespaces = [draw(namespace(name)) for name in NAMESPACES if draw(st.booleans())]
    policies = [draw(policy(f"q{n}", ambient=ambient)) for n in range(draw(st.integers(0, 5)))]
    tiers = [draw(cluster_policy(f"c{n}")) for n in range(draw(st.integers(0, 3)))]
    return [*namespaces, *pods, *services, *policies, *tiers]
