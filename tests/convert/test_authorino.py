"""A converted AuthPolicy sends all requests to authorization that the AuthPolicy itself selects."""

from __future__ import annotations

import pytest
import yaml

from eastgate.settings import Settings
from tests.convert.conversions import Outcome, converted
from tests.convert.istio_semantics import Call, Istio, problems

WORLD = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: gateways}
spec:
  gatewayClassName: istio
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: https, port: 443, protocol: HTTPS, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: toystore, namespace: shop}
spec:
  parentRefs: [{name: edge, namespace: gateways}]
  hostnames: HOSTNAMES
  rules: [{backendRefs: [{name: toystore, port: 80}]}]
---
apiVersion: apim.kuadrant.io/v1alpha1
kind: AuthPolicy
metadata: {name: toystore, namespace: shop}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  rules: RULES
  authSchemes: [{hosts: [admin.toy.com], identity: [{name: anybody, anonymous: {}}]}]
"""


def outcome(rules: str, hostnames: str = '["*.toy.com", admin.toy.com]') -> Outcome:
    text = WORLD.replace("RULES", rules).replace("HOSTNAMES", hostnames)
    return converted(list(yaml.safe_load_all(text)), "istio", Settings())


def asked(found: Outcome, call: Call) -> bool:
    policies = [one for one in found.written if one["kind"] == "AuthorizationPolicy"]
    assert [problems(one) for one in policies] == [[]] * len(policies)
    return Istio(policies, "cluster.local").asks("gateways/edge", call) == {"authorino"}


def call(host: str, method: str = "GET", path: str = "/admin", sni: str | None = None) -> Call:
    return Call(None, 80, method, path, host, sni)


RULES = '[{hosts: ["*.toy.com"], methods: [GET], paths: [/admin]}, {hosts: [admin.toy.com], methods: [DELETE]}]'


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (call("www.toy.com"), True),
        (call("WWW.Toy.com"), True),
        (call("www.toy.com:80"), True),
        (call("admin.toy.com:9999"), True),  # Istio routes it with any port
        (call("toy.com"), False),
        (call("eviltoy.com"), False),
        (call("www.toy.com", method="POST"), False),
        (call("www.toy.com", path="/"), False),
        (call("www.toy.com", method="DELETE", path="/"), False),
        (call("admin.toy.com", method="DELETE", path="/"), True),
        (call("admin.toy.com:443", method="DELETE", path="/x"), True),
        (call("elsewhere.example", sni="www.toy.com"), True),
        (call("elsewhere.example", sni="www.toy.com", path="/"), False),
        (call("elsewhere.example"), False),
    ],
)
def test_what_is_sent_to_authorization(request_: Call, expected: bool) -> None:
    assert asked(outcome(RULES), request_) is expected


def test_without_rules_all_hosts_of_the_route_are_sent() -> None:
    found = outcome("[]")
    assert asked(found, call("www.toy.com", path="/anything"))
    assert not asked(found, call("www.example"))


def test_where_a_route_takes_every_host_all_of_them_are_asked_about() -> None:
    found = outcome('[{hosts: ["*.toy.com"]}]', hostnames="[]")
    assert asked(found, call("www.toy.com:9999"))
    assert "EG7204" in found.losses


def test_a_dot_behind_a_host_leads_round_nothing() -> None:
    found = outcome("[{hosts: [admin.toy.com]}]", hostnames="[]")
    assert asked(found, call("admin.toy.com."))
    assert asked(found, call("admin.toy.com.:9999"))
    assert not asked(found, call("www.toy.com."))


def test_a_rule_without_hosts_on_a_route_without_hostnames_asks_about_everything() -> None:
    found = outcome("[{}]", hostnames="[]")
    assert asked(found, call("any.example", path="/"))
