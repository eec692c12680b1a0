"""Paths, probes and defaults in conversions to Linkerd, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate import Question
from eastgate.settings import Settings
from tests.convert.conversions import Manifest, converted
from tests.worlds.test_generated_clusters import authority_of

POD: Manifest = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]},
}
CLOSED = Settings.from_mapping({"linkerdDefaultPolicy": "deny"})


def policy(*rules: Manifest, level: str = "APPLICATION") -> Manifest:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "p", "namespace": "shop"},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "web"}}}],
            "action": "ALLOW",
            "enforcementLevel": level,
            "rules": list(rules),
        },
    }


def rule(account: str, **attributes: Any) -> Manifest:
    found: Manifest = {
        "authorizationSource": {"serviceAccounts": [account]},
        "networkAttributes": {"ports": [80]},
    }
    return {**found, "applicationAttributes": attributes} if attributes else found


@pytest.mark.parametrize("pattern", ["/api", "/api/*", "/a*", "*.png", "*/edit", "*", "/*", "/", "/a.b", "/a+(b)*"])
def test_paths_mean_the_same(pattern: str) -> None:
    given = [POD, policy(rule("cart", paths=[pattern], methods=["GET"]))]
    outcome = converted(given, "linkerd", CLOSED)
    assert outcome.losses == ["EG7107"]
    before, after = authority_of(given, Settings()), authority_of([POD, *outcome.written], CLOSED)
    paths = ["/", "/api", "/api/", "/api/1", "/apix", "/x.png", "/edit", "/a/edit", "/aedit", "/a.b", "/aXb", "/a+(b)c"]
    for path in paths:
        for method in ("GET", "POST"):
            for source in ("sa:shop/cart", "sa:shop/web", "anonymous"):
                asked = Question.of(
                    source, "pod:shop/web", port=80, method=method, path=path, host="h", source_ip="10.0.0.1"
                )
                assert after.decide(asked).allowed == before.decide(asked).allowed, (path, method, source)


def test_a_rule_without_paths_beside_one_with_paths_is_not_lost() -> None:
    given = [POD, policy(rule("cart", paths=["/api"]), rule("admin"))]
    outcome = converted(given, "linkerd", CLOSED)
    after = authority_of([POD, *outcome.written], CLOSED)
    for source, path, expected in [
        ("sa:shop/cart", "/api", True),
        ("sa:shop/cart", "/", False),
        ("sa:shop/admin", "/api", True),
        ("sa:shop/admin", "/", True),
    ]:
        asked = Question.of(source, "pod:shop/web", port=80, method="GET", path=path, host="h", source_ip="10.0.0.1")
        assert after.decide(asked).allowed is expected, (source, path)


def test_nothing_is_converted_where_other_ports_would_stay_open() -> None:
    outcome = converted([POD, policy(rule("cart"), level="NETWORK")], "linkerd", Settings())
    assert (outcome.written, outcome.losses) == ([], ["EG7401"])


def test_nothing_is_converted_where_probes_would_let_everybody_in() -> None:
    probed = {"name": "c", "livenessProbe": {"httpGet": {"path": "/healthz", "port": 80}}}
    pod = {**POD, "spec": {"containers": [probed]}}
    given = [pod, policy(rule("cart"), level="NETWORK")]
    assert converted(given, "linkerd", CLOSED).losses == ["EG7403"]
    without = Settings.from_mapping({"linkerdDefaultPolicy": "deny", "linkerdProbeNetworks": ""})
    assert converted(given, "linkerd", without).losses == []


def test_nor_where_the_probes_of_the_injected_proxy_would() -> None:
    admin = {**rule("cart"), "networkAttributes": {"ports": [4191]}}
    outcome = converted([POD, policy(admin, level="NETWORK")], "linkerd", CLOSED)
    assert outcome.written == []
    assert outcome.losses == ["EG7403"]


def test_a_server_on_the_port_of_the_injected_proxy_is_of_its_number() -> None:
    server = {
        "apiVersion": "policy.linkerd.io/v1beta3",
        "kind": "Server",
        "metadata": {"name": "admin", "namespace": "shop"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "port": "linkerd-admin"},
    }
    authorization = {
        "apiVersion": "policy.linkerd.io/v1alpha1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": "scrape", "namespace": "shop"},
        "spec": {
            "targetRef": {"group": "policy.linkerd.io", "kind": "Server", "name": "admin"},
            "requiredAuthenticationRefs": [{"kind": "ServiceAccount", "name": "prometheus"}],
        },
    }
    outcome = converted([POD, server, authorization], "authorizationpolicy-v1alpha2", CLOSED)
    (written,) = outcome.written
    assert written["spec"]["rules"][0]["networkAttributes"] == {"ports": [4191]}
    assert outcome.losses == ["EG7403"]


def test_of_two_servers_for_one_port_neither_is_converted() -> None:
    def server(name: str) -> Manifest:
        spec = {"podSelector": {}, "port": 80, "accessPolicy": "deny"}
        metadata = {"name": name, "namespace": "shop"}
        return {"apiVersion": "policy.linkerd.io/v1beta3", "kind": "Server", "metadata": metadata, "spec": spec}

    outcome = converted([POD, server("one"), server("two")], "authorizationpolicy-v1alpha2", CLOSED)
    assert (outcome.written, outcome.losses) == ([], ["EG7404", "EG7404"])
