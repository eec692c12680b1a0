"""Generated AuthPolicies on one Gateway and two routes, and requests to them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.worlds.kuadrant_oracle import Call, Manifest

GROUP = "gateway.networking.k8s.io"
HOSTS = ["toys.com", "a.toys.com", "b.toys.com", "x.a.toys.com", "*.toys.com", "*.a.toys.com", "eviltoys.com", "*"]
ROUTE_HOSTS: list[list[str]] = [
    [],
    ["*.toys.com"],
    ["*.toys.com", "toys.com"],
    ["a.toys.com", "*.a.toys.com"],
    ["b.toys.com"],
]
STAMPS = ["2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"]
KEYS = ["KEY1", "KEY2", "KEY3"]

METADATA: Manifest = {"namespace": "n"}

GATEWAY: Manifest = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Gateway",
    "metadata": {**METADATA, "name": "g"},
    "spec": {"gatewayClassName": "any", "listeners": [{"name": "all", "port": 80, "protocol": "HTTP"}]},
}
SECRETS: list[Manifest] = [
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**METADATA, "name": "one", "labels": {"group": "friends", "tier": "gold"}},
        "stringData": {"api_key": "KEY1"},
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**METADATA, "name": "two", "labels": {"group": "friends"}, "annotations": {"user": "jane"}},
        "data": {"api_key": "S0VZMg=="},
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**METADATA, "name": "three", "labels": {"group": "others"}},
        "stringData": {"api_key": "KEY3"},
    },
]


def route(name: str) -> st.SearchStrategy[Manifest]:
    return st.sampled_from(ROUTE_HOSTS).map(
        lambda hosts: {
            "apiVersion": f"{GROUP}/v1",
            "kind": "HTTPRoute",
            "metadata": {**METADATA, "name": name},
            "spec": {
                **({"hostnames": hosts} if hosts else {}),
                "parentRefs": [{"name": "g"}],
                "rules": [{"backendRefs": [{"name": "s", "port": 80}]}],
            },
        }
    )


def _sometimes(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=fields)


# Conditions

_VALUES: dict[str, list[str]] = {
    "auth.identity.sub": ["jane", "", "joe"],
    "auth.identity.groups": ["staff", '["staff","ops"]', "[]", "ops"],
    "auth.identity.groups.0": ["staff", ""],
    "auth.identity.groups.#": ["2", "1", "0", ""],
    "auth.identity.level": ["3", "2.5", ""],
    "auth.identity.admin": ["true", "false", ""],
    "auth.identity.anonymous": ["true", ""],
    "auth.identity.nothing": ["", "null"],
    "auth.identity.metadata.labels.tier": ["gold", ""],
    "auth.identity.metadata.annotations.user": ["jane", ""],
    "auth.identity.metadata.name": ["one", "two"],
    "auth.identity.realm.roles": ["staff"],
    "request.method": ["GET", "POST"],
    "request.host": ["a.toys.com", "A.toys.com:8080"],
    "request.path": ["/a", "/a?api_key=KEY1", "/"],
    "request.url_path": ["/a", "/"],
    "request.headers.x-a": ["1", ""],
    "context.request.http.method": ["GET"],
    "context.request.http.headers.x-a": ["1"],
}
_EXPRESSIONS = ["^a", "s", "[0-9]", "^$", "jane|joe", "/a", "^(true|3)$", "gold"]


@st.composite
def _pattern(draw: st.DrawFn) -> Manifest:
    selector = draw(st.sampled_from(sorted(_VALUES)))
    operator = draw(st.sampled_from(["eq", "neq", "incl", "excl", "matches"]))
    value = draw(st.sampled_from(_EXPRESSIONS if operator == "matches" else _VALUES[selector]))
    return {"selector": selector, "operator": operator, "value": value}


_predicates = st.sampled_from(
    ["request.method == 'GET'", "request.path == '/a'", "auth.identity.sub == 'jane'", "auth.identity.admin == 'no'"]
).map(lambda text: {"predicate": text})
_leaves = st.one_of(_pattern(), _pattern(), _pattern(), _predicates, st.just({"patternRef": "named"}))
_condition = st.recursive(
    _leaves,
    lambda inner: st.tuples(st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=2)).map(
        lambda drawn: {drawn[0]: drawn[1]}
    ),
    max_leaves=3,
)
_conditions = st.lists(_condition, min_size=1, max_size=2)

# Schemes

_credentials = st.sampled_from(
    [
        {"in": "authorization_header", "keySelector": "APIKEY"},
        {"in": "custom_header", "keySelector": "X-Key"},
        {"in": "query", "keySelector": "api_key"},
        {"in": "cookie", "keySelector": "KEY"},
    ]
)
_methods: st.SearchStrategy[Manifest] = st.one_of(
    st.just({"anonymous": {}}),
    st.just({"oidc": {"endpoint": "https://idp.example"}}),
    st.tuples(st.sampled_from(["friends", "others"]), _credentials).map(
        lambda drawn: {"apiKey": {"labelSelectors": {"group": drawn[0]}}, "credentials": drawn[1]}
    ),
)
_guards = _sometimes({"when": _conditions, "priority": st.integers(0, 2)})


def _entries(of: st.SearchStrategy[Manifest], most: int) -> st.SearchStrategy[list[Manifest]]:
    """Draw named entries, some of them with conditions."""
    return st.lists(st.tuples(of, st.one_of(st.just({}), _guards)), min_size=1, max_size=most).map(
        lambda drawn: [{"name": f"e{place}", **body, **guard} for place, (body, guard) in enumerate(drawn)]
    )


_rules = _conditions.map(lambda rules: {"json": {"rules": rules}})
_codes = st.sampled_from([302, 404, 503]).map(lambda code: {"code": code})
_scheme = st.fixed_dictionaries(
    {"patterns": st.lists(_pattern(), min_size=1, max_size=2).map(lambda patterns: {"named": patterns})},
    optional={
        "when": _conditions,
        "identity": _entries(_methods, 3),
        "authorization": _entries(_rules, 2),
        "denyWith": _sometimes({"unauthenticated": _codes, "unauthorized": _codes}),
    },
)

# Policies

_rule = _sometimes(
    {
        "hosts": st.lists(st.sampled_from(HOSTS), min_size=1, max_size=2, unique=True),
        "methods": st.lists(st.sampled_from(["GET", "POST", "*"]), min_size=1, max_size=2, unique=True),
        "paths": st.lists(st.sampled_from(["/a", "/a*", "/b/*", "*/c", "*", "/"]), min_size=1, max_size=2, unique=True),
    }
)
_TARGETS = [("Gateway", "g"), *[("HTTPRoute", "one"), ("HTTPRoute", "two")] * 2]


@st.composite
def _policy(draw: st.DrawFn, name: str, hostnames: dict[str, list[str]]) -> Manifest:
    kind, target = draw(st.sampled_from(_TARGETS))
    metadata: Manifest = {**METADATA, "name": name}
    if draw(st.booleans()):
        metadata["creationTimestamp"] = draw(st.sampled_from(STAMPS))
    if draw(st.integers(0, 7)) == 0:
        metadata["annotations"] = {"eastgate.dev/mode": "audit"}
    spec: Manifest = {"targetRef": {"group": GROUP, "kind": kind, "name": target}}
    rules = draw(st.lists(_rule, max_size=3))
    if rules:
        spec["rules"] = rules
    own = hostnames.get(target) or ["*"]
    for rule in rules if kind == "HTTPRoute" else ():
        if "hosts" in rule and draw(st.integers(0, 9)):  # most are valid: within the hosts of the route
            rule["hosts"] = draw(st.lists(st.sampled_from(_within(own)), min_size=1, max_size=2, unique=True))
    written = [host for rule in rules for host in rule.get("hosts", [])]
    meant = own + written if not rules or any("hosts" not in rule for rule in rules) else written
    schemes = [{"hosts": hosts, **draw(_scheme)} for hosts in draw(_hosts_of_schemes(meant))]
    if schemes:
        spec["authSchemes"] = schemes
    return {"apiVersion": "apim.kuadrant.io/v1alpha1", "kind": "AuthPolicy", "metadata": metadata, "spec": spec}


@st.composite
def _hosts_of_schemes(draw: st.DrawFn, meant: list[str]) -> list[list[str]]:
    """Draw the hosts of each scheme. Usually one scheme has all hosts of the rules, and another some within them."""
    within = HOSTS if draw(st.integers(0, 9)) == 0 else _within(meant)
    some = draw(st.lists(st.sampled_from(within), max_size=2, unique=bool(draw(st.integers(0, 9)))))
    if draw(st.integers(0, 3)):
        every = list(dict.fromkeys(meant))
        closer = [host for host in some if host not in every]
        return [hosts for hosts in (closer, every) if hosts]
    return [hosts for hosts in ([some[:1], some[1:]] if draw(st.booleans()) else [some]) if hosts]


def _within(outer: list[str]) -> list[str]:
    """Return hosts that are probably within these. The oracle decides whether they are."""
    ends = tuple(one.removeprefix("*") for one in outer)
    return sorted({*outer, *(one for one in HOSTS if one.endswith(ends) and one != "toys.com" and one != "*")})


@st.composite
def clusters(draw: st.DrawFn) -> list[Manifest]:
    routes = [draw(route("one")), draw(route("two"))]
    hostnames = {one["metadata"]["name"]: one["spec"].get("hostnames", []) for one in routes}
    policies = [draw(_policy(name, hostnames)) for name in ["p", "q", "r", "s"][: draw(st.integers(1, 4))]]
    return [GATEWAY, *SECRETS, *routes, *policies]


# Requests

CLAIMS: list[Manifest] = [
    {"sub": "jane", "groups": ["staff", "ops"], "level": 3, "admin": True, "nothing": None},
    {"sub": "joe", "groups": ["ops"], "level": 2.5, "admin": False, "realm": {"roles": ["staff"]}},
    {"groups": [], "sub": ""},
    {},
]
_headers = _sometimes(
    {
        "authorization": st.sampled_from([f"APIKEY {key}" for key in KEYS] + ["apikey KEY1", "APIKEY"]),
        "x-key": st.sampled_from([*KEYS, "no"]),
        "cookie": st.sampled_from(["KEY=KEY1", "a=b; KEY=KEY2", "OTHER=KEY1"]),
        "x-a": st.sampled_from(["1", "2"]),
    }
).map(lambda headers: tuple(sorted(headers.items())))
_paths = st.sampled_from(
    ["/", "/a", "/a/", "/ab", "/b/c", "/b//c", "/x/../a", "/a?api_key=KEY1", "/b/c?x=1&api_key=KEY3"]
)
_hosts = st.sampled_from(
    [
        "toys.com",
        "a.toys.com",
        "A.toys.com:8080",
        "b.toys.com",
        "x.a.toys.com",
        "y.toys.com",
        "eviltoys.com",
        "other.org",
    ]
)
calls = st.lists(
    st.builds(
        Call,
        host=_hosts,
        method=st.sampled_from(["GET", "POST", "DELETE"]),
        path=_paths,
        sni=st.one_of(st.none(), _hosts),
        headers=_headers,
        claims=st.one_of(st.none(), st.sampled_from(CLAIMS).map(json.dumps)),
    ),
    min_size=4,
    max_size=8,
)
