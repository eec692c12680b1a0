"""Removal of credentials from a request after several policies each accepted one."""

from __future__ import annotations

import json
from io import BytesIO
from threading import Lock

import pytest

from eastgate import Authority, Settings
from eastgate.authority.reading import read_manifests
from eastgate.cluster.ends import ANONYMOUS, Gateway
from eastgate.control.authorizer.checks import ProxyCheck
from eastgate.control.authorizer.deciding import LiveAuthorizer
from tests.attacks.auth_policies import api_keys, auth_policy, request_authentication, secret
from tests.attacks.tokens import claims
from tests.control.authorizer.worlds import Services
from tests.differential.world import Manifest
from tests.reading.jwt.mint import token

GOOD, KEY = token(claims()), "GOOD-key-1"
GATEWAY: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "gw", "namespace": "a"},
    "spec": {"gatewayClassName": "c", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
ROUTE: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "r", "namespace": "a"},
    "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [{"name": "app", "port": 80}]}]},
}
POLICIES = [
    request_authentication(fromCookies=["jwt"]),
    auth_policy("Gateway:gw", {"*": {"identity": [api_keys(**{"in": "cookie", "keySelector": "KEY"})]}}),
    secret("good", KEY),
]


@pytest.mark.parametrize(
    ("sent", "cookie"),
    [
        ([f"a=b; jwt={GOOD}; KEY={KEY}; c=d"], "a=b; c=d"),
        ([f"a=b; jwt={GOOD}; c=d", f"e=f; KEY={KEY}"], "a=b; c=d; e=f"),
        ([f"KEY={KEY}; jwt={GOOD}; KEY={KEY}"], None),
        ([f"a=b; KEY={KEY}"], "a=b"),
    ],
)
def test_cookies_of_two_policies_are_both_taken_off(sent: list[str], cookie: str | None) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [GATEWAY, ROUTE, *POLICIES]})
    manifests = read_manifests(["-"], Settings().enforced(), stdin=BytesIO(text.encode()))
    authorizer = LiveAuthorizer(Authority(manifests), Lock(), Services())
    check = ProxyCheck(ANONYMOUS, "GET", "/", "a", {"cookie": sent}, http_protocol="HTTP/1.1", scheme="http")
    answer = authorizer.decide(check, Gateway("a", "gw"))
    assert answer.allowed, answer.record
    assert dict(answer.upstream_headers).get("cookie") == cookie
    assert ("cookie" in answer.upstream_removed) is (cookie is None)
