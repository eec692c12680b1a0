"""Generated Linkerd resources of all kinds, on two pods of one namespace."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, account_name

Manifest = dict[str, Any]

GROUP, GATEWAY = "policy.linkerd.io", "gateway.networking.k8s.io"
NAMES = [None, account_name("n", "x"), account_name("m", "x"), "web.west.example.com", "spiffe://td/x.west.example.com"]
ADDRESSES = ["10.1.2.3", "8.8.8.8", "127.0.0.1", "fd00::1", "2001:db8::1"]
PORTS = [80, 81, 90, 7]
PATHS = ["/", "/a", "/a/", "/a/b", "/ab", "/s/m", "/s/k/x"]
SPELT = ["//", "//a", "/./a", "/%61", "/b/../a", "/a//b", "/a%2Fb", "/a%2fb", "/a/../ab", "//s/m", "/s//m", "/\\a"]


def _sometimes(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=fields)


pod_annotations = _sometimes(
    {
        "config.linkerd.io/default-inbound-policy": st.sampled_from([*ALL_POLICIES, "nonsense"]),
        "config.linkerd.io/opaque-ports": st.sampled_from(["7", "80,7"]),
        "config.linkerd.io/proxy-require-identity-inbound-ports": st.sampled_from(["7", "90,7"]),
    }
)


def pod(name: str, labels: dict[str, str]) -> st.SearchStrategy[Manifest]:
    container: Manifest = {
        "name": "c",
        "ports": [
            {"containerPort": 80, "name": "http"},
            {"containerPort": 81, "name": "http"},
            {"containerPort": 90, "name": "admin"},
        ],
    }
    probed = {**container, "livenessProbe": {"httpGet": {"path": "/a", "port": 80}}}
    return st.tuples(pod_annotations, st.sampled_from([container, probed])).map(
        lambda drawn: {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "n", "labels": labels, "annotations": drawn[0]},
            "spec": {"serviceAccountName": f"sa-{name}", "containers": [drawn[1]]},
        }
    )


pods = st.tuples(pod("one", {"app": "one", "tier": "t"}), pod("two", {"app": "two", "tier": "t"})).map(list)
namespace = _sometimes({"config.linkerd.io/default-inbound-policy": st.sampled_from(ALL_POLICIES)}).map(
    lambda written: {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "annotations": written}}
)


@st.composite
def resource(draw: st.DrawFn, version: str, kind: str, name: str, spec: st.SearchStrategy[Manifest]) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "n"}
    if draw(st.booleans()):
        metadata["creationTimestamp"] = draw(st.sampled_from(["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]))
    if kind not in ("HTTPRoute", "GRPCRoute") and draw(st.integers(0, 7)) == 0:
        metadata["annotations"] = {"eastgate.dev/mode": "audit"}
    if kind == "Server":
        metadata["labels"] = {"role": draw(st.sampled_from(["front", "back"]))}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": draw(spec)}


server_spec = st.fixed_dictionaries(
    {
        "port": st.sampled_from([80, 81, 7, "http", "admin", "nothing"]),
        "podSelector": st.sampled_from([{}, {"matchLabels": {"app": "one"}}, {"matchLabels": {"tier": "t"}}]),
    },
    optional={
        "proxyProtocol": st.sampled_from(["unknown", "HTTP/1", "HTTP/2", "gRPC", "opaque", "TLS"]),
        "accessPolicy": st.sampled_from(ALL_POLICIES),
    },
)
network = st.sampled_from(
    [
        {"cidr": "0.0.0.0/0"},
        {"cidr": "::/0"},
        {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]},
        {"cidr": "10.1.2.0/24"},
        {"cidr": "8.8.8.8"},
        {"cidr": "fd00::/8", "except": ["fd00::1/128"]},
    ]
)
networks = st.lists(network, min_size=1, max_size=2)
identities = st.lists(
    st.sampled_from(["*", "*.west.example.com", "*.example.com", "web.west.example.com", NAMES[1], NAMES[4]]),
    min_size=1,
    max_size=2,
)
identity_refs = st.lists(
    st.sampled_from(
        [
            {"kind": "ServiceAccount", "name": "x"},
            {"kind": "ServiceAccount", "name": "x", "namespace": "m"},
            {"kind": "Namespace", "name": "n"},
        ]
    ),
    min_size=1,
    max_size=2,
)
client = st.one_of(
    st.fixed_dictionaries({"unauthenticated": st.just(True)}, optional={"networks": networks}),
    st.fixed_dictionaries(
        {
            "meshTLS": st.one_of(
                st.fixed_dictionaries({"identities": identities.filter(lambda names: NAMES[4] not in names)}),
                st.just({"serviceAccounts": [{"name": "x"}, {"name": "x", "namespace": "m"}]}),
            )
        },
        optional={"networks": networks},
    ),
)
server_authorization_spec = st.fixed_dictionaries(
    {
        "server": st.sampled_from(
            [{"name": "s0"}, {"name": "s1"}, {"selector": {"matchLabels": {"role": "front"}}}, {"selector": {}}]
        ),
        "client": client,
    }
)
target = st.sampled_from(
    [
        *({"group": GROUP, "kind": "Server", "name": name} for name in ("s0", "s1")),
        *({"group": group, "kind": "HTTPRoute", "name": "r0"} for group in (GROUP, GATEWAY)),
        {"group": GROUP, "kind": "httpRoute", "name": "r1"},
        {"group": GATEWAY, "kind": "GRPCRoute", "name": "r2"},
        {"kind": "Namespace", "name": "n"},
        {"kind": "ServiceAccount", "name": "sa-one"},
        {"group": "core", "kind": "Pod", "name": "two"},
    ]
)
authentication = st.sampled_from(
    [
        *({"group": GROUP, "kind": "MeshTLSAuthentication", "name": name} for name in ("m0", "m1", "missing")),
        {"group": GROUP, "kind": "MeshTLSAuthentication", "name": "m0", "namespace": "n"},
        {"group": GROUP, "kind": "MeshTLSAuthentication", "name": "m0", "namespace": "elsewhere"},
        *({"group": GROUP, "kind": "NetworkAuthentication", "name": name} for name in ("w0", "w1")),
        {"kind": "ServiceAccount", "name": "x"},
        {"kind": "ServiceAccount", "name": "x", "namespace": "m"},
    ]
)
policy_spec = st.fixed_dictionaries(
    {"targetRef": target, "requiredAuthenticationRefs": st.lists(authentication, max_size=2)}
)
mesh_spec = st.one_of(
    st.fixed_dictionaries({"identities": identities}), st.fixed_dictionaries({"identityRefs": identity_refs})
)
header = {"name": "k", "value": "v"}
http_match = _sometimes(
    {
        "path": st.one_of(
            st.fixed_dictionaries(
                {
                    "value": st.sampled_from(["/", "/a", "/a/b", "/ab", "/%61"]),
                    "type": st.sampled_from(["Exact", "PathPrefix"]),
                }
            ),
            st.sampled_from([{"type": "RegularExpression", "value": value} for value in ("/a.*", "/a|/ab", "/%61")]),
        ),
        "method": st.sampled_from(["GET", "POST"]),
        "headers": st.just([header]),
    }
)
grpc_match = _sometimes(
    {
        "method": st.sampled_from([{"service": "s"}, {"method": "m"}, {"service": "s", "method": "m"}]),
        "headers": st.just([header]),
    }
)


def route_spec(match: st.SearchStrategy[Manifest]) -> st.SearchStrategy[Manifest]:
    parents = st.lists(st.sampled_from(["s0", "s1"]), min_size=1, max_size=2, unique=True).map(
        lambda names: [{"group": GROUP, "kind": "Server", "name": name} for name in names]
    )
    rule = _sometimes({"matches": st.lists(match, min_size=1, max_size=2)})
    return st.fixed_dictionaries(
        {"parentRefs": parents, "rules": st.lists(rule, min_size=1, max_size=2)},
        optional={"hostnames": st.lists(st.sampled_from(["h", "*.h", "a.h"]), min_size=1, max_size=2, unique=True)},
    )


def _maybe(strategy: st.SearchStrategy[Manifest]) -> st.SearchStrategy[list[Manifest]]:
    return st.lists(strategy, max_size=1)


resources = st.tuples(
    _maybe(resource(f"{GROUP}/v1beta3", "Server", "s0", server_spec)),
    _maybe(resource(f"{GROUP}/v1beta3", "Server", "s1", server_spec)),
    _maybe(resource(f"{GROUP}/v1beta1", "ServerAuthorization", "a0", server_authorization_spec)),
    *(_maybe(resource(f"{GROUP}/v1alpha1", "AuthorizationPolicy", f"p{n}", policy_spec)) for n in range(4)),
    *(_maybe(resource(f"{GROUP}/v1alpha1", "MeshTLSAuthentication", f"m{n}", mesh_spec)) for n in range(2)),
    *(
        _maybe(resource(f"{GROUP}/v1alpha1", "NetworkAuthentication", f"w{n}", networks.map(lambda n: {"networks": n})))
        for n in range(2)
    ),
    _maybe(resource(f"{GROUP}/v1beta3", "HTTPRoute", "r0", route_spec(http_match))),
    _maybe(resource(f"{GATEWAY}/v1", "HTTPRoute", "r0", route_spec(http_match))),
    _maybe(resource(f"{GROUP}/v1beta2", "HTTPRoute", "r1", route_spec(http_match))),
    _maybe(resource(f"{GATEWAY}/v1", "GRPCRoute", "r2", route_spec(grpc_match))),
).map(lambda lists: [one for found in lists for one in found])

calls = st.lists(
    st.builds(
        Call,
        st.sampled_from(NAMES),
        st.sampled_from(ADDRESSES),
        st.sampled_from(PORTS),
        st.sampled_from(["GET", "POST", None]),
        st.sampled_from([*PATHS, *SPELT]),
        st.sampled_from(["h", "a.h", "b.h", "other"]),
        st.sampled_from([(), (("k", "v"),), (("k", "w"),)]),
    ),
    min_size=12,
    max_size=12,
)
