"""Effective policies of Kuadrant's AuthPolicies: no way of asking leads to rules that ask for less."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from tests.attacks.auth_policies import gateway_route, secret
from tests.attacks.placements import HOST, PLACEMENTS, Attacked
from tests.differential.asking import Caller, Http
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
_NOBODY: Manifest = {"authorization": {"nobody": {"opa": {"rego": "allow = false"}}}}


def _policy(target: str, spec: Manifest, name: str = "auth", **metadata: str) -> Manifest:
    """An AuthPolicy on `Kind/name` or `Kind/name/section`."""
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
    """A route with a rule for each path, which is named after it."""
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
    """Make requests; nothing arrives that is not answered with 200."""
    verdicts = attacked.verdicts(requests)
    assert all((verdict.arrived is not None) is (verdict.status == 200) for verdict in verdicts), verdicts
    return [verdict.status for verdict in verdicts]


def test_an_encoded_slash_leads_past_no_rule(attacked_gateway: Attacked) -> None:
    routes = [_SECRET, _route("paths", "/open", "/shut")]
    slashes = [Http("GET", f"/open/..{slash}shut", headers=_KEY) for slash in ("%2f", "%2F", "%5c", "%5C")]
    attacked_gateway.enforce([*routes, _policy("HTTPRoute/paths/shut", {"rules": _NOBODY})])
    assert set(_statuses(attacked_gateway, slashes)) == {400}
    shut = [{"predicate": "request.url_path.startsWith('/shut')"}]
    attacked_gateway.enforce([*routes, _policy("Gateway/gw", {"when": shut, "rules": _NOBODY})])
    assert set(_statuses(attacked_gateway, slashes)) == {400}
    attacked_gateway.enforce([*routes, _policy("Gateway/gw", {"rules": _KEYS})])  # which is the same for both rules
    assert set(_statuses(attacked_gateway, slashes)) == {200}
    assert set(_statuses(attacked_gateway, [Http("GET", each.target) for each in slashes])) == {401}


def _certificates(**source: str) -> Manifest:
    selector = {"matchLabels": {"attacks": "authority"}}
    x509 = {"selector": selector, "allNamespaces": True, **({"source": source} if source else {})}
    return {"authentication": {"clients": {"x509": x509}}}


def _authority(certificate: str) -> Manifest:
    metadata = {"name": "authority", "namespace": "a", "labels": {"attacks": "authority"}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"tls.crt": certificate}}


def test_a_certificate_is_that_of_the_connection_and_not_one_in_a_header(bench: Bench) -> None:
    """Where a policy looks for it in the header of Envoy, the gateway has written it there."""
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
