"""A policy of Istio with errors leaves everything undecided that it may apply to."""

from __future__ import annotations

import json

import pytest

from eastgate import dialects
from eastgate.basics.diagnostics import Diagnostic
from eastgate.cluster import Everything, GatewayNamed, GatewaysMatching, PodsAcross, PodsMatching, Selector, Target
from eastgate.dialects.codes import UNKNOWN_VERSION
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings

_WEB = Selector.of({"app": "web"})
_ALL = Selector.of()


def targets(
    spec: object,
    *,
    namespace: str = "istio-system",
    kind: str = "AuthorizationPolicy",
    api: str = "security.istio.io/v1",
    settings: Settings | None = None,
) -> tuple[Target, ...]:
    metadata = {"name": "broken", "namespace": namespace}
    text = json.dumps({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}, indent=1)
    document = read_text("a.json", text, positioned=dialects.reads, namespace="default").documents[0]
    error = Diagnostic(UNKNOWN_VERSION, "something", document.locate("apiVersion"))
    return dialects.reject(document, [error], settings or Settings()).targets


@pytest.mark.parametrize("kind", ["AuthorizationPolicy", "RequestAuthentication", "PeerAuthentication"])
def test_in_the_root_namespace_it_applies_to_all_namespaces(kind: str) -> None:
    assert targets({}, kind=kind) == (PodsAcross(_ALL, _ALL), GatewaysMatching(None, _ALL))
    selected = {"selector": {"matchLabels": {"app": "web"}}}
    assert targets(selected, kind=kind) == (PodsAcross(_ALL, _WEB), GatewaysMatching(None, _WEB))


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("security.istio.io/v2", "AuthorizationPolicy"),
        ("security.istio.io/v1", "AuthorizationPolicies"),
        ("security.istio.oi/v1", "PeerAuthentication"),
    ],
)
def test_a_version_or_kind_that_does_not_exist_reaches_as_far(api: str, kind: str) -> None:
    assert targets({}, api=api, kind=kind) == (Everything(None),)
    assert targets({}, api=api, kind=kind, namespace="app") == (Everything("app"),)


def test_the_root_namespace_is_the_one_of_the_settings() -> None:
    settings = Settings.from_mapping({"rootNamespace": "mesh"})
    assert targets({}, namespace="mesh", settings=settings) == (PodsAcross(_ALL, _ALL), GatewaysMatching(None, _ALL))
    of_namespace = (PodsMatching("istio-system", _ALL), GatewaysMatching("istio-system", _ALL))
    assert targets({}, settings=settings) == of_namespace


def test_a_gateway_may_be_a_waypoint_and_a_class_has_many() -> None:
    gateway = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}
    assert targets({"targetRefs": [gateway]}, namespace="app") == (GatewayNamed("app", "g"), PodsAcross(_ALL, _ALL))
    assert targets({"targetRefs": [{**gateway, "kind": "GatewayClass"}]}) == (Everything(None),)
