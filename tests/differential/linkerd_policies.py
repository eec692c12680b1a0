"""Generated Linkerd resources with every kind of route match, and networks on this machine."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.differential.world import Manifest
from tests.worlds.linkerd_generate import GATEWAY, GROUP, resource
from tests.worlds.linkerd_oracle import ALL_POLICIES

__all__ = ["linkerd"]

_TAIL = "serviceaccount.identity.linkerd.td"
networks = st.lists(
    st.sampled_from(
        [
            {"cidr": "127.0.0.0/8", "except": ["127.10.0.0/16"]},
            {"cidr": "127.10.0.0/16", "except": ["127.10.1.0/24"]},
            {"cidr": "127.0.0.1"},
            {"cidr": "127.0.0.2/32"},
            {"cidr": "127.64.0.0/10"},
            {"cidr": "0.0.0.0/0"},
            {"cidr": "::/0"},
            {"cidr": "10.0.0.0/8"},
        ]
    ),
    min_size=1,
    max_size=2,
)
names = st.lists(
    st.sampled_from(
        [
            "*",
            f"x.a.{_TAIL}",
            f"*.a.{_TAIL}",
            f"*.dots.x.a.{_TAIL}",
            f"*.x.a.{_TAIL}",
            f"with.dots.x.a.{_TAIL}",
            f"*.{_TAIL}",
            "*.td",
            f"*.b.{_TAIL}",
            "*.example.com",
            "web.example.com",
            "spiffe://evil/workload",
            "spiffe://td/workload",
            "spiffe://td/ns/a/sa/x",
        ]
    ),
    min_size=1,
    max_size=2,
)
_accounts = st.lists(st.sampled_from([{"name": "x"}, {"name": "y", "namespace": "b"}]), min_size=1, max_size=2)
_dns_names = names.filter(lambda written: not any(one.startswith("spiffe:") for one in written))


def _spec(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=dict(fields))


server = st.fixed_dictionaries(
    {
        "port": st.sampled_from([80, 443, "http", "admin"]),
        "podSelector": st.sampled_from([{}, {"matchLabels": {"app": "web"}}, {"matchLabels": {"app": "db"}}]),
    },
    optional={
        "proxyProtocol": st.sampled_from(["unknown", "HTTP/1", "HTTP/1", "HTTP/2", "gRPC", "opaque", "TLS"]),
        "accessPolicy": st.sampled_from(ALL_POLICIES),
    },
)
server_authorization = st.fixed_dictionaries(
    {
        "server": st.sampled_from([{"name": "s0"}, {"name": "s1"}, {"selector": {}}]),
        "client": st.one_of(
            st.fixed_dictionaries({"unauthenticated": st.just(True)}, optional={"networks": networks}),
            st.fixed_dictionaries(
                {
                    "meshTLS": st.one_of(
                        st.fixed_dictionaries({"identities": _dns_names}),
                        st.fixed_dictionaries({"serviceAccounts": _accounts}),
                    )
                },
                optional={"networks": networks},
            ),
        ),
    }
)
policy = st.fixed_dictionaries(
    {
        "targetRef": st.sampled_from(
            [
                *({"group": GROUP, "kind": "Server", "name": name} for name in ("s0", "s1")),
                *({"group": GROUP, "kind": "HTTPRoute", "name": name} for name in ("r0", "r1")),
                {"group": GATEWAY, "kind": "HTTPRoute", "name": "r0"},
                {"group": GATEWAY, "kind": "GRPCRoute", "name": "r2"},
                {"kind": "Namespace", "name": "a"},
                {"kind": "ServiceAccount", "name": "x"},
            ]
        ),
        "requiredAuthenticationRefs": st.lists(
            st.sampled_from(
                [
                    *({"group": GROUP, "kind": "MeshTLSAuthentication", "name": name} for name in ("m0", "m1")),
                    *({"group": GROUP, "kind": "NetworkAuthentication", "name": name} for name in ("w0", "w1")),
                    {"kind": "ServiceAccount", "name": "x"},
                    {"kind": "ServiceAccount", "name": "y", "namespace": "b"},
                ]
            ),
            max_size=2,
        ),
    }
)
mesh = st.one_of(
    st.fixed_dictionaries({"identities": names}),
    st.fixed_dictionaries(
        {
            "identityRefs": st.lists(
                st.sampled_from(
                    [
                        {"kind": "ServiceAccount", "name": "x"},
                        {"kind": "Namespace", "name": "b"},
                        {"kind": "Namespace", "name": "a"},
                    ]
                ),
                min_size=1,
                max_size=2,
            )
        }
    ),
)
_REGEX = "RegularExpression"
path = st.one_of(
    st.fixed_dictionaries(
        {
            "value": st.sampled_from(["/", "/a", "/a:b", "/@me", "/a/", "/caf%c3%a9", "/a;b"]),
            "type": st.sampled_from(["Exact", "PathPrefix"]),
        }
    ),
    st.sampled_from(["/a.*", "/(a|b)", "/[a-z]+/b", "/@.*", ".*", "/", "//", "/.*0", "/[^/]+"]).map(
        lambda value: {"type": _REGEX, "value": value}
    ),
)
header = st.sampled_from(
    [
        {"name": "k", "value": "v"},
        {"name": "K", "value": "v,w"},
        {"name": "k", "value": "v|w", "type": _REGEX},
        {"name": "k", "value": ".*", "type": _REGEX},
        {"name": "k", "value": ".+", "type": _REGEX},
        {"name": "x-other", "value": "1"},
        {"name": "x-other", "value": "2"},
        {"name": "k", "value": "v.*w", "type": _REGEX},
        {"name": "User-Agent", "value": "v"},
    ]
)
query = st.sampled_from(
    [
        {"name": "k", "value": "v"},
        {"name": "K", "value": "v"},
        {"name": "k", "value": "v|w", "type": _REGEX},
        {"name": "k", "value": ".+", "type": _REGEX},
        {"name": "other", "value": "1"},
        {"name": "k", "value": "é"},
        {"name": "k", "value": "a=b"},
        {"name": "k", "value": "v w"},
        {"name": "k", "value": "v+w"},
        {"name": "k", "value": ""},
        {"name": "k", "value": ".*", "type": _REGEX},
        {"name": "k", "value": "\ufffd"},
    ]
)
_METHODS = st.sampled_from(["GET", "POST", "HEAD"])
http_match = _spec(
    path=path,
    method=_METHODS,
    headers=st.lists(header, min_size=1, max_size=2, unique_by=lambda one: one["name"].lower()),
    queryParams=st.lists(query, min_size=1, max_size=2, unique_by=lambda one: one["name"]),
)
grpc_match = _spec(
    method=st.sampled_from([{"service": "a"}, {"method": "b"}, {"service": "a", "method": "b"}]),
    headers=st.just([{"name": "k", "value": "v"}]),
)


def _route(match: st.SearchStrategy[Manifest]) -> st.SearchStrategy[Manifest]:
    parents = st.lists(st.sampled_from(["s0", "s1"]), min_size=1, max_size=2, unique=True).map(
        lambda chosen: [{"group": GROUP, "kind": "Server", "name": name} for name in chosen]
    )
    hosts = st.lists(st.sampled_from(["h", "*.h", "a.h", "b.a.h"]), min_size=1, max_size=2, unique=True)
    rules = st.lists(_spec(matches=st.lists(match, min_size=1, max_size=2)), min_size=1, max_size=2)
    return st.fixed_dictionaries({"parentRefs": parents, "rules": rules}, optional={"hostnames": hosts})


_KINDS: list[tuple[str, str, str, st.SearchStrategy[Manifest]]] = [
    (f"{GROUP}/v1beta3", "Server", "s0", server),
    (f"{GROUP}/v1beta3", "Server", "s1", server),
    (f"{GROUP}/v1beta1", "ServerAuthorization", "a0", server_authorization),
    *((f"{GROUP}/v1alpha1", "AuthorizationPolicy", f"p{n}", policy) for n in range(3)),
    *((f"{GROUP}/v1alpha1", "MeshTLSAuthentication", f"m{n}", mesh) for n in range(2)),
    *(
        (f"{GROUP}/v1alpha1", "NetworkAuthentication", f"w{n}", st.fixed_dictionaries({"networks": networks}))
        for n in range(2)
    ),
    (f"{GROUP}/v1beta3", "HTTPRoute", "r0", _route(http_match)),
    (f"{GATEWAY}/v1", "HTTPRoute", "r0", _route(http_match)),
    (f"{GROUP}/v1beta2", "HTTPRoute", "r1", _route(http_match)),
    (f"{GATEWAY}/v1", "GRPCRoute", "r2", _route(grpc_match)),
]


@st.composite
def linkerd(draw: st.DrawFn) -> list[Manifest]:
    """Draw Linkerd resources. Most sets have a Server, because other resources need one."""
    found: list[Manifest] = []
    for version, kind, name, spec in _KINDS:
        wanted = 9 if name == "s0" else 1 if kind == "GRPCRoute" else 5
        if draw(st.integers(0, 9)) < wanted:
            made = draw(resource(version, kind, name, spec))
            made["metadata"]["namespace"] = "a"
            found.append(made)
    return found
