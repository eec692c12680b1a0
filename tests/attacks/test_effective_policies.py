"""Effective policies of Kuadrant's AuthPolicies: no form of a request leads to weaker rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from tests.attacks.auth_policies import gateway_route, secret
from tests.attacks.placements import HOST, PLACEMENTS, Attacked
from tests.differential.asking import HTTP_1_1, HTTP_2, Caller, Http
from tests.differential.bench import Bench
from tests.differential.world import Manifest

_GROUP = "gateway.networking.k8s.io"
_KEY = (("x-key", "GOOD"),)
_SECRET = secret("good", "GOOD")
_KEYS: Manifest = {
    "authentication": {
        "keys": {
            "apiKey": {"selector": {"matchLabels": {"attacks": "good"}}, "allNamespaces": True},
            "credentials": {"customHeader": {"name": "x-key"}},
        }
    }
}
_REGO = 'allow { input.context.request.http.path != "/users/@me" }'
_DENY_ALL: Manifest = {"authorization": {"nobody": {"opa": {"rego": "allow = false"}}}}


def _patterns(*patterns: Manifest) -> Manifest:
    return {"rules": {"authorization": {"me": {"patternMatching": {"patterns": list(patterns)}}}}}


def _policy(target: str, spec: Manifest, name: str = "auth", **metadata: str) -> Manifest:
    """Return an AuthPolicy on `Kind/name` or `Kind/name/section`."""
    kind, name_of_target, *section = target.split("/")
    ref = {"group": _GROUP, "kind": kind, "name": name_of_target, **({"sectionName": section[0]} if section else {})}
    metadata = {"name": name, "namespace": "a", **metadata}
    return {
        "apiVersion": "kuadrant.io/v1",
        "kind": "AuthPolicy",
        "metadata": metadata,
        "spec": {"targetRef": ref, **spec},
    }


def _route(name: str, *prefixes: str, hostnames: Sequence[str] = ()) -> Manifest:
    """Return a route with a rule for each path. The path is the name of the rule."""
    route = gateway_route(name, hostnames=hostnames)
    route["spec"]["rules"] = [
        {
            "name": prefix.strip("/"),
            "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
            "backendRefs": [{"name": HOST, "port": 80}],
        }
        for prefix in prefixes
    ]
    return route


def _statuses(attacked: Attacked, requests: Sequence[Http]) -> list[int]:
    """Return the statuses of requests, and check that only requests with 200 arrive."""
    verdicts = attacked.verdicts(requests)
    assert all((verdict.arrived is not None) is (verdict.status == 200) for verdict in verdicts), verdicts
    return [verdict.status for verdict in verdicts]


def test_an_encoded_slash_leads_past_no_rule(attacked_gateway: Attacked) -> None:
    routes = [_SECRET, _route("paths", "/open", "/shut")]
    slashes = [Http("GET", f"/open/..{slash}shut", headers=_KEY) for slash in ("%2f", "%2F", "%5c", "%5C")]
    attacked_gateway.enforce([*routes, _policy("HTTPRoute/paths/shut", {"rules": _DENY_ALL})])
    assert set(_statuses(attacked_gateway, slashes)) == {400}
    shut = [{"predicate": "request.url_path.startsWith('/shut')"}]
    attacked_gateway.enforce([*routes, _policy("Gateway/gw", {"when": shut, "rules": _DENY_ALL})])
    assert set(_statuses(attacked_gateway, slashes)) == {400}
    attacked_gateway.enforce([*routes, _policy("Gateway/gw", {"rules": _KEYS})])  # the same for both rules
    assert set(_statuses(attacked_gateway, slashes)) == {200}
    assert set(_statuses(attacked_gateway, [Http("GET", each.target) for each in slashes])) == {401}


def test_a_rule_is_guarded_wherever_it_moves_and_whatever_it_is_called(attacked_gateway: Attacked) -> None:
    """While the gateway runs, rules change their order and names, and policies are added and removed."""
    asked = [Http("GET", path, headers=headers) for path in ("/x", "/y") for headers in ((), _KEY)]
    keys = {"rules": _KEYS}

    def statuses(*objects: Manifest) -> list[int]:
        attacked_gateway.enforce([_SECRET, *objects])
        return _statuses(attacked_gateway, asked)

    there, back, nameless = _route("paths", "/x", "/y"), _route("paths", "/y", "/x"), _route("paths", "/x", "/y")
    swapped = _route("paths", "/x", "/y")
    for rule, name in zip(swapped["spec"]["rules"], ("y", "x"), strict=True):
        rule["name"] = name
    for rule in nameless["spec"]["rules"]:
        del rule["name"]
    of_y = _policy("HTTPRoute/paths/y", keys)
    open_all, only_x, only_y, both = [200] * 4, [401, 200, 200, 200], [200, 200, 401, 200], [401, 200, 401, 200]
    assert statuses(there) == open_all
    assert statuses(there, of_y) == only_y
    assert statuses(back, of_y) == only_y
    assert statuses(swapped, of_y) == only_x
    assert statuses(nameless, _policy("HTTPRoute/paths/rule-1", keys)) == only_x
    assert statuses(nameless, _policy("HTTPRoute/paths/rule-2", keys)) == only_y
    assert statuses(there, _policy("HTTPRoute/paths", keys)) == both
    assert statuses(there, _policy("HTTPRoute/paths/y", {"rules": _DENY_ALL})) == [200, 200, 403, 403]
    assert statuses(there) == open_all


def test_the_effective_policy_is_that_of_the_hierarchy(attacked_gateway: Attacked) -> None:
    route = _route("paths", "/x")
    old, new = {"creationTimestamp": "2026-01-01T00:30:00+01:00"}, {"creationTimestamp": "2026-01-01T00:00:00.5Z"}
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    anybody: Manifest = {"rules": {"authentication": {"anybody": {"anonymous": {}}}}}
    keys, deny_all, never = {"rules": _KEYS}, {"rules": _DENY_ALL}, [{"predicate": "false"}]

    def statuses(**policies: tuple[str, Manifest, Mapping[str, str]]) -> list[int]:
        written = [_policy(target, spec, name, **metadata) for name, (target, spec, metadata) in policies.items()]
        attacked_gateway.enforce([_SECRET, route, *written])
        return _statuses(attacked_gateway, [Http("GET", "/x"), Http("GET", "/x", headers=_KEY)])

    gateway, target = "Gateway/gw", "HTTPRoute/paths"
    assert statuses(p=(gateway, deny_all, {}), q=(target, keys, {})) == [401, 200]
    assert statuses(p=(gateway, {"overrides": deny_all}, {}), q=(target, anybody, {})) == [403, 403]
    assert statuses(p=(gateway, {"overrides": deny_all}, deleted), q=(target, keys, {})) == [401, 200]
    assert statuses(p=(gateway, {"overrides": keys}, {}), q=("HTTPRoute/paths/x", anybody, {})) == [401, 200]
    assert statuses(p=(target, keys, new), q=(target, anybody, old)) == [401, 200]
    assert statuses(p=(target, anybody, old), q=(target, deny_all, new)) == [403, 403]
    merged = {"strategy": "merge", **deny_all}
    assert statuses(p=(gateway, {"defaults": merged}, {}), q=(target, keys, {})) == [401, 403]
    skipped = {"strategy": "merge", "when": never, **deny_all}  # its condition applies to all rules
    assert statuses(p=(gateway, {"defaults": skipped}, {}), q=(target, keys, {})) == [200, 200]
    asked = {"when": [{"predicate": "true"}], **keys}
    assert statuses(p=(gateway, {"defaults": skipped}, {}), q=(target, asked, {})) == [401, 403]


def test_a_listener_has_its_own_effective_policy(bench: Bench) -> None:
    encrypted, plain = (next(each for each in PLACEMENTS if each.name == name).at(bench) for name in _GATEWAYS)

    def statuses(*policies: Manifest) -> tuple[list[int], list[int]]:
        plain.enforce([_SECRET, *policies])
        asked = [Http(), Http(headers=(*_KEY, ("x-forwarded-proto", "https"), ("x-forwarded-port", "8443")))]
        return _statuses(plain, asked), _statuses(encrypted, asked)

    keys, deny_all = {"rules": _KEYS}, {"rules": _DENY_ALL}
    assert statuses(_policy("Gateway/gw/https", keys)) == ([200, 200], [401, 200])
    assert statuses(_policy("Gateway/gw/http", keys)) == ([401, 200], [200, 200])
    assert statuses(_policy("Gateway/gw/http", deny_all), _policy("Gateway/gw", keys, "all")) == (
        [403, 403],
        [401, 200],
    )
    overriding = _policy("Gateway/gw/http", {"overrides": deny_all})
    assert statuses(overriding, _policy("HTTPRoute/all", keys, "all")) == ([403, 403], [401, 200])
    by_scheme = {"when": [{"predicate": "request.scheme == 'http'"}], **deny_all}
    assert statuses(_policy("Gateway/gw", by_scheme)) == ([403, 403], [200, 200])


def test_a_condition_without_an_answer_skips_nothing(attacked_gateway: Attacked) -> None:
    def statuses(predicate: str, *requests: Http) -> list[int]:
        attacked_gateway.enforce([_policy("Gateway/gw", {"when": [{"predicate": predicate}], "rules": _DENY_ALL})])
        return _statuses(attacked_gateway, requests)

    values = ((), (("k", "v"),), (("K", "v"),), (("k", " v "),))
    assert set(statuses("request.headers['k'] == 'v'", *(Http(headers=headers) for headers in values))) == {403}
    assert statuses("request.headers['k'] == 'v'", Http(headers=(("k", "w"),))) == [200]
    assert statuses("int(request.headers['k']) > 1", Http(headers=(("k", "x"),))) == [403]
    for predicate in (
        "requestBodyJSON('/a') == 'b'",
        "connection.mtls",
        "request.headers['k'] == 'v' && connection.mtls",
    ):
        assert statuses(predicate, Http("POST", headers=(("k", "v"),))) == [403], predicate
    spelled = ("/shut", "/%73hut", "//shut", "/./shut", "/a/../shut", "/shut?x", "/a/%2e%2e/shut", "/shut/")
    asked = [Http("GET", path, version=version) for path in spelled for version in (HTTP_1_1, HTTP_2)]
    assert set(statuses("request.url_path.startsWith('/shut')", *asked)) <= {400, 403}
    methods = [Http(method, headers=(("x-http-method-override", "OPTIONS"),)) for method in ("GET", "HEAD", "PROPFIND")]
    assert set(statuses("request.method != 'OPTIONS'", *methods)) == {403}


def test_no_spelling_of_a_path_goes_round_an_expression(attacked_gateway: Attacked) -> None:
    """An application decodes the whole path, but an expression compares it as text."""
    predicates = {
        "CEL": {"when": [{"predicate": "request.path == '/users/@me'"}], "rules": _DENY_ALL},
        "a prefix": {"when": [{"predicate": "request.url_path.startsWith('/users/@m')"}], "rules": _DENY_ALL},
        "a pattern": _patterns({"selector": "context.request.http.path", "operator": "neq", "value": "/users/@me"}),
        "a regular expression": _patterns({"predicate": "!request.path.matches('^/users/@me')"}),
        "a pseudo-header": _patterns({"predicate": "request.headers[':path'] != '/users/@me'"}),
        "Rego": {"rules": {"authorization": {"me": {"opa": {"rego": _REGO}}}}},
    }
    normalised = ["/users/@me", "//users/@me", "/x/../users/@me", "/users\\@me", "/%75sers/@me", "/users/@m%65"]
    respelled = ["/users/%40me", "/%75sers/%40me", "/users//%40m%65", "/users/@me%3A/../%40me", "/users/%40%6De"]
    asked = [Http("GET", path, version=version) for version in (HTTP_1_1, HTTP_2) for path in normalised + respelled]
    expected = dict.fromkeys(normalised, 403) | dict.fromkeys(respelled, 400)
    for name, spec in predicates.items():
        attacked_gateway.enforce([_policy("Gateway/gw", spec)])
        assert _statuses(attacked_gateway, asked) == [expected[each.target] for each in asked], name
        assert _statuses(attacked_gateway, [Http("GET", "/users/@you"), Http("GET", "/caf%C3%A9?a=%40")]) == [200, 200]
        others = [Http("GET", path) for path in ("/users/%40you", "/caf%c3%a9", "/a%3ab", "/a[0]", "/it%27s")]
        assert set(_statuses(attacked_gateway, others)) == {400}, name
    attacked_gateway.enforce([_policy("Gateway/gw", _patterns({"predicate": "!('referer' in request.headers)"}))])
    assert set(_statuses(attacked_gateway, asked)) == {200}


def test_headers_of_a_policy_are_never_those_of_a_client(attacked_gateway: Attacked) -> None:
    posted = [{"predicate": "request.method == 'POST'"}]
    made = {"x-user": {"plain": {"value": "ours"}}, "x-late": {"plain": {"value": "ours"}, "when": posted}}
    rules: Manifest = {"authentication": {"anybody": {"anonymous": {}}}, "response": {"success": {"headers": made}}}
    forged = tuple((name, "forged") for name in ("x-user", "x-late", "x-user"))

    def arrived(spec: Manifest) -> list[dict[str, str]]:
        attacked_gateway.enforce([_policy("Gateway/gw", spec)])
        verdicts = attacked_gateway.verdicts([Http("GET", "/", headers=forged, version=v) for v in (HTTP_1_1, HTTP_2)])
        seen = [verdict.arrived for verdict in verdicts if verdict.arrived is not None]
        return [{name: value for name, value in each.headers if name.lower() in made} for each in seen]

    assert arrived({"rules": rules}) == [{"x-user": "ours"}] * 2
    assert arrived({"when": posted, "rules": rules}) == [{}] * 2  # no authorizer is asked


def _certificates(**source: str) -> Manifest:
    selector = {"matchLabels": {"attacks": "authority"}}
    x509 = {"selector": selector, "allNamespaces": True, **({"source": source} if source else {})}
    return {"authentication": {"clients": {"x509": x509}}}


def _authority(certificate: str) -> Manifest:
    metadata = {"name": "authority", "namespace": "a", "labels": {"attacks": "authority"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"tls.crt": certificate}}


def test_a_certificate_is_that_of_the_connection_and_not_one_in_a_header(bench: Bench) -> None:
    """A policy may read the certificate from Envoy's header, which the gateway itself writes."""
    encrypted, plain = (next(each for each in PLACEMENTS if each.name == name).at(bench) for name in _GATEWAYS)
    chain = bench.run(bench.mesh.certificates.hold(_CALLER)).chain
    client, authority = chain[: chain.index(_END) + len(_END)], chain[chain.rindex(_BEGIN) :]
    url_encoded = quote(client, safe="")
    headers = {
        "x-forwarded-client-cert": (f'Cert="{url_encoded}"', f'Hash=1,Cert="{url_encoded}"', url_encoded),
        "x-eastgate-certificate": (url_encoded,),
    }
    forged = [Http(headers=((name, value),)) for name, values in headers.items() for value in values]
    for source in ({}, {"xfccHeader": "x-forwarded-client-cert"}, {"xfccHeader": "X-Forwarded-Client-Cert"}):
        encrypted.enforce([_authority(authority), _policy("Gateway/gw", {"rules": _certificates(**source)})])
        assert set(_statuses(plain, [Http(), *forged])) == {401}
        assert set(_statuses(encrypted.of(Caller(_CALLER, "127.0.0.2")), [Http(), *forged])) == {200}
        encrypted.enforce([_policy("Gateway/gw", {"rules": _certificates(**source)})])
        assert set(_statuses(encrypted.of(Caller(_CALLER, "127.0.0.2")), [Http(), *forged])) == {401}


_GATEWAYS = ("gateway over HTTPS", "gateway in plaintext")
_CALLER = "spiffe://td/ns/a/sa/x"
_BEGIN, _END = "-----BEGIN CERTIFICATE", "-----END CERTIFICATE-----\n"
