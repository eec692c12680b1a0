"""Policies of a group whose own API server is away count as unread: no answer treats the group as empty."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from click.testing import CliRunner, Result

from eastgate.authority.questions import Question
from eastgate.authority.sources import following
from eastgate.cli import main
from eastgate.reading.kubernetes import Discovery, connect
from tests.authority.sources.aggregated import ISTIO, VERSION, aggregated_server, look_again, register
from tests.authority.sources.objects import DEFINITIONS, GUARDED, policy
from tests.authority.sources.test_following import following as follow
from tests.patience import PATIENCE
from tests.programs import ApiServer, free_port

pytestmark = pytest.mark.apiserver

GEP = "/apis/gateway.networking.x-k8s.io/v1alpha2/namespaces/{}/authorizationpolicies"
KIND = f"AuthorizationPolicy ({ISTIO})"


def deny_all(namespace: str) -> dict[str, Any]:
    """A policy of Istio that admits no caller."""
    metadata = {"name": "nobody", "namespace": namespace, "uid": "1", "resourceVersion": "1"}
    return {"apiVersion": f"{ISTIO}/{VERSION}", "kind": "AuthorizationPolicy", "metadata": metadata, "spec": {}}


def discovered(server: ApiServer, holds: Callable[[Discovery], bool]) -> None:
    """Wait until discovery has this result."""

    async def run() -> None:
        async with connect(server.kubeconfig) as connection, asyncio.timeout(PATIENCE):
            while not holds(await connection.discover()):
                await asyncio.sleep(0.1)

    asyncio.run(run())


def is_stale(discovery: Discovery) -> bool:
    return (ISTIO, VERSION) in discovery.stale


def serves_policies(discovery: Discovery) -> bool:
    return not is_stale(discovery) and discovery.find(ISTIO, "AuthorizationPolicy") is not None


def check(server: ApiServer, namespace: str, account: str, *options: str) -> Result:
    ends = ["--from", f"sa:{namespace}/{account}", "--to", f"pod:{namespace}/cart", "--port", "8080"]
    words = ["check", "--cluster", "--kubeconfig", str(server.kubeconfig), *ends, *options]
    return CliRunner().invoke(main, words, catch_exceptions=False)


@pytest.fixture
def shop(own_api_server: ApiServer) -> str:
    """A namespace with a pod that one account may reach."""
    own_api_server.install("eastgate")
    namespace = own_api_server.namespace("shop", {"istio-injection": "enabled"})
    own_api_server.create(f"/api/v1/namespaces/{namespace}/pods", GUARDED)
    own_api_server.create(GEP.format(namespace), policy(namespace, "cart", ["web"]))
    return namespace


def test_a_group_that_never_answered_is_not_empty(own_api_server: ApiServer, shop: str) -> None:
    server = own_api_server
    assert check(server, shop, "web").exit_code == 0
    assert check(server, shop, "batch").exit_code == 1
    register(server, free_port())
    discovered(server, is_stale)
    allowed = check(server, shop, "web")
    assert allowed.exit_code == 2
    assert f"{KIND} (cannot be listed: the API server of {ISTIO}/{VERSION} does not answer)" in allowed.output
    assert check(server, shop, "batch").exit_code == 3
    shown = json.loads(check(server, shop, "web", "--unread", "warn", "-o", "json").stdout)
    assert [each["kind"] for each in shown["unconsidered"] if each["group"] == ISTIO] == [
        "AuthorizationPolicy",
        "PeerAuthentication",
        "RequestAuthentication",
    ]


def definition(group: str, kind: str, plural: str, *, served: bool = True) -> dict[str, Any]:
    version = {"name": "v1", "served": served, "storage": True}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{**version, "schema": schema}],
        },
    }


def test_a_definition_without_a_served_version_is_not_empty(own_api_server: ApiServer, shop: str) -> None:
    policies = definition(ISTIO, "AuthorizationPolicy", "authorizationpolicies", served=False)
    own_api_server.create(DEFINITIONS, policies)
    allowed = check(own_api_server, shop, "web")
    assert allowed.exit_code == 2
    assert "no version of the definition authorizationpolicies.security.istio.io is served" in allowed.output
    assert check(own_api_server, shop, "batch").exit_code == 3


def test_an_unknown_kind_with_the_name_of_a_policy_is_counted(own_api_server: ApiServer, shop: str) -> None:
    server, group = own_api_server, "acme.example"
    server.create(DEFINITIONS, definition(group, "NetworkPolicy", "networkpolicies"))
    path = f"/apis/{group}/v1/namespaces/{shop}/networkpolicies"
    server.wait_until(lambda: server.request("GET", path)[0] == 200)
    assert check(server, shop, "web").exit_code == 0
    server.create(path, {"apiVersion": f"{group}/v1", "kind": "NetworkPolicy", "metadata": {"name": "closed"}})
    allowed = check(server, shop, "web")
    assert allowed.exit_code == 2
    assert f"NetworkPolicy/{shop}/closed" in allowed.output or f"NetworkPolicy ({group})" in allowed.output


def test_a_group_that_goes_away_keeps_its_policies_where_they_are_known(
    own_api_server: ApiServer, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = own_api_server
    monkeypatch.setattr(following, "_REDISCOVERY_SECONDS", 0.2)
    monkeypatch.setattr(following, "_DISCOVERY_DELAY_SECONDS", 0.1)
    question = Question.of(source=f"sa:{shop}/web", destination=f"pod:{shop}/cart", port=8080)

    async def go_away(backend: ExitStack) -> None:
        async with follow(server.kubeconfig) as follower:
            source = follower.source
            assert any(name.endswith(f"{shop}/nobody") for name in follower.names)
            assert not source.authority.decide(question).allowed
            await asyncio.to_thread(backend.close)
            await asyncio.to_thread(look_again, server)
            await asyncio.to_thread(discovered, server, is_stale)
            follower.troubles.clear()
            await follower.until(lambda: any(ISTIO in trouble for trouble in follower.troubles))
            await asyncio.sleep(1)  # discovery of kinds
            assert not source.authority.decide(question).allowed
            assert not source.follower.unlisted

    with ExitStack() as backend:
        register(server, backend.enter_context(aggregated_server(server, [deny_all(shop)])))
        discovered(server, serves_policies)
        assert check(server, shop, "web").exit_code == 1
        asyncio.run(go_away(backend))
    assert check(server, shop, "web").exit_code == 2
    assert check(server, shop, "batch").exit_code == 3
