"""A path that is not in its canonical spelling is refused if an expression reads the path."""

from __future__ import annotations

from threading import Lock
from typing import Any

import pytest

from eastgate import Settings
from eastgate.authority.authority import Authority
from eastgate.authority.questions import Question
from eastgate.cluster.ends import ANONYMOUS
from eastgate.control.authorizer.checks import ProxyCheck
from eastgate.control.authorizer.deciding import LiveAuthorizer
from eastgate.reports.lint import lint
from tests.worlds.test_generated_clusters import authority_of

_GROUP = "gateway.networking.k8s.io"
_GATEWAY: dict[str, Any] = {
    "apiVersion": f"{_GROUP}/v1",
    "kind": "Gateway",
    "metadata": {"name": "gw", "namespace": "a"},
    "spec": {"gatewayClassName": "eastgate", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
_ROUTE: dict[str, Any] = {
    "apiVersion": f"{_GROUP}/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "r", "namespace": "a"},
    "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]},
}
_PATTERN = {"selector": "request.path", "operator": "neq", "value": "/users/@me"}
_ME = {"authorization": {"me": {"patternMatching": {"patterns": [_PATTERN]}}}}
_KEYS = {"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"app": "a"}}}}}}
_AUTH_CONFIG = {
    "apiVersion": "authorino.kuadrant.io/v1beta3",
    "kind": "AuthConfig",
    "metadata": {"name": "users", "namespace": "a"},
    "spec": {"hosts": ["users.example"], **_ME},
}


def _policy(name: str, target: str, spec: dict[str, Any]) -> dict[str, Any]:
    ref = {"group": _GROUP, "kind": "HTTPRoute" if target == "r" else "Gateway", "name": target}
    metadata = {"name": name, "namespace": "a"}
    return {
        "apiVersion": "kuadrant.io/v1",
        "kind": "AuthPolicy",
        "metadata": metadata,
        "spec": {"targetRef": ref, **spec},
    }


_ON_GATEWAY = _policy("outer", "gw", {"defaults": {"strategy": "merge", "rules": _ME}})
_ON_ROUTE = _policy("inner", "r", {"rules": _KEYS})
_AT_GATEWAY = [_GATEWAY, _ROUTE, _ON_GATEWAY, _ON_ROUTE]


def _authority(manifests: list[dict[str, Any]], settings: Settings | None = None) -> Authority:
    return authority_of(manifests, settings or Settings())


def test_the_reason_names_the_rule_that_looks_at_the_path_and_its_policy() -> None:
    question = Question.of("anonymous", "gateway:a/gw", method="GET", path="/users/%40me", host="h.example", headers={})
    decision = _authority(_AT_GATEWAY).decide(question)
    assert (decision.allowed, decision.status, decision.policy) == (False, 400, "AuthPolicy/a/outer")
    assert decision.reason.endswith(
        "denies it: its path is not in its canonical spelling, and authorization `me` reads the path"
    )


@pytest.mark.parametrize("target", ["gateway:a/gw", "host:users.example"])
@pytest.mark.parametrize(
    "path", ["/users/%40me", "//users/@me", "/x/../users/@me", "/users\\@me", "/%75sers/@me", "/é"]
)
@pytest.mark.parametrize("compat", [False, True])
def test_an_authorizer_refuses_whatever_is_not_canonical_as_a_proxy_hands_it_on(
    target: str, path: str, compat: bool
) -> None:
    settings = Settings.from_mapping({"authorinoCompat": compat}).enforced()
    authority = _authority([*_AT_GATEWAY, _AUTH_CONFIG], settings)
    authorizer = LiveAuthorizer(authority, Lock(), _DenyingAuthorizers())
    check = ProxyCheck(ANONYMOUS, "GET", path, "users.example", {}, to=target)
    answer = authorizer.decide(check)
    assert (answer.allowed, answer.status) == (False, 400)


class _DenyingAuthorizers:
    def ask(self, name: str, check: ProxyCheck) -> str:  # noqa: ARG002
        return "deny"


@pytest.mark.parametrize(
    ("settings", "reported"),
    [
        ({}, True),
        ({"authorinoCompat": True}, True),
        ({"dataPlane": "eastgate"}, False),
        ({"dataPlane": "eastgate", "authorinoCompat": True}, False),
    ],
)
def test_lint_reports_what_can_be_evaded_unless_our_proxies_enforce(settings: dict[str, Any], reported: bool) -> None:
    authority = _authority([*_AT_GATEWAY, _AUTH_CONFIG], Settings.from_mapping(settings))
    subjects = {name for finding in lint(authority) if finding.code.id == "EG6071" for name in finding.subjects}
    assert ({"AuthConfig/a/users", "AuthPolicy/a/outer"} <= subjects) is reported
    assert bool(subjects) is reported
