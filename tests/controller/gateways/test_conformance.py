"""The manifests of Gateway API's conformance tests get the statuses that these tests expect.

`conformance.txt` has the expectations of the Go tests, and the actual status of unsupported features.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.certificates import self_signed
from tests.controller.gateways.manifests import Statuses, documents, reasons, statuses_of, tls_secret
from tests.controller.gateways.modules import conformance

pytestmark = pytest.mark.apiserver

_INFRA = "gateway-conformance-infra"

ACCEPTED = [
    "gateway-http-listener-isolation",
    "gateway-http-listener-isolation-with-hostname-intersection",
    "grpcroute-exact-method-matching",
    "grpcroute-header-matching",
    "grpcroute-listener-hostname-matching",
    "grpcroute-named-rule",
    "grpcroute-weight",
    "httproute-303-redirect",
    "httproute-307-redirect",
    "httproute-308-redirect",
    "httproute-backend-protocol-websocket",
    "httproute-cross-namespace",
    "httproute-exact-path-matching",
    "httproute-header-matching",
    "httproute-https-listener",
    "httproute-https-listener-detect-misdirected-requests",
    "httproute-listener-hostname-matching",
    "httproute-listener-port-matching",
    "httproute-matching",
    "httproute-matching-across-routes",
    "httproute-method-matching",
    "httproute-named-rule",
    "httproute-observed-generation-bump",
    "httproute-path-match-order",
    "httproute-query-param-matching",
    "httproute-redirect-host-and-status",
    "httproute-redirect-path",
    "httproute-redirect-port",
    "httproute-redirect-port-and-scheme",
    "httproute-redirect-scheme",
    "httproute-reference-grant",
    "httproute-request-header-modifier",
    "httproute-request-header-modifier-backend",
    "httproute-request-header-modifier-backend-weights",
    "httproute-response-header-modifier",
    "httproute-rewrite-host",
    "httproute-rewrite-path",
    "httproute-service-types",
    "httproute-simple-same-namespace",
    "httproute-timeout-backend-request",
    "httproute-timeout-request",
    "httproute-weight",
    "tlsroute-hostname-intersection",
    "tlsroute-simple-same-namespace",
]
"""In these tests every parent accepts every route, with all references resolved."""


def _expected() -> dict[str, list[str]]:
    expected: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("conformance.txt").read_text().splitlines():
        if line.endswith(":"):
            lines = expected.setdefault(line[:-1], [])
        elif line.startswith(" "):
            lines.append(line)
    return expected


EXPECTED = _expected()


@pytest.fixture(scope="module")
def base() -> list[dict[str, Any]]:
    """Return the objects that the suite creates before any test."""
    chain, key = self_signed("example.org")
    secrets = [
        tls_secret(name, chain, key, namespace)
        for namespace, name in (
            (_INFRA, "tls-validity-checks-certificate"),
            (_INFRA, "tls-passthrough-checks-certificate"),
            (_INFRA, "tls-terminate-checks-certificate"),
            ("gateway-conformance-web-backend", "certificate"),
        )
    ]
    return [*_documents("base/manifests.yaml"), *secrets]


def _documents(path: str) -> list[dict[str, Any]]:
    text = (conformance() / path).read_text().replace("{GATEWAY_CLASS_NAME}", "eastgate")
    return documents(text)


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_route_is_accepted(name: str, base: list[dict[str, Any]]) -> None:
    own = _documents(f"tests/{name}.yaml")
    statuses = statuses_of([*base, *own])
    routes = [entry for entry in own if entry["kind"].endswith("Route")]
    assert routes
    for entry in routes:
        parents = statuses.routes[f"{entry['kind']}/{entry['metadata']['name']}"]
        assert [parent["parentRef"] for parent in parents] == entry["spec"]["parentRefs"]
        for parent in parents:
            assert reasons(parent["conditions"]) == {
                "Accepted": "True/Accepted",
                "ResolvedRefs": "True/ResolvedRefs",
            }


@pytest.mark.parametrize("name", EXPECTED)
def test_statuses_are_those_that_the_test_expects(name: str, base: list[dict[str, Any]]) -> None:
    statuses = statuses_of([*base, *_documents(f"tests/{name}.yaml")])
    for kind, subject, *wanted in map(str.split, EXPECTED[name]):
        actual = _actual(statuses, kind, subject)
        for term in wanted:
            key, _, value = term.partition("=")
            assert _fits(value, actual[key], key), (subject, term, actual)


def _actual(statuses: Statuses, kind: str, subject: str) -> dict[str, str]:
    if kind == "gateway":
        return statuses.gateway(subject)
    if kind == "route":
        (parent,) = statuses.routes[subject]
        return reasons(parent["conditions"])
    name, _, listener = subject.partition("/")
    (status,) = (entry for entry in statuses.gateways[name]["listeners"] if entry["name"] == listener)
    kinds = ",".join(entry["kind"] for entry in status["supportedKinds"])
    return {**reasons(status["conditions"]), "kinds": kinds, "routes": str(status["attachedRoutes"])}


def _fits(wanted: str, actual: str, key: str) -> bool:
    if key == "kinds":  # as in the Go tests, other conditions are allowed, unless none are expected
        return actual == wanted if not wanted else wanted in actual.split(",")
    return actual.startswith(wanted[:-1]) if wanted.endswith("*") else actual == wanted
