"""Generated Gateways, routes, AuthPolicies (`kuadrant.io/v1`) on all of them and on their sections, and requests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.worlds.kuadrant_paths_oracle import NEWEST, ROUTE_KINDS, Manifest, is_accepted, key_of, rule_names
from tests.worlds.kuadrant_requests_oracle import AUTHORINO_NAMESPACE, Call

GROUP = "gateway.networking.k8s.io"
STAMPS = ["2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z", "2026-01-01T00:00:00Z"]
HOSTS = ["api.toys.com", "api.toys.com", "www.toys.com", "toys.com", "cars.org"]
KEYS = ["KEY1", "KEY2", "KEY3", "KEY4"]
CONTROLLER = "istio.io/gateway-controller"


def _sometimes(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Manifest]:
    return st.fixed_dictionaries({}, optional=fields)


def _secret(name: str, namespace: str, key: str, **labels: str) -> Manifest:
    managed = {"authorino.kuadrant.io/managed-by": "authorino", **labels}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace, "name": name, "labels": managed},
        "stringData": {"api_key": key},
    }


SECRETS = [
    _secret("first", AUTHORINO_NAMESPACE, "KEY1", group="friends", tier="gold"),
    _secret("second", AUTHORINO_NAMESPACE, "KEY2", group="friends"),
    _secret("third", AUTHORINO_NAMESPACE, "KEY3", group="others"),
    _secret("fourth", "app", "KEY4", group="friends", tier="gold"),
]

# Gateways and routes

_LISTENERS: list[list[Manifest]] = [
    [{"name": "web", "port": 80}],
    [{"name": "web", "port": 80, "hostname": "*.toys.com"}, {"name": "all", "port": 80}],
    [{"name": "web", "port": 80}, {"name": "alt", "port": 8080}],
    [
        {"name": "web", "port": 80, "hostname": "*.toys.com"},
        {"name": "api", "port": 80, "hostname": "api.toys.com"},
        {"name": "alt", "port": 8080, "hostname": "toys.com"},
    ],
]


@st.composite
def _gateway(draw: st.DrawFn, namespace: str, name: str) -> Manifest:
    origins = st.sampled_from(["All", "All", "All", "Same"])
    listeners = [
        {**listener, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": draw(origins)}}}
        for listener in draw(st.sampled_from(_LISTENERS))
    ]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gateway",
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": STAMPS[0]},
        "spec": {"gatewayClassName": "istio", "listeners": listeners},
    }


_matches = _sometimes(
    {
        "path": st.sampled_from(
            [
                {"type": "PathPrefix", "value": "/"},
                {"type": "PathPrefix", "value": "/a"},
                {"type": "Exact", "value": "/a"},
                {"type": "PathPrefix", "value": "/b"},
            ]
        ),
        "method": st.sampled_from(["GET", "POST"]),
        "headers": st.just([{"name": "x-route", "value": "1"}]),
    }
)
_calls = st.sampled_from(
    [
        {},
        {"method": {"service": "shop.Toys"}},
        {"method": {"service": "shop.Toys", "method": "List"}},
        {"method": {"method": "Buy"}},
    ]
)
_HOSTNAMES: list[list[str]] = [
    [],
    [],
    [],
    [],
    ["*.toys.com"],
    ["api.toys.com", "toys.com"],
    ["www.toys.com"],
    ["cars.org"],
]


@st.composite
def _route(draw: st.DrawFn, kind: str, namespace: str, name: str, parents: list[Manifest]) -> Manifest:
    matches = _matches if kind == "HTTPRoute" else _calls
    rules = []
    for position in range(draw(st.integers(1, 3))):
        rule: Manifest = {"backendRefs": [{"name": "s", "port": 80}]}
        if draw(st.booleans()):
            rule["name"] = ["first", "second", "third"][position]
        written = draw(st.lists(matches, max_size=2)) if draw(st.booleans()) else []
        if written:
            rule["matches"] = written
        rules.append(rule)
    references = []
    for parent in draw(st.lists(st.sampled_from(parents), min_size=1, max_size=2)):
        reference: Manifest = {"namespace": parent["metadata"]["namespace"], "name": parent["metadata"]["name"]}
        if draw(st.booleans()):
            reference["sectionName"] = draw(st.sampled_from(parent["spec"]["listeners"]))["name"]
        if reference not in references:
            references.append(reference)
    if len({(held["namespace"], held["name"]) for held in references}) < len(references):
        references = [held for held in references if "sectionName" in held]  # all of one Gateway need a section
    hostnames = draw(st.sampled_from(_HOSTNAMES)) if kind == "HTTPRoute" else []
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": draw(st.sampled_from(STAMPS))},
        "spec": {**({"hostnames": hostnames} if hostnames else {}), "parentRefs": references, "rules": rules},
    }


# Auth schemes

_WHEN = [
    "request.method == 'GET'",
    "request.method != 'GET'",
    "request.url_path.startsWith('/a')",
    "request.path == '/a'",
    "request.host == 'api.toys.com'",
    "'x-a' in request.headers",
    "!('x-a' in request.headers)",
    "request.headers['x-a'] == '1'",
]
_predicates = st.sampled_from(_WHEN).map(lambda text: {"predicate": text})
_patterns = st.sampled_from(
    [
        {"selector": selector, "operator": operator, "value": value}
        for selector, operator, value in (
            ("request.method", "eq", "GET"),
            ("request.method", "neq", "GET"),
            ("request.headers.x-a", "eq", "1"),
            ("request.headers.x-a", "neq", "1"),
            ("request.url_path", "matches", "^/a"),
            ("auth.identity.metadata.labels.tier", "eq", "gold"),
            ("auth.identity.metadata.labels.tier", "neq", "gold"),
            ("auth.identity.anonymous", "eq", "true"),
            ("auth.identity.sub", "eq", "jane"),
        )
    ]
)
_requests = st.sampled_from(
    [
        {"selector": "request.method", "operator": "eq", "value": "GET"},
        {"selector": "request.headers.x-a", "operator": "eq", "value": "1"},
        {"selector": "request.url_path", "operator": "matches", "value": "^/a"},
    ]
)
_references = st.sampled_from(["set", "set", "other"]).map(lambda name: {"patternRef": name})
_leaves = st.one_of(_patterns, _patterns, _predicates, _references)
_conditions = st.lists(
    st.one_of(_leaves, _leaves, st.lists(_leaves, min_size=1, max_size=2).map(lambda parts: {"any": parts})),
    min_size=1,
    max_size=2,
)
_guards = _sometimes({"when": st.lists(st.one_of(_requests, _predicates), min_size=1, max_size=1)})
_credentials = st.sampled_from(
    [
        {"customHeader": {"name": "X-Key"}},
        {"customHeader": {"name": "X-Key"}},
        {"authorizationHeader": {"prefix": "APIKEY"}},
        {"queryString": {"name": "key"}},
    ]
)


@st.composite
def _api_key(draw: st.DrawFn) -> Manifest:
    api_key: Manifest = {"selector": {"matchLabels": {"group": draw(st.sampled_from(["friends", "others"]))}}}
    if draw(st.booleans()):
        api_key["allNamespaces"] = draw(st.booleans())
    return {"apiKey": api_key, "credentials": draw(_credentials)}


@st.composite
def _entry(draw: st.DrawFn, body: st.SearchStrategy[Manifest]) -> Manifest:
    guard = draw(_guards) if draw(st.integers(0, 3)) == 0 else {}
    priority = {"priority": draw(st.integers(1, 2))} if draw(st.integers(0, 3)) == 0 else {}
    return {**draw(body), **guard, **priority}


def _named(entries: st.SearchStrategy[Any], names: list[str]) -> st.SearchStrategy[Manifest]:
    return st.dictionaries(st.sampled_from(names), entries, min_size=1, max_size=2)


_methods = st.one_of(
    _api_key(), _api_key(), st.just({"anonymous": {}}), st.just({"jwt": {"issuerUrl": "https://issuer.example"}})
)
_authentication = _named(_entry(_methods), ["keys", "guests"])
_denials = st.sampled_from([302, 404, 429]).map(lambda code: {"code": code})


def _matching(conditions: st.SearchStrategy[list[Manifest]]) -> st.SearchStrategy[Manifest]:
    return _entry(conditions.map(lambda patterns: {"patternMatching": {"patterns": patterns}}))


_headers = st.sampled_from(["a", "b"]).map(lambda value: {"plain": {"value": value}})
_response = st.one_of(
    st.fixed_dictionaries({"unauthenticated": _denials}, optional={"unauthorized": _denials}),
    st.fixed_dictionaries({"unauthorized": _denials}),
    st.fixed_dictionaries(
        {"success": st.fixed_dictionaries({"headers": _named(_headers, ["x-one", "x-two"])})},
        optional={"unauthorized": _denials},
    ),
)
_callbacks = _named(st.just({"http": {"url": "http://callback.example", "method": "POST"}}), ["log"])
_filters = _named(_headers, ["one", "two"])
_metadata = _named(st.just({"http": {"url": "http://metadata.example", "method": "GET"}}), ["who"])


@st.composite
def _block(draw: st.DrawFn, *, whole: bool) -> Manifest:
    """Draw the content of a policy. A `whole` one has all kinds of rules, also those that call other servers."""
    parts: dict[str, st.SearchStrategy[Any]] = {
        "authentication": _authentication,
        "authorization": _named(_matching(_conditions), ["first", "second"]),
        "response": _response,
    }
    if whole:
        success = _sometimes({"headers": _named(_headers, ["x-one"]), "filters": _filters}).filter(bool)
        parts |= {"callbacks": _callbacks, "metadata": _metadata}
        parts["response"] = st.one_of(_response, st.fixed_dictionaries({"success": success}))
    chosen = draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=3, unique=True))
    block: Manifest = {"rules": {part: draw(parts[part]) for part in chosen}}
    if draw(st.integers(0, 2)) == 0:
        block["when"] = draw(st.lists(_predicates, min_size=1, max_size=2))
    if draw(st.booleans()):
        block["patterns"] = draw(
            _named(st.lists(_patterns, min_size=1, max_size=2).map(lambda held: {"allOf": held}), ["set", "other"])
        )
    return block


# Policies


@st.composite
def _target(draw: st.DrawFn, objects: list[Manifest]) -> tuple[str, Manifest]:
    """Draw the namespace of a policy, and its target: an object or a section, which sometimes does not exist."""
    target = draw(st.sampled_from(objects))
    reference: Manifest = {"group": GROUP, "kind": target["kind"], "name": target["metadata"]["name"]}
    is_gateway = target["kind"] == "Gateway"
    sections = [held["name"] for held in target["spec"]["listeners"]] if is_gateway else rule_names(target)
    if draw(st.booleans()):
        reference["sectionName"] = draw(st.sampled_from(sections))
    if draw(st.integers(0, 14)) == 0:
        reference[draw(st.sampled_from(["name", "sectionName"]))] = "missing"
    return target["metadata"]["namespace"], reference


@st.composite
def _policy(draw: st.DrawFn, name: str, objects: list[Manifest], *, whole: bool) -> Manifest:
    namespace, reference = draw(_target(objects))
    metadata = {"namespace": namespace, "name": name}
    if draw(st.integers(0, 5)):
        metadata["creationTimestamp"] = draw(st.sampled_from(STAMPS))
    if draw(st.integers(0, 9)) == 0:
        metadata["deletionTimestamp"] = STAMPS[-1]
    block = draw(_block(whole=whole))
    form = draw(st.sampled_from(["bare", "defaults", "defaults", "overrides", "overrides"]))
    if form != "bare":
        strategy = draw(st.sampled_from([{}, {"strategy": "atomic"}, {"strategy": "merge"}, {"strategy": "merge"}]))
        block = {form: {**strategy, **block}}
    spec = {"targetRef": reference, **block}
    return {"apiVersion": "kuadrant.io/v1", "kind": "AuthPolicy", "metadata": metadata, "spec": spec}


@st.composite
def clusters(draw: st.DrawFn, *, whole: bool = False) -> list[Manifest]:
    """Draw two Gateways for HTTPRoutes, one for GRPCRoutes, their routes, and policies on some of them."""
    gateways = [draw(_gateway("infra", "gw")), draw(_gateway("app", "edge"))]
    calls = draw(_gateway("infra", "rpc"))
    routes = [
        draw(_route("HTTPRoute", "app", "toys", gateways)),
        draw(_route("HTTPRoute", "infra", "cars", gateways[:1])),
        draw(_route("GRPCRoute", "app", "calls", [calls])),
    ]
    objects = [*gateways[:1] * 2, *routes, *routes[:2], gateways[1], calls]
    count = draw(st.integers(1, 6))
    policies = [draw(_policy(name, objects, whole=whole)) for name in ["p", "q", "r", "s", "t", "u"][:count]]
    return [*SECRETS, *gateways, calls, *routes, *policies]


# The fields that an API server and a Gateway controller write


def with_status(manifests: list[Manifest]) -> list[Manifest]:
    """Return manifests with creation times, and with the status of Gateway API."""
    gateways = {key_of(manifest): manifest for manifest in manifests if manifest["kind"] == "Gateway"}
    return [_with_status(manifest, gateways) for manifest in manifests]


def _with_status(manifest: Manifest, gateways: dict[str, Manifest]) -> Manifest:
    if manifest["kind"] == "Gateway":
        programmed = _conditions_of("Programmed", "True")
        listeners = [
            {"name": listener["name"], "attachedRoutes": 0, "supportedKinds": [], **programmed}
            for listener in manifest["spec"]["listeners"]
        ]
        return {**manifest, "status": {"listeners": listeners}}
    if manifest["kind"] == "AuthPolicy":
        return {**manifest, "metadata": {"creationTimestamp": NEWEST, **manifest["metadata"]}}
    if manifest["kind"] not in ROUTE_KINDS:
        return manifest
    parents = []
    for reference in manifest["spec"]["parentRefs"]:
        gateway = gateways[f"{reference['namespace']}/{reference['name']}"]
        accepted = "True" if is_accepted(gateway, manifest, reference) else "False"
        entry = {"parentRef": reference, "controllerName": CONTROLLER, **_conditions_of("Accepted", accepted)}
        parents.append(entry)
    return {**manifest, "status": {"parents": parents}}


def _conditions_of(kind: str, status: str) -> Manifest:
    written = {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": STAMPS[0]}
    return {"conditions": [written]}


# Requests

_request_headers = st.fixed_dictionaries(
    {"x-route": st.sampled_from(["1", "2"])},  # the header that routes match is always known
    optional={
        "authorization": st.sampled_from([f"APIKEY {key}" for key in KEYS]),
        "x-key": st.sampled_from([*KEYS, "no"]),
        "x-a": st.sampled_from(["1", "2"]),
    },
).map(lambda headers: tuple(sorted(headers.items())))
_hosts = st.sampled_from(HOSTS)
_subjects = st.sampled_from([None, None, "jane", "joe"])
_http_calls = st.builds(
    Call,
    gateway=st.sampled_from(["infra/gw", "infra/gw", "app/edge"]),
    port=st.sampled_from([80, 80, 80, 8080]),
    host=_hosts,
    method=st.sampled_from(["GET", "POST"]),
    path=st.sampled_from(["/", "/a", "/ab", "/a/x", "/b", "/a?key=KEY1", "/b?x=1&key=KEY3"]),
    headers=_request_headers,
    subject=_subjects,
)
_grpc_calls = st.builds(
    Call,
    gateway=st.just("infra/rpc"),
    port=st.sampled_from([80, 80, 8080]),
    host=_hosts,
    method=st.just("POST"),
    path=st.sampled_from(["/shop.Toys/List", "/shop.Toys/Buy", "/shop.Cars/Buy"]),
    headers=_request_headers,
    subject=_subjects,
)
calls = st.lists(st.one_of(_http_calls, _http_calls, _http_calls, _grpc_calls), min_size=4, max_size=8)
