"""A hostname with a variable is an unknown host: answers about hosts that may equal it tell so."""

from __future__ import annotations

import json

import pytest

from eastgate.reading.manifests.placeholders import could_be, names_of_variables
from tests.cluster.unread.conftest import Run

ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: NAME, namespace: shop}
spec:
  parentRefs: [{name: front}]
  hostnames: ['HOST']
  rules: [{backendRefs: [{name: cart, port: 80}]}]
---
"""
GATEWAY = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: side, namespace: shop}
spec: {gatewayClassName: x, listeners: [{name: web, port: PORT, protocol: PROTOCOL, hostname: '*.${DOMAIN}'TLS}]}
---
"""
DENIED = """\
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: closed, namespace: shop}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: NAME}
  rules: {authorization: {nobody: {opa: {rego: "allow = false"}}}}
---
"""


def _route(name: str, host: str) -> str:
    return ROUTE.replace("NAME", name).replace("HOST", host)


OPEN = _route("open", "api.${DOMAIN}") + _route("known", "known.example.com") + DENIED.replace("NAME", "open")
AT = ("check", "--from", "anonymous", "--method", "GET", "--to")


@pytest.mark.parametrize(
    ("host", "status", "first"),
    [
        ("known.example.com", 0, "ALLOW "),
        ("other.example.com", 0, "ALLOW "),  # another route takes all hosts
        ("apis.example.com", 0, "ALLOW "),
        ("api.example.com", 3, "ALLOW (depends on DOMAIN) "),
        ("API.example.com:80", 3, "ALLOW (depends on DOMAIN) "),
        (None, 3, "DENY (depends on DOMAIN) "),
    ],
)
def test_only_hosts_that_it_may_be_depend_on_it(host: str | None, status: int, first: str, run: Run) -> None:
    result = run(OPEN, *AT, "gateway:shop/front", *(["--host", host] if host else []))
    assert (result.exit_code, result.stdout.startswith(first)) == (status, True), result.stdout
    line = "not known: the host `api.${DOMAIN}` of HTTPRoute shop/open (more.yaml:6): depends on DOMAIN"
    assert (line in result.stdout) is (status == 3)


def test_what_is_allowed_for_a_host_that_a_route_may_take_away_depends_on_it(run: Run) -> None:
    text = _route("open", "${SUB}.example.com") + _route("known", "*.example.com") + DENIED.replace("NAME", "open")
    result = run(text, *AT, "gateway:shop/front", "--host", "x.example.com")
    assert (result.exit_code, result.stdout.startswith("ALLOW (depends on SUB) ")) == (3, True)
    assert run(text, *AT, "gateway:shop/front", "--host", "x.example.org").exit_code == 0


def test_the_route_itself_is_known(run: Run) -> None:
    result = run(OPEN, *AT, "route:shop/open")
    assert (result.exit_code, "AuthPolicy/shop/closed" in result.stdout) == (1, True)
    assert run(OPEN, *AT, "route:shop/known").exit_code == 0
    assert "EG5026" not in result.stderr


@pytest.mark.parametrize(("protocol", "tls"), [("HTTP", ""), ("HTTPS", ", tls: {certificateRefs: [{name: c}]}")])
def test_the_host_of_a_listener_may_be_any(protocol: str, tls: str, run: Run) -> None:
    gateway = GATEWAY.replace("PORT", "80").replace("PROTOCOL", protocol).replace("TLS", tls)
    text = gateway + _route("known", "known.example.com").replace("front", "side")
    result = run(text, *AT, "gateway:shop/side", "--host", "known.example.com")
    assert (result.exit_code, result.stdout.startswith("DENY (depends on DOMAIN) ")) == (3, True)
    other = run(text, *AT, "gateway:shop/side", "--host", "localhost")
    assert other.exit_code == (1 if protocol == "HTTP" else 3)  # the handshake chooses, by an unknown name


def test_other_questions_do_without_it(run: Run) -> None:
    result = run(OPEN, "check", "--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "80")
    assert (result.exit_code, "DOMAIN" in result.stdout) == (0, False)


def test_without_doubts_there_is_no_answer(run: Run) -> None:
    assert run(OPEN, *AT, "gateway:shop/front", "--host", "known.example.com", "--strict").exit_code == 2


def test_lint_names_it_and_nothing_is_missing(run: Run) -> None:
    result = run(OPEN, "lint", "-o", "json", "--select", "EG1,EG5")
    data = json.loads(result.stdout)
    assert [finding["code"] for finding in data["findings"]] == ["EG1052"]
    assert "leftOut" not in data


def test_two_variables_are_both_named(run: Run) -> None:
    result = run(_route("open", "${SUB}.${DOMAIN}"), *AT, "gateway:shop/front", "--host", "api.example.com")
    assert result.stdout.startswith("ALLOW (depends on SUB and DOMAIN) ")


@pytest.mark.parametrize(
    ("text", "pattern", "can"),
    [
        ("api.example.com", "api.${DOMAIN}", True),
        ("api.", "api.${DOMAIN}", True),
        ("ap.example.com", "api.${DOMAIN}", False),
        ("a.b.c", "${A:=x}.b.${C}", True),
        ("a.b.c", "${A}.x.${C}", False),
        ("a.b", "${A}.b.${C}", False),
        ("ab", "ab", True),
        ("abc", "ab", False),
        ("x.y", "*.{{ .Values.domain }}", True),
        ("a", "${A}a${B}a", False),
    ],
)
def test_a_variable_may_be_any_text(text: str, pattern: str, can: bool) -> None:
    assert could_be(text, pattern) is can


def test_names_of_variables() -> None:
    assert names_of_variables("${A:=x}.{{ .Values.b }}.${A,,}.${#C}") == ["A", "Values.b", "C"]
