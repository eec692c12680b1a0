"""Generated Istio resources of all kinds, on pods of two namespaces: for sidecars, and for an ambient mesh."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.worlds.istio_oracle import Call, MeshConfig

Manifest = dict[str, Any]

ROOT = "istio-system"
NAMESPACES = ["app", "app", "else"]
ISSUERS = ["issuer.a", "issuer.b", "https://c/realm"]
PORTS = [80, 81, 90]
IDENTITIES = [
    None,
    *(f"spiffe://{domain}/ns/app/sa/x" for domain in ("td1", "td2", "td3", "cluster.local")),
    "spiffe://td1/ns/abb/sa/yx",
    "spiffe://td2/ns/abb/sa/x",
]
ADDRESSES = ["10.1.2.3", "10.2.0.1", "203.0.113.7", "2001:db8::1"]
PATHS = ["/", "/a", "/a/", "/a/b", "/ab", "/a/b/c", "/a?q=/b", "/A"]
SPELT = ["//a", "/./a", "/%61", "/b/../a", "/a%2fb", "/a%2Fb", "/x/..%2fa", "/a//b", "/a/.", "/%2561"]
HOSTS = ["h", "H", "h:80", "a.h", "example.com"]
NAMES = ["s.example.com", "example.com"]
HEADERS: list[tuple[tuple[str, str], ...]] = [
    (),
    (("k", "v1"),),
    (("k", "w"),),
    (("k", "w"), ("k", "v1")),
    (("K2", "v"),),
]
CLAIMS: list[Manifest | None] = [
    None,
    {"iss": "issuer.a", "sub": "alice"},
    {"iss": "issuer.a", "sub": "admin", "aud": ["shop", "cart"], "group": ["g1", "g2"]},
    {"iss": "issuer.b", "sub": "bob", "aud": "shop", "group": "g1", "scope": "read write"},
    {"iss": "https://c/realm", "sub": "alice", "azp": "client", "group": 7},
    {"iss": "unknown", "sub": "alice"},
    {"sub": "alice"},
]
CONFIGS = [
    MeshConfig(
        root=ROOT,
        trust_domains=trust_domains,
        normalization=normalization,
        providers=(("grpc", True, answer), ("http", False, other)),
    )
    for trust_domains in (("td1",), ("td1", "td2"), ("cluster.local", "td1"))
    for normalization, answer, other in (
        ("base", "allow", "deny"),
        ("none", "deny", "allow"),
        ("merge-slashes", "error", "allow"),
        ("decode-and-merge-slashes", "deny", "deny"),
    )
]


def _some(values: list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)


def _fields(fields: dict[str, list[Any]]) -> st.SearchStrategy[Manifest]:
    """Draw at least one of the fields, each plain or negated."""
    optional = {name: _some(values) for name, values in fields.items()}
    optional |= {"not" + name[0].upper() + name[1:]: _some(values) for name, values in fields.items()}
    drawn = st.lists(st.sampled_from(sorted(optional)), min_size=1, max_size=2, unique=True)
    return drawn.flatmap(lambda names: st.fixed_dictionaries({name: optional[name] for name in names}))


PRINCIPALS = [
    "*",
    "td1/ns/app/sa/x",
    "td2/ns/app/sa/x",
    "td3/ns/abb/sa/yx",
    "cluster.local/ns/app/sa/x",
    "*/ns/app/sa/x",
    "*1/ns/app/sa/x",
    "*x",
    "td1/ns/app/*",
    "td1/ns/app/sa/*",
    "td1/*/sa/x",
]
ACCOUNTS = ["x", "app/x", "abb/yx"]
PLAIN_SOURCES = {
    "principals": PRINCIPALS,
    "namespaces": ["app", "abb", "a*", "*b", "a*b", "*", "zz"],
    "ipBlocks": ["10.1.2.3", "10.0.0.0/8", "10.1.9.9/16", "2001:db8::/32", "0.0.0.0/0"],
}
SOURCES = PLAIN_SOURCES | {
    "trustDomains": ["td1", "td2", "*", "td*", "*3"],
    "remoteIpBlocks": ["203.0.113.0/24", "10.1.2.3"],
    "requestPrincipals": [
        "*",
        "issuer.a/alice",
        "issuer.a/*",
        "*/alice",
        "https://c/realm/alice",
        "issuer*",
        "*min",
        "issuer.b/b*",
    ],
}
OPERATIONS = {
    "hosts": ["h", "H", "*.h", "h*", "*", "example.com"],
    "methods": ["GET", "POST", "P*", "*T", "*", "get"],
    "paths": ["/a", "/a*", "*/b", "*", "/a/{*}", "/a/{**}", "/{*}", "/a*b"],
    "ports": ["80", "81"],
}
PLAIN_CONDITIONS = {
    "source.ip": ["10.1.2.3", "10.0.0.0/8"],
    "source.namespace": ["app", "a*"],
    "source.principal": PRINCIPALS[1:6],
    "destination.port": ["80", "90"],
}
CONDITIONS = PLAIN_CONDITIONS | {
    "source.serviceAccount": ACCOUNTS,
    "source.trustDomain": ["td1", "td*"],
    "remote.ip": ["203.0.113.0/24"],
    "connection.sni": ["s.example.com", "*.example.com"],
    "request.headers[k]": ["v*", "w", "*"],
    "request.auth.principal": ["*", "issuer.a/*"],
    "request.auth.audiences": ["shop", "c*"],
    "request.auth.presenter": ["client"],
    "request.auth.claims[group]": ["g1", "g*", "7"],
    "request.auth.claims[scope]": ["read"],
}
FOR_CUSTOM = {"ipBlocks": SOURCES["ipBlocks"]}
FOR_CUSTOM_CONDITIONS = {key: CONDITIONS[key] for key in ("source.ip", "destination.port", "request.headers[k]")}


def _sources(fields: dict[str, list[Any]], *, accounts: bool) -> st.SearchStrategy[Manifest]:
    written = _fields(fields)
    return st.one_of(written, _fields({"serviceAccounts": ACCOUNTS})) if accounts else written


def _condition(keys: dict[str, list[Any]]) -> st.SearchStrategy[Manifest]:
    return st.sampled_from(sorted(keys)).flatmap(
        lambda key: st.sampled_from(["values", "notValues"]).flatmap(
            lambda field: st.fixed_dictionaries({"key": st.just(key), field: _some(keys[key])})
        )
    )


@st.composite
def _rule(draw: st.DrawFn, sources: dict[str, list[Any]], keys: dict[str, list[Any]], *, accounts: bool) -> Manifest:
    rule: Manifest = {}
    if draw(st.booleans()):
        written = st.lists(_sources(sources, accounts=accounts), max_size=2)
        rule["from"] = [{"source": each} for each in draw(written)]
    if draw(st.booleans()):
        rule["to"] = [{"operation": each} for each in draw(st.lists(_fields(OPERATIONS), max_size=2))]
    if draw(st.booleans()):
        rule["when"] = draw(st.lists(_condition(keys), max_size=2))
    return rule


def _rules(
    sources: dict[str, list[Any]], keys: dict[str, list[Any]], *, accounts: bool = True
) -> st.SearchStrategy[list[Manifest]]:
    return st.lists(_rule(sources, keys, accounts=accounts), min_size=1, max_size=2)


SELECTORS: list[Manifest] = [{"matchLabels": {"app": "web"}}, {"matchLabels": {"tier": "t"}}, {"matchLabels": {}}]


@st.composite
def _policy(draw: st.DrawFn, name: str, targets: list[Manifest], sources: dict[str, list[Any]]) -> Manifest:
    action = draw(st.sampled_from(["ALLOW", "ALLOW", "DENY", "DENY", "AUDIT", "CUSTOM"]))
    spec: Manifest = {} if action == "ALLOW" else {"action": action}
    metadata: Manifest = {"name": name, "namespace": draw(st.sampled_from([*NAMESPACES, ROOT]))}
    match action:
        case "CUSTOM":
            spec["rules"] = draw(_rules(FOR_CUSTOM, FOR_CUSTOM_CONDITIONS, accounts=False))
            spec["provider"] = {"name": draw(st.sampled_from(["grpc", "grpc", "http", "unknown"]))}
        case "ALLOW" if draw(st.integers(0, 9)) == 0:
            spec["rules"] = []
        case _:
            spec["rules"] = draw(_rules(sources, CONDITIONS))
    if action in ("ALLOW", "DENY") and draw(st.integers(0, 7)) == 0:
        metadata["annotations"] = {"istio.io/dry-run": draw(st.sampled_from(["true", "false"]))}
    _attach(draw, spec, targets)
    return {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


def _attach(draw: st.DrawFn, spec: Manifest, targets: list[Manifest]) -> None:
    how = draw(st.sampled_from(["selector", "namespace", *["target" for _ in targets]]))
    if how == "selector":
        spec["selector"] = draw(st.sampled_from(SELECTORS))
    elif how == "target":
        spec["targetRefs"] = draw(st.lists(st.sampled_from(targets), min_size=1, max_size=2, unique_by=str))


@st.composite
def _single_source(draw: st.DrawFn, *, ambient: bool) -> Manifest:
    """Draw a policy with only one source, so that no other field hides its effect."""
    source = draw(_sources(PLAIN_SOURCES if ambient else SOURCES, accounts=True))
    spec: Manifest = {"action": draw(st.sampled_from(["ALLOW", "DENY"])), "rules": [{"from": [{"source": source}]}]}
    if draw(st.booleans()):
        spec["selector"] = draw(st.sampled_from(SELECTORS))
    metadata = {"name": "p0", "namespace": draw(st.sampled_from(["app", ROOT]))}
    return {"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}


@st.composite
def _tokens(draw: st.DrawFn, name: str, issuers: list[str], targets: list[Manifest]) -> Manifest:
    spec: Manifest = {"jwtRules": [{"issuer": issuer} for issuer in issuers]}
    if draw(st.booleans()):
        spec["jwtRules"][0]["audiences"] = draw(_some(["shop", "cart"]))
    metadata = {"name": name, "namespace": draw(st.sampled_from([*NAMESPACES, ROOT]))}
    _attach(draw, spec, targets)
    return {"apiVersion": "security.istio.io/v1", "kind": "RequestAuthentication", "metadata": metadata, "spec": spec}


@st.composite
def _peers(draw: st.DrawFn, name: str, namespaces: list[str]) -> Manifest:
    mode = st.sampled_from(["STRICT", "PERMISSIVE", "DISABLE", "UNSET"])
    spec: Manifest = draw(st.fixed_dictionaries({}, optional={"mtls": st.fixed_dictionaries({"mode": mode})}))
    if draw(st.booleans()):
        spec["selector"] = draw(st.sampled_from(SELECTORS[:2]))
        ports = st.fixed_dictionaries({}, optional={str(port): st.fixed_dictionaries({"mode": mode}) for port in PORTS})
        written = draw(ports)
        if written:
            spec["portLevelMtls"] = written
    metadata: Manifest = {"name": name, "namespace": draw(st.sampled_from(namespaces))}
    if draw(st.booleans()):
        metadata["creationTimestamp"] = draw(st.sampled_from(["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]))
    return {"apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication", "metadata": metadata, "spec": spec}


def _pod(namespace: str, name: str, labels: dict[str, str]) -> Manifest:
    ports = [{"containerPort": port} for port in PORTS]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"serviceAccountName": name, "containers": [{"name": "c", "ports": ports}]},
    }


PODS = [
    _pod("app", "web", {"app": "web", "tier": "t"}),
    _pod("app", "other", {"app": "other", "tier": "t"}),
    _pod("else", "web", {"app": "web"}),
]
SERVICE: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "app"},
    "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]},
}
GATEWAY_API = "gateway.networking.k8s.io"
TARGETS: list[Manifest] = [
    {"kind": "Service", "name": "web"},
    {"group": GATEWAY_API, "kind": "Gateway", "name": "waypoint"},
    {"group": GATEWAY_API, "kind": "GatewayClass", "name": "istio-waypoint"},
    {"kind": "Service", "name": "other"},
]


@st.composite
def resources(draw: st.DrawFn, *, ambient: bool = False) -> list[Manifest]:
    """Draw policies of all kinds. In an ambient mesh, more of them have targets, or only fields of ztunnel."""
    kinds = draw(st.sampled_from(["all", "all", "one source", "mTLS"]))
    if kinds == "one source":
        return [draw(_single_source(ambient=ambient))]
    if kinds == "mTLS":
        return [draw(_peers(f"m{number}", ["app", ROOT])) for number in range(3)]
    sources = PLAIN_SOURCES if ambient and draw(st.booleans()) else SOURCES
    targets = TARGETS if ambient else TARGETS[:1]
    made = [draw(_policy(f"p{number}", targets, sources)) for number in range(draw(st.integers(1, 4)))]
    if draw(st.booleans()):
        made.append(draw(_tokens("t0", ISSUERS[:2], targets)))
    if draw(st.booleans()):
        made.append(draw(_tokens("t1", ISSUERS[2:], targets)))
    return made + [draw(_peers(f"m{number}", [*NAMESPACES, ROOT])) for number in range(draw(st.integers(0, 3)))]


@st.composite
def waypoints(draw: st.DrawFn) -> list[Manifest]:
    """Draw a namespace that may use a waypoint, its Service, and the waypoint."""
    label = {"istio.io/use-waypoint": draw(st.sampled_from(["waypoint", "waypoint", "none", "missing"]))}
    on_service, on_namespace = draw(st.booleans()), draw(st.integers(0, 3)) != 0
    service = SERVICE | {"metadata": SERVICE["metadata"] | {"labels": label if on_service else {}}}
    labels = {"istio.io/waypoint-for": draw(st.sampled_from(["service", "service", "none"]))}
    gateway: Manifest = {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "Gateway",
        "metadata": {"name": "waypoint", "namespace": "app", "labels": labels if draw(st.booleans()) else {}},
        "spec": {
            "gatewayClassName": "istio-waypoint",
            "listeners": [{"name": "mesh", "port": 15008, "protocol": "HBONE"}],
        },
    }
    home = {"name": "app", "labels": {"istio.io/use-waypoint": "waypoint"} if on_namespace else {}}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": home}, service, gateway]


def mesh_config(config: MeshConfig) -> Manifest:
    """Return the ConfigMap that names the providers."""
    providers = [
        f"- name: {name}\n  envoyExtAuthz{'Grpc' if by_grpc else 'Http'}: "
        f"{{service: {name}.authz.svc.cluster.local, port: 9000}}\n"
        for name, by_grpc, _ in config.providers
    ]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "istio", "namespace": config.root},
        "data": {"mesh": "extensionProviders:\n" + "".join(providers)},
    }


def provider_services(config: MeshConfig) -> list[Manifest]:
    """Return the Services of the providers."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "authz"},
            "spec": {"ports": [{"name": "http", "port": 9000}]},
        }
        for name, _, _ in config.providers
    ]


calls = st.lists(
    st.builds(
        Call,
        st.sampled_from(IDENTITIES),
        st.sampled_from(ADDRESSES),
        st.sampled_from(PORTS),
        st.sampled_from(ADDRESSES),
        st.sampled_from(NAMES),
        st.sampled_from(["GET", "POST", "PUT", None]),
        st.sampled_from([*PATHS, *SPELT]),
        st.sampled_from(HOSTS),
        st.sampled_from(HEADERS),
        st.sampled_from(CLAIMS),
    ),
    min_size=12,
    max_size=12,
)


def _injection(draw: st.DrawFn, pod: Manifest) -> Manifest:
    """Draw the injection labels and annotations of a pod. Most pods have none."""
    injection = {"sidecar.istio.io/inject": draw(st.sampled_from(["true", "false"]))}
    metadata: Manifest = pod["metadata"]
    match draw(st.integers(0, 7)):
        case 0:
            metadata = {**metadata, "labels": {**metadata["labels"], **injection}}
        case 1:
            metadata = {**metadata, "annotations": injection}
    return {**pod, "metadata": metadata}


@st.composite
def injections(draw: st.DrawFn) -> tuple[list[Manifest], list[Manifest]]:
    """Draw pods with injection labels and annotations, and declared namespaces with and without labels."""
    labels = st.sampled_from([None, {}, {"istio-injection": "enabled"}, {"istio-injection": "disabled"}])
    drawn = ((name, draw(labels)) for name in ("app", "else", "apart"))
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": each}}
        for name, each in drawn
        if each is not None
    ]
    return [_injection(draw, pod) for pod in PODS], namespaces
