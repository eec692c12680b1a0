"""The policies of the benchmark in the language of each authorizer, and requests with the expected answers.

Each scheme has a host. Every request is a GET of `/check`, the only path that Authorino's HTTP interface answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AUDIENCE",
    "CACHED",
    "NAMESPACE",
    "SCHEMES",
    "Credentials",
    "Probe",
    "auth_configs",
    "manifests",
    "probes",
    "rego_modules",
    "secrets",
]

Manifest = dict[str, Any]

NAMESPACE = "bench"
CACHED = "cached"  # JWT again, with Authorino's cache of identities
SCHEMES = ("allow", "JWT, warm", CACHED, "JWT, cold", "API key", "CEL", "Rego")
_API_KEY_COUNT = 100
AUDIENCE, _GROUP, _TEAM = "bench", "staff", "blue"
_LABELS = {"app": "bench"}
_CEL = "request.method == 'GET' && request.headers['x-team'] == 'blue'"
_REGO = """\
allow { input.context.request.http.method == "GET"; input.context.request.http.headers["x-team"] == "blue" }
"""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of callers: tokens of members of the group, and `outsider`, a token of another group."""

    issuer: str
    jwks: Manifest
    tokens: tuple[str, ...]
    outsider: str

    @property
    def api_key(self) -> str:
        return _api_key(_API_KEY_COUNT - 1)


@dataclass(frozen=True, slots=True)
class Probe:
    """Requests to one host that all get the same status."""

    scheme: str
    status: int
    requests: tuple[bytes, ...]


def probes(credentials: Credentials) -> dict[str, tuple[Probe, Probe | None]]:
    """Return for each scheme the requests that are allowed, and those that are denied."""
    tokens, outsider = credentials.tokens, credentials.outsider
    team, other = ("x-team", _TEAM), ("x-team", "red")
    bearer = [("authorization", f"Bearer {token}") for token in tokens]
    strange = ("authorization", f"Bearer {outsider}")
    return {
        "allow": (_allowed("allow", [()]), None),
        "JWT, warm": (_allowed("jwt", [(bearer[0],)]), _denied("jwt", 403, strange)),
        CACHED: (_allowed(CACHED, [(bearer[0],)]), _denied(CACHED, 403, strange)),
        "JWT, cold": (_allowed("jwt", [(each,) for each in bearer[1:]]), _denied("jwt", 401)),
        "API key": (
            _allowed("key", [(("authorization", f"APIKEY {credentials.api_key}"),)]),
            _denied("key", 401, ("authorization", "APIKEY nobody")),
        ),
        "CEL": (_allowed("cel", [(team,)]), _denied("cel", 403, other)),
        "Rego": (_allowed("rego", [(team,)]), _denied("rego", 403, other)),
    }  # fmt: skip


def _allowed(scheme: str, variants: Iterable[tuple[tuple[str, str], ...]]) -> Probe:
    return Probe(scheme, 200, tuple(_request(scheme, headers) for headers in variants))


def _denied(scheme: str, status: int, *headers: tuple[str, str]) -> Probe:
    return Probe(scheme, status, (_request(scheme, headers),))


def _request(scheme: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [
        "GET /check HTTP/1.1",
        f"host: {scheme}.example",
        "user-agent: bench/1.0",
        "accept: */*",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def _api_key(number: int) -> str:
    return f"EXAMPLE-KEY-{number:04}-OF-THE-BENCHMARK"


def secrets() -> list[Manifest]:
    """Return the Secrets with API keys."""
    labels = {**_LABELS, "authorino.kuadrant.io/managed-by": "authorino"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"key-{number}", "namespace": NAMESPACE, "labels": labels},
            "stringData": {"api_key": _api_key(number)},
        }
        for number in range(_API_KEY_COUNT)
    ]


# Eastgate


def manifests(credentials: Credentials) -> str:
    """Return Eastgate's manifests: a Gateway, and a route with an AuthPolicy for each scheme."""
    gateway = {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "edge", "namespace": NAMESPACE},
        "spec": {"gatewayClassName": "bench", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }
    objects = [gateway, *secrets()]
    for scheme, spec in _schemes(credentials).items():
        host = f"{scheme}.example"
        route = {
            "parentRefs": [{"name": "edge"}],
            "hostnames": [host],
            "rules": [{"backendRefs": [{"name": "app", "port": 80}]}],
        }
        target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": scheme}
        policy = {"targetRef": target, "authSchemes": [{"hosts": [host], **spec}]}
        named = {"metadata": {"name": scheme, "namespace": NAMESPACE}}
        objects += [
            {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", **named, "spec": route},
            {"apiVersion": "apim.kuadrant.io/v1alpha1", "kind": "AuthPolicy", **named, "spec": policy},
        ]
    return "---\n".join(json.dumps(each) + "\n" for each in objects)


def _schemes(credentials: Credentials) -> dict[str, Manifest]:
    anonymous = {"identity": [{"name": "anyone", "anonymous": {}}]}
    jwt = {
        "identity": [{"name": "users", "oidc": {"endpoint": credentials.issuer}}],
        "authorization": [{"name": "group", "json": {"rules": [_pattern()]}}],
    }
    key = {
        "name": "friends",
        "apiKey": {"labelSelectors": _LABELS},
        "credentials": {"in": "authorization_header", "keySelector": "APIKEY"},
    }
    return {
        "allow": anonymous,
        "jwt": jwt,
        CACHED: jwt,
        "key": {"identity": [key]},
        "cel": {**anonymous, "authorization": [{"name": "team", "json": {"rules": [{"predicate": _CEL}]}}]},
        "rego": {**anonymous, "authorization": [{"name": "team", "opa": {"inlineRego": _REGO}}]},
    }


def _pattern() -> Manifest:
    return {"selector": "auth.identity.group", "operator": "eq", "value": _GROUP}


# Authorino


def auth_configs(credentials: Credentials) -> dict[str, Manifest]:
    """Return the specs of AuthConfigs, one for each scheme."""
    anonymous: Manifest = {"authentication": {"anyone": {"anonymous": {}}}}
    users: Manifest = {"jwt": {"issuerUrl": credentials.issuer}}
    group = {"authorization": {"group": {"patternMatching": {"patterns": [_pattern()]}}}}
    cache = {"key": {"selector": "context.request.http.headers.authorization"}, "ttl": 3600}
    friends = {
        "apiKey": {"selector": {"matchLabels": _LABELS}},
        "credentials": {"authorizationHeader": {"prefix": "APIKEY"}},
    }
    specs: dict[str, Manifest] = {
        "allow": anonymous,
        "jwt": {"authentication": {"users": users}, **group},
        CACHED: {"authentication": {"users": {**users, "cache": cache}}, **group},
        "key": {"authentication": {"friends": friends}},
        "cel": {**anonymous, "authorization": {"team": {"patternMatching": {"patterns": [{"predicate": _CEL}]}}}},
        "rego": {**anonymous, "authorization": {"team": {"opa": {"rego": _REGO}}}},
    }
    return {scheme: {"hosts": [f"{scheme}.example"], **spec} for scheme, spec in specs.items()}


# OPA's Envoy plugin


def rego_modules(credentials: Credentials) -> str:
    """Return the Rego module that decides for all hosts except the one of CEL."""
    keys = json.dumps(json.dumps(credentials.jwks))
    owners = json.dumps({_api_key(number): f"key-{number}" for number in range(_API_KEY_COUNT)})
    return f"""\
package bench

import rego.v1

http := input.attributes.request.http

default allow := {{"allowed": false, "http_status": 403}}

allow if http.host == "allow.example"

allow := verdict if {{
    http.host in {{"jwt.example", "{CACHED}.example"}}
    verdict := judged
}}

default judged := {{"allowed": false, "http_status": 401}}

judged := {{"allowed": allowed, "http_status": 403}} if {{
    [valid, _, claims] := io.jwt.decode_verify(trim_prefix(http.headers.authorization, "Bearer "), {{
        "cert": {keys},
        "iss": {json.dumps(credentials.issuer)},
        "aud": "{AUDIENCE}",
    }})
    valid
    allowed := object.get(claims, "group", "") == {json.dumps(_GROUP)}
}}

allow := {{"allowed": known, "http_status": 401}} if {{
    http.host == "key.example"
    known := object.get(owners, trim_prefix(http.headers.authorization, "APIKEY "), "") != ""
}}

owners := {owners}

allow if {{
    http.host == "rego.example"
    http.method == "GET"
    http.headers["x-team"] == "{_TEAM}"
}}
"""
