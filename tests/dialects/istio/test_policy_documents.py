"""AuthorizationPolicies as documents: their targets, and documents that must not crash the reader."""

from __future__ import annotations

import json

import pytest

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.reading import sort_documents
from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Everything, Gateway, GatewayNamed, GatewaysMatching, PodsAcross, PodsMatching, Selector
from eastgate.dialects.istio.model import IstioAuthorizationPolicy
from eastgate.reading.manifests import Plain, read_text
from eastgate.settings import Settings
from tests.dialects.gep3779.test_no_document_crashes import WRONG, changed, paths

LISTS: Plain = {
    "principals": ["*"],
    "requestPrincipals": ["i/s"],
    "namespaces": ["a"],
    "trustDomains": ["td"],
    "ipBlocks": ["10.0.0.0/8"],
    "remoteIpBlocks": ["10.0.0.1"],
}
MAXIMAL: Plain = {
    "apiVersion": "security.istio.io/v1",
    "kind": "AuthorizationPolicy",
    "metadata": {"name": "p", "namespace": "app", "annotations": {"istio.io/dry-run": "true"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "action": "DENY",
        "rules": [
            {
                "from": [{"source": LISTS}, {"source": {"serviceAccounts": ["a/b"]}}],
                "to": [{"operation": {"hosts": ["h"], "ports": ["80"], "methods": ["GET"], "paths": ["/{*}"]}}],
                "when": [{"key": "request.headers[x]", "values": ["a"], "notValues": ["b"]}],
            }
        ],
    },
}
CUSTOM: Plain = {
    "apiVersion": "security.istio.io/v1beta1",
    "kind": "AuthorizationPolicy",
    "metadata": {"name": "p", "namespace": "app"},
    "spec": {
        "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "g"}],
        "action": "CUSTOM",
        "provider": {"name": "ext"},
        "rules": [{"when": [{"key": "source.ip", "values": ["1.2.3.4"]}]}],
    },
}


def read(content: Plain, settings: Settings | None = None) -> tuple[object, Reporter]:
    reading = read_text("policy.json", json.dumps(content), positioned=dialects.reads, namespace="default")
    reporter = Reporter()
    (document,) = reading.documents
    return dialects.read_policy(document, settings or Settings(), reporter), reporter


def policy(spec: Plain, namespace: str = "app", settings: Settings | None = None) -> IstioAuthorizationPolicy:
    content: Plain = {**CUSTOM, "metadata": {"name": "p", "namespace": namespace}, "spec": spec}  # type: ignore[dict-item]
    read_policy, reporter = read(content, settings)
    assert isinstance(read_policy, IstioAuthorizationPolicy), reporter.errors
    return read_policy


@pytest.mark.parametrize("content", [MAXIMAL, CUSTOM], ids=["DENY", "CUSTOM"])
def test_every_wrong_value_is_a_policy_or_a_reason(content: Plain) -> None:
    assert read(content)[0] is not None
    for path in paths(content):
        if path[0] != "spec" and path[:2] != ("metadata", "annotations"):
            continue
        for wrong in WRONG:
            value, reporter = read(changed(content, path, wrong))
            assert (value is None) is bool(reporter.errors), (path, wrong)
        value, reporter = read(changed(content, path))
        assert (value is None) is bool(reporter.errors), path


# Attachment

WEB = Selector.of({"app": "web"})


def test_a_selector_means_pods_and_gateways_of_the_namespace_and_in_the_root_namespace_of_all() -> None:
    spec: Plain = {"selector": {"matchLabels": {"app": "web"}}}
    assert policy(spec).targets == (PodsMatching("app", WEB), GatewaysMatching("app", WEB))
    everywhere = (PodsAcross(Selector.of(), WEB), GatewaysMatching(None, WEB))
    assert policy(spec, "istio-system").targets == everywhere
    settings = Settings.from_mapping({"rootNamespace": "app"})
    assert policy(spec, settings=settings).targets == everywhere
    assert policy({}).targets == (PodsMatching("app", Selector.of()), GatewaysMatching("app", Selector.of()))


def test_a_policy_without_rules_or_spec_allows_nothing() -> None:
    content = {name: value for name, value in CUSTOM.items() if name != "spec"}  # type: ignore[union-attr]
    value, _ = read(content)
    assert isinstance(value, IstioAuthorizationPolicy)
    assert (value.rules, value.action) == ((), "ALLOW")


def test_an_entry_that_is_empty_is_kept_apart_from_one_that_is_absent() -> None:
    rule = policy({"rules": [{"from": [], "to": []}, {}]}).rules
    assert (rule[0].sources, rule[0].operations) == ((), ())
    assert (rule[1].sources, rule[1].operations) == (None, None)


def authority(*contents: Plain) -> Authority:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(contents)})
    reading = read_text("all.json", text, positioned=dialects.reads, namespace="default")
    settings = Settings.from_mapping({"istioDataPlane": "sidecar"})
    manifests = sort_documents(reading.documents, settings, reading.reporter)
    return Authority(manifests, settings)


def test_a_broken_policy_closes_exactly_the_workloads_that_it_selects() -> None:
    spec: Plain = {"selector": {"matchLabels": {"app": "web"}}, "rules": [{"to": [{"operation": {"ports": ["x"]}}]}]}
    broken: Plain = {**CUSTOM, "spec": spec}  # type: ignore[dict-item]
    reading = read_text("a.json", json.dumps(broken), positioned=dialects.reads, namespace="default")
    rejected = dialects.reject(reading.documents[0], [], Settings())
    assert rejected.targets == (PodsMatching("app", WEB), GatewaysMatching("app", WEB))
    unsure: Plain = {**broken, "spec": {"selector": ["x"]}}  # type: ignore[dict-item]
    reading = read_text("a.json", json.dumps(unsure), positioned=dialects.reads, namespace="default")
    assert dialects.reject(reading.documents[0], [], Settings()).targets == (Everything("app"),)


def test_gateways_are_selected_by_the_labels_of_their_pods() -> None:
    pod: Plain = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "g-1",
            "namespace": "app",
            "labels": {"gateway.networking.k8s.io/gateway-name": "g", "istio": "ingress"},
        },
        "spec": {"containers": [{"name": "c"}]},
    }
    gateways: list[Plain] = [
        {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"name": name, "namespace": "app", "labels": {"team": "a"}},
            "spec": {"gatewayClassName": "istio", "listeners": [{"name": "h", "port": 80, "protocol": "HTTP"}]},
        }
        for name in ("g", "other")
    ]
    world = authority(pod, *gateways).world
    assert all(isinstance(gateway, Gateway) for gateway in world.gateways.values())
    chosen = [
        ({"istio": "ingress"}, {"g"}),
        ({"team": "a"}, {"other"}),  # the other has no declared pod: it has the labels of its Gateway
        ({"gateway.networking.k8s.io/gateway-name": "other"}, {"other"}),
        ({}, {"g", "other"}),
        ({"istio": "egress"}, set()),
    ]
    for labels, names in chosen:
        target = GatewaysMatching("app", Selector.of(labels))
        assert world.select_gateways(target) == {GatewayNamed("app", name) for name in names}
        assert world.select(target) == frozenset()
    assert str(GatewaysMatching("app", WEB)) == "Gateways with pods {app: web} in app"
