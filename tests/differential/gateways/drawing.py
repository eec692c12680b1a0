"""Drawn gateways, routes and policies."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from eastgate import Settings
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from tests.differential.gateways.auth_policies import policies_of_today
from tests.differential.gateways.world import HTTPS, PASSED, PLAIN, SETTINGS
from tests.differential.world import Manifest
from tests.worlds import access_generate, kuadrant_generate
from tests.worlds.test_generated_kuadrant import accepted

__all__ = ["HOSTNAMES", "chosen_settings", "worlds"]

API = "gateway.networking.k8s.io/v1"
AGENTIC = access_generate.SEED.partition("/")[0]
HOSTNAMES = ["a.example", "b.example", "*.example", "toys.com", "*.toys.com", "a.toys.com"]
_NAMES = ["*.example", "a.example", "*.toys.com"]
_LISTENER_HOSTNAMES: list[list[str | None]] = [[None], [None], [None], [None], *([None, name] for name in _NAMES)]
_LISTENER_HOSTNAMES += [["*.example"], ["a.example", "*.example"], ["*.toys.com", "*.example"]]
_sometimes = access_generate.optional


def _often(rarely: int, usual: st.SearchStrategy[Any], rare: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, rarely).flatmap(lambda number: usual if number else rare)


# Gateways

_selectors = st.sampled_from(
    [
        {"matchLabels": {"team": "a"}},
        {"matchLabels": {"team": "b"}},
        {"matchLabels": {"team": "b", "shared": "no"}},
        {"matchLabels": {"kubernetes.io/metadata.name": "m"}},
        {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]},
        {"matchExpressions": [{"key": "gone", "operator": "DoesNotExist"}], "matchLabels": {"shared": "yes"}},
        {"matchExpressions": [{"key": "gone", "operator": "Exists"}]},
        {},
    ]
)
_namespaces = st.sampled_from(["Same", "All", "All"]).map(lambda origin: {"from": origin}) | _selectors.map(
    lambda selector: {"from": "Selector", "selector": selector}
)


@st.composite
def _listeners(draw: st.DrawFn) -> list[Manifest]:
    """Draw listeners for every port. Some ports have two, with different hostnames."""
    listeners: list[Manifest] = []
    for port in (*PLAIN, *HTTPS, *PASSED):
        for number, hostname in enumerate(draw(st.sampled_from(_LISTENER_HOSTNAMES))):
            listener: Manifest = {"name": f"l{port}-{number}", "port": port, "protocol": "HTTP"}
            if port in HTTPS:
                listener |= {"protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "elsewhere"}]}}
            if port in PASSED:
                listener |= {"protocol": "TLS", "tls": {"mode": "Passthrough"}}
            if hostname is not None:
                listener["hostname"] = hostname
            listener["allowedRoutes"] = {"namespaces": draw(_namespaces)}
            if draw(st.integers(0, 9)) == 0:
                listener["allowedRoutes"]["kinds"] = [{"kind": draw(st.sampled_from(["HTTPRoute", "GRPCRoute"]))}]
            listeners.append(listener)
    return listeners


# Routes

_values = st.sampled_from(["v", "w", "1"])
_value_match = st.fixed_dictionaries(
    {"name": st.sampled_from(["k", "x-a"]), "value": _values | st.just("[vw]+")},
    optional={"type": st.sampled_from(["Exact", "RegularExpression"])},
)
_path_match = st.sampled_from(
    [
        *(("PathPrefix", path) for path in ("/", "/mcp", "/a", "/a/", "/b/c", "/%C3%A9")),
        *(("Exact", path) for path in ("/mcp", "/a", "/", "/b/c")),
        *(("RegularExpression", path) for path in ("/a.*", "/(mcp|b)/[cx]")),
    ]
).map(lambda drawn: {"type": drawn[0], "value": drawn[1]})
_value_matches = st.lists(_value_match, min_size=1, max_size=2, unique_by=lambda one: str(one["name"]))
_match = _sometimes(path=_path_match) | _sometimes(
    path=_path_match, method=st.sampled_from(["GET", "POST"]), headers=_value_matches, queryParams=_value_matches
)
_new_path = st.sampled_from(["/new", "/", "/new/deep", "/n/"])
_modifier = st.fixed_dictionaries(
    {"set": st.just([{"name": "x-set", "value": "50%"}])},
    optional={"add": st.just([{"name": "k", "value": "added"}]), "remove": st.just(["x-a"])},
)


@st.composite
def _filters(draw: st.DrawFn, by_prefix: bool) -> list[Manifest]:
    def path() -> Manifest:
        if by_prefix and draw(st.booleans()):
            return {"type": "ReplacePrefixMatch", "replacePrefixMatch": draw(_new_path)}
        return {"type": "ReplaceFullPath", "replaceFullPath": draw(_new_path)}

    filters: list[Manifest] = []
    kind = draw(st.sampled_from(["", "", "headers", "rewrite", "both", "redirect", "odd"]))
    if kind in ("headers", "both"):
        filters.append({"type": "RequestHeaderModifier", "requestHeaderModifier": draw(_modifier)})
    if kind in ("rewrite", "both"):
        rewrite: Manifest = {"path": path()}
        if draw(st.booleans()):
            rewrite["hostname"] = "rewritten.example"
        filters.append({"type": "URLRewrite", "urlRewrite": rewrite})
    if kind == "redirect":
        redirect: Manifest = {"statusCode": draw(st.sampled_from([301, 302]))}
        redirect |= draw(st.sampled_from([{"hostname": "elsewhere.example"}, {"scheme": "https"}, {"port": 8888}, {}]))
        if draw(st.booleans()):
            redirect["path"] = path()
        filters.append({"type": "RequestRedirect", "requestRedirect": redirect})
    if kind == "odd" and draw(st.integers(0, 2)) == 0:
        mirror = {"requestMirror": {"backendRef": {"name": "s1", "port": 80}}}
        extension = {"extensionRef": {"group": "example.com", "kind": "Odd", "name": "odd"}}
        filters.append(
            draw(st.sampled_from([{"type": "RequestMirror", **mirror}, {"type": "ExtensionRef", **extension}]))
        )
    return filters


_DRAWN_BACKENDS = [
    *[("XBackend", "b1"), ("XBackend", "b2")] * 4,
    *[("Service", "s1"), ("Service", "s2")] * 2,
    *(("XBackend", "b3"), ("Service", "s3"), ("XBackend", "gone"), ("Service", "gone")),
]


@st.composite
def _backend_ref(draw: st.DrawFn, namespace: str) -> Manifest:
    kind, name = draw(st.sampled_from(_DRAWN_BACKENDS))
    ref: Manifest = {"name": name, "weight": draw(st.sampled_from([1, 1, 1, 1, 1, 2, 3, 0]))}
    home = "m" if name in ("b3", "s3") else "n"
    if home != namespace:
        ref["namespace"] = home
    return ref | ({"group": AGENTIC, "kind": kind} if kind == "XBackend" else {"port": 80})


@st.composite
def _http_rule(draw: st.DrawFn, namespace: str) -> Manifest:
    matches = draw(_often(4, st.lists(_match, min_size=1, max_size=2), st.just([])))
    paths = [match.get("path", {"type": "PathPrefix"})["type"] for match in matches]
    filters = draw(_filters(paths == ["PathPrefix"]))
    rule: Manifest = {"matches": matches} if matches else {}
    if not any(each["type"] == "RequestRedirect" for each in filters):
        rule["backendRefs"] = draw(st.lists(_backend_ref(namespace), min_size=1, max_size=2))
    return rule | ({"filters": filters} if filters else {})


_call = st.fixed_dictionaries(
    {}, optional={"service": st.sampled_from(["a.B", "c"]), "method": st.sampled_from(["Get", "Put"])}
).filter(bool)


@st.composite
def _grpc_rule(draw: st.DrawFn, namespace: str) -> Manifest:
    calls = draw(st.lists(_call, max_size=2))
    rule: Manifest = {"matches": [{"method": call} for call in calls]} if calls else {}
    return rule | {"backendRefs": draw(st.lists(_backend_ref(namespace), min_size=1, max_size=2))}


@st.composite
def _route(draw: st.DrawFn, kind: str, name: str, namespace: str) -> Manifest:
    rule = _http_rule(namespace) if kind == "HTTPRoute" else _grpc_rule(namespace)
    parent: Manifest = {"name": "g"} if namespace == "n" else {"name": "g", "namespace": "n"}
    if draw(st.integers(0, 5)) == 0:
        parent["port"] = draw(st.sampled_from([*PLAIN, *HTTPS]))
    spec: Manifest = {"parentRefs": [parent], "rules": draw(st.lists(rule, min_size=1, max_size=3))}
    if name == "one" and draw(st.integers(0, 3)):  # most requests should have a route
        spec["rules"].append({"backendRefs": [{"group": AGENTIC, "kind": "XBackend", "name": "b1"}]})
    elif draw(st.integers(0, 2)):
        spec["hostnames"] = draw(st.lists(st.sampled_from(HOSTNAMES), min_size=1, max_size=2, unique=True))
    metadata: Manifest = {"name": name, "namespace": namespace}
    if draw(st.booleans()):
        metadata["creationTimestamp"] = draw(st.sampled_from(kuadrant_generate.STAMPS))
    return {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec}


@st.composite
def _tls_route(draw: st.DrawFn, name: str, namespace: str) -> Manifest:
    parent: Manifest = {"name": "g"} if namespace == "n" else {"name": "g", "namespace": "n"}
    refs = draw(st.lists(_backend_ref(namespace), min_size=1, max_size=2))
    hostnames = draw(st.lists(st.sampled_from(HOSTNAMES), min_size=1, max_size=2, unique=True))
    spec = {"parentRefs": [parent], "hostnames": hostnames, "rules": [{"backendRefs": refs}]}
    return {"apiVersion": API, "kind": "TLSRoute", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


@st.composite
def _grants(draw: st.DrawFn) -> list[Manifest]:
    """Draw grants for some of the references between namespaces."""
    grants: list[Manifest] = []
    for origin, home in (("n", "m"), ("m", "n")):
        if draw(st.integers(0, 2)):
            to = [{"group": "", "kind": "Service"}, {"group": AGENTIC, "kind": "XBackend"}]
            kinds = ["HTTPRoute", "TLSRoute"][: draw(st.integers(1, 2))]
            origins = [{"group": API.partition("/")[0], "kind": kind, "namespace": origin} for kind in kinds]
            spec = {"from": origins, "to": to[: draw(st.integers(1, 2))]}
            metadata = {"name": "grant", "namespace": home}
            grants.append({"apiVersion": API, "kind": "ReferenceGrant", "metadata": metadata, "spec": spec})
    return grants


# Policies

_EXPRESSIONS = [
    "request.mcp.tool_name == 'add'",
    "request.method == 'POST'",
    "request.headers['k'] == 'v'",
    "request.path.startsWith('/mcp')",
]


def _ask_the_second_by_http(value: Any) -> None:
    """Change every reference to the authorizer at port 2 to HTTP."""
    if isinstance(value, dict):
        if value.get("backendRef", {}).get("port") == 2 and value.get("protocol") == "GRPC":
            del value["grpc"]
            value |= {"protocol": "HTTP", "http": {"allowedHeaders": ["x-answer-2"]}}
        for inner in value.values():
            _ask_the_second_by_http(inner)
    elif isinstance(value, list):
        for inner in value:
            _ask_the_second_by_http(inner)


@st.composite
def _access_policies(draw: st.DrawFn) -> list[Manifest]:
    names = [f"p{number}" for number in range(draw(st.integers(2, 6)))]
    policies = [copy.deepcopy(draw(access_generate.seed(name) | access_generate.today(name))) for name in names]
    for policy in policies:
        _ask_the_second_by_http(policy)
        is_today = policy["apiVersion"] == access_generate.TODAY
        for rule in policy["spec"].get("rules", ()):
            inline = rule.get("authorization", {})
            if is_today and inline.get("type") == "Inline" and draw(st.integers(0, 4)) == 0:
                match = {"name": draw(st.sampled_from(["k", "x-a"])), "value": draw(_values)}
                inline["headers"] = [match | draw(st.sampled_from([{}, {"type": "RegularExpression"}]))]
            elif is_today and draw(st.integers(0, 7)) == 0:
                expression = draw(st.sampled_from(_EXPRESSIONS))
                rule["authorization"] = {"type": "CEL", "cel": {"expression": expression}}
    return policies


@st.composite
def _auth_policies(draw: st.DrawFn, routes: list[Manifest]) -> list[Manifest]:
    hostnames = {one["metadata"]["name"]: one["spec"].get("hostnames", []) for one in routes}
    names = ["pa", "qa", "ra"][: draw(st.integers(1, 3))]
    return [draw(kuadrant_generate._policy(name, hostnames)) for name in names]


@st.composite
def worlds(draw: st.DrawFn) -> list[Manifest]:
    """Draw a Gateway with its routes, and policies of one or both dialects."""
    listeners = draw(_listeners())
    spec = {"gatewayClassName": "any", "listeners": listeners}
    gateway = {"apiVersion": API, "kind": "Gateway", "metadata": {"name": "g", "namespace": "n"}, "spec": spec}
    routes = [draw(_route("HTTPRoute", "one", "n")), draw(_route("HTTPRoute", "two", "n"))]
    if draw(st.integers(0, 2)) == 0:
        routes.append(draw(_route("HTTPRoute", "three", "m")))
    if draw(st.integers(0, 2)) == 0:
        routes.append(draw(_route("GRPCRoute", "calls", "n")))
    streams = [draw(_tls_route("stream", "n"))]
    if draw(st.integers(0, 2)) == 0:
        streams.append(draw(_tls_route("other-stream", "m")))
    which = draw(st.sampled_from(["access", "access", "access", "auth", "both", "today", "today", "all"]))
    today = draw(policies_of_today(listeners, routes)) if which in ("today", "all") else []
    manifests = [gateway, *routes, *streams, *draw(_grants())]
    if which in ("access", "both", "all"):
        manifests += draw(_access_policies())
    if which in ("auth", "both"):
        manifests += draw(_auth_policies(routes))
    return [*accepted(manifests), *today]


@st.composite
def chosen_settings(draw: st.DrawFn) -> Settings:
    access = AccessSettings(draw(st.sampled_from(UnlistedCaller)))
    return replace(SETTINGS, sections=(access, KuadrantSettings(authorino_namespace="n")))
