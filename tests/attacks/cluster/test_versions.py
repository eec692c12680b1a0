"""A policy is read in the newest known version, since the API server drops new fields in older versions."""

from __future__ import annotations

import asyncio

import pytest

from eastgate.authority.sources.needs import watched_kinds
from eastgate.authority.sources.source import ClusterSource
from eastgate.reading.kubernetes import connect
from eastgate.settings import Settings
from tests.programs import ApiServer


def test_of_several_versions_the_newest_is_read() -> None:
    several = {str(kind): kind.versions for kind in watched_kinds() if len(kind.versions) > 1}
    assert several["AuthorizationPolicy.gateway.networking.x-k8s.io"] == ("v1alpha2", "v1alpha1")
    assert several["Server.policy.linkerd.io"] == ("v1beta3", "v1beta2", "v1beta1", "v1alpha1")
    assert several["AuthConfig.authorino.kuadrant.io"] == ("v1beta3", "v1beta2", "v1beta1")
    assert several["AuthPolicy.kuadrant.io"] == ("v1", "v1beta3")
    assert several["AuthorizationPolicy.security.istio.io"] == ("v1", "v1beta1")


@pytest.mark.apiserver
def test_nothing_of_a_policy_is_lost(own_api_server: ApiServer) -> None:
    server = own_api_server
    server.install("linkerd")
    namespace = server.namespace("versions")
    spec = {"podSelector": {}, "port": 80, "accessPolicy": "all-unauthenticated"}
    made = {
        "apiVersion": "policy.linkerd.io/v1beta3",
        "kind": "Server",
        "metadata": {"name": "web"},
        "spec": spec,
    }
    server.create(f"/apis/policy.linkerd.io/v1beta3/namespaces/{namespace}/servers", made)

    async def run() -> None:
        async with (
            connect(server.kubeconfig) as connection,
            asyncio.timeout(60),
            ClusterSource(connection, Settings()).follower as follower,
        ):
            (read,) = (each for each in (await follower.first()).put if each["kind"] == "Server")
            assert read["spec"] == {**spec, "proxyProtocol": "unknown"}

    asyncio.run(run())
