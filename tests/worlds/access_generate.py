"""Generated AccessPolicies of both forms, on one Gateway and the two backends behind it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Manifest = dict[str, Any]

SEED, TODAY = "agentic.prototype.x-k8s.io/v0alpha0", "agentic.networking.x-k8s.io/v1alpha1"
IDENTITIES = ["spiffe://td/ns/n/sa/x", "spiffe://td/ns/n/sa/y", "spiffe://evil/ns/n/sa/x"]
TOOLS = ["add", "b1/add", "b2/add", "del"]
BACKENDS = ["b1", "b2"]
METHODS = ["tools/call", "tools/list", "initialize", "notifications/x", "prompts/get", "completion/complete"]
PATHS = ["/mcp", "/mcp/x", "/other"]

FIXED: list[Manifest] = [
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "g", "namespace": "n"},
        "spec": {"gatewayClassName": "c", "listeners": [{"name": "l", "port": 80, "protocol": "HTTP"}]},
    },
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {
            "parentRefs": [{"name": "g"}],
            "rules": [
                {"backendRefs": [{"group": SEED.partition("/")[0], "kind": "XBackend", "name": b} for b in BACKENDS]}
            ],
        },
    },
    *(
        {
            "apiVersion": SEED,
            "kind": "XBackend",
            "metadata": {"name": b, "namespace": "n"},
            "spec": {"mcp": {"serviceName": "s", "port": 80}},
        }
        for b in BACKENDS
    ),
]


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=dict(fields))


sources: st.SearchStrategy[Manifest] = st.one_of(
    st.sampled_from(IDENTITIES).map(lambda i: {"type": "SPIFFE", "spiffe": i}),
    st.fixed_dictionaries(
        {"name": st.sampled_from(["x", "y"])}, optional={"namespace": st.sampled_from(["n", "m"])}
    ).map(lambda a: {"type": "ServiceAccount", "serviceAccount": a}),
)
tools = st.lists(st.sampled_from(TOOLS), max_size=2, unique=True)
external_auth = st.sampled_from([1, 2]).map(
    lambda port: {"protocol": "GRPC", "grpc": {}, "backendRef": {"name": "authz", "port": port}}
)
targets = st.one_of(
    st.just([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}]),
    st.lists(st.sampled_from(BACKENDS), min_size=1, max_size=2, unique=True).map(
        lambda names: [{"group": SEED.partition("/")[0], "kind": "XBackend", "name": n} for n in names]
    ),
)


def _numbered(rules: list[Manifest]) -> list[Manifest]:
    return [{"name": f"r{number}", **rule} for number, rule in enumerate(rules)]


@st.composite
def seed(draw: st.DrawFn, name: str) -> Manifest:
    inline = st.fixed_dictionaries(
        {"source": sources},
        optional={"authorization": st.fixed_dictionaries({"type": st.just("InlineTools"), "tools": tools})},
    )
    ask = st.fixed_dictionaries(
        {
            "source": sources,
            "authorization": st.fixed_dictionaries({"type": st.just("ExternalAuth"), "externalAuth": external_auth}),
        }
    )
    kind = draw(st.sampled_from(["allow", "deny", "ask"]))
    rules = [draw(ask)] if kind == "ask" else draw(st.lists(inline, min_size=1, max_size=3))
    spec: Manifest = {"targetRefs": draw(targets), "rules": _numbered(rules)}
    if kind == "deny":
        spec["action"] = "Deny"
    return _policy(draw, SEED, name, spec)


mcp = optional(
    methods=st.lists(
        st.one_of(
            st.sampled_from(["tools", "prompts", "tools/list", "prompts/get"]).map(lambda n: {"name": n}),
            tools.map(lambda names: {"name": "tools/call", "params": names}),
        ),
        max_size=2,
        unique_by=lambda one: str(one["name"]),
    ),
    mcpBaseProtocolMethodsOption=st.sampled_from(["SKIP_BASE_PROTOCOL_METHODS", "MATCH_BASE_PROTOCOL_METHODS"]),
)
path = st.fixed_dictionaries(
    {"value": st.sampled_from(["/mcp", "/", "/mcp/x"])}, optional={"type": st.sampled_from(["Exact", "PathPrefix"])}
)
inline = st.fixed_dictionaries(
    {"type": st.just("Inline")},
    optional={
        "methods": st.lists(st.sampled_from(["GET", "POST"]), max_size=2, unique=True),
        "paths": st.lists(path, max_size=2),
        "hosts": st.lists(st.sampled_from(["a.example", "*.example"]), max_size=2, unique=True),
        "mcp": mcp,
    },
)


@st.composite
def today(draw: st.DrawFn, name: str) -> Manifest:
    action = draw(st.sampled_from(["Allow", "Deny", "ExternalAuth"]))
    spec: Manifest = {"targetRefs": draw(targets), "action": action}
    if action == "ExternalAuth":
        spec["externalAuth"] = draw(external_auth)
    if draw(st.integers(0, 4)):
        rule = optional(source=sources, authorization=inline)
        spec["rules"] = _numbered(draw(st.lists(rule, max_size=3)))
    return _policy(draw, TODAY, name, spec)


def _policy(draw: st.DrawFn, api_version: str, name: str, spec: Manifest) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "n"}
    if draw(st.integers(0, 9)) == 0:
        metadata["annotations"] = {"eastgate.dev/mode": "audit"}
    return {"apiVersion": api_version, "kind": "XAccessPolicy", "metadata": metadata, "spec": spec}


policies = st.integers(0, 5).flatmap(lambda n: st.tuples(*(seed(f"p{i}") | today(f"p{i}") for i in range(n)))).map(list)
answers = st.dictionaries(st.sampled_from(["authz.n:1", "authz.n:2"]), st.sampled_from(["allow", "deny", "error"]))
