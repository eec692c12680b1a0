"""The statuses of a followed cluster, with watches of a real API server, kubectl, and the writer of a leader."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from eastgate.authority.sources.source import ClusterSource
from eastgate.controller.proxies.progress import MeshReport
from eastgate.controller.status import CONTROLLER_NAME, PolicyStatuses, keeps_status, unwritten_groups
from eastgate.envoy.plan.decisions import policy_name
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, Resource, connect
from eastgate.settings import Settings
from tests.controller.status.clusters import (
    AMBIENT,
    GROUP,
    Manifest,
    pod,
    policy,
    report_of,
    service,
    to_pods,
    to_services,
    with_uids,
)
from tests.patience import PATIENCE
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver

POLICIES = "authorizationpolicies.gateway.networking.x-k8s.io"
ACCESS = "xaccesspolicies.agentic.prototype.x-k8s.io"
AUTH = "authpolicies.apim.kuadrant.io"
ROUTES = "httproutes.policy.linkerd.io"
GATEWAY_API = "gateway.networking.k8s.io"


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    api_server.install("eastgate", "linkerd", "gateway-api")
    return api_server


@pytest.fixture
def namespace(server: ApiServer) -> str:
    return server.namespace("status")


class RunningStatuses:
    """A source, statuses that get every batch of it, and a running writer."""

    def __init__(self, server: ApiServer, namespace: str, source: ClusterSource, statuses: PolicyStatuses) -> None:
        self.server = server
        self.namespace = namespace
        self.source = source
        self.statuses = statuses

    def report(self, report: MeshReport) -> None:
        """Send a report of the proxies about the existing policies."""
        uids = {policy_name(ref): obj["metadata"]["uid"] for ref, obj in self.source.follower.held.kept.items()}
        self.statuses.take_report(with_uids(report, uids))

    def apply(self, *manifests: Manifest) -> None:
        """Apply manifests as a user, in the namespace of the test."""
        named = [{**each, "metadata": {"name": each["metadata"]["name"]}} for each in manifests]
        pods = {each["metadata"]["name"]: each["metadata"].get("labels") for each in manifests}
        for each in named:
            each["metadata"] |= {"namespace": self.namespace}
            if pods[each["metadata"]["name"]]:
                each["metadata"] |= {"labels": pods[each["metadata"]["name"]]}
        self.server.apply(*named)

    def get(self, plural: str, name: str) -> Any:
        return self.server.get(plural, name, "-n", self.namespace)

    async def wait_for(self, plural: str, name: str, shows: Callable[[Any], bool]) -> Any:
        """Wait for the expected status of an object."""
        last: Any = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    last = await asyncio.to_thread(self.get, plural, name)
                    if shows(last.get("status") or {}):
                        return last
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(json.dumps(last, indent=1)) from None


@asynccontextmanager
async def running(server: ApiServer, namespace: str, settings: Settings) -> AsyncIterator[RunningStatuses]:
    async with (
        connect(server.kubeconfig) as connection,
        ClusterSource(connection, settings, namespace=namespace, live=False, keeps=keeps_status) as source,
    ):
        follower = source.follower

        def find(ref: PolicyRef) -> Resource | None:
            return follower.resources.get((ref.group, ref.kind))

        statuses = PolicyStatuses(connection, source.authority, follower.held.kept, find, instance="test")

        async def follow() -> None:
            async for changes in source.batches():
                statuses.take_changes([*changes.touched], source.apply(changes))

        tasks = [asyncio.create_task(follow()), asyncio.create_task(statuses.writer.run())]
        try:
            yield RunningStatuses(server, namespace, source, statuses)
        finally:
            for task in tasks:
                task.cancel()
            done, _ = await asyncio.wait(tasks)
            errors = [task.exception() for task in done if not task.cancelled()]
            assert errors == []


def run(
    server: ApiServer,
    namespace: str,
    test: Callable[[RunningStatuses], Awaitable[None]],
    settings: Settings | None = None,
) -> None:
    async def started() -> None:
        async with running(server, namespace, settings or Settings()) as cluster:
            await test(cluster)

    asyncio.run(started())


def ancestor(status: Any, at: int = 0) -> dict[str, tuple[str, str]]:
    entries = status.get("ancestors") or []
    return conditions(entries[at]) if len(entries) > at else {}


def conditions(entry: Any) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in entry.get("conditions") or ()}


def test_a_policy_from_its_creation_to_its_end(server: ApiServer, namespace: str) -> None:
    name = f"AuthorizationPolicy/{namespace}/web"

    async def test(cluster: RunningStatuses) -> None:
        cluster.apply(pod("web-0"), pod("web-1"), policy(to_pods(app="web")))
        await cluster.wait_for(POLICIES, "web", lambda it: ancestor(it).get("Programmed") == ("False", "Reconciling"))
        assert "NotEnforced" not in server.kubectl("events", "-n", namespace)  # pods without an address are not open
        for name_of_pod in ("web-0", "web-1"):
            server.run_pod(namespace, name_of_pod)
        await cluster.wait_for(POLICIES, "web", lambda it: ancestor(it).get("Programmed") == ("False", "NotEnforced"))
        assert "2 of 2 have no proxy of Eastgate" in server.kubectl("events", "-n", namespace)
        proxies = [f"{namespace}/web-0", f"{namespace}/web-1"]
        cluster.report(report_of(proxies, policies=[name]))
        stored = await cluster.wait_for(
            POLICIES, "web", lambda it: ancestor(it).get("Programmed") == ("True", "Programmed")
        )

        cluster.apply(pod("web-2"))  # which has no proxy
        await cluster.wait_for(
            POLICIES, "web", lambda it: ancestor(it).get("Programmed") == ("False", "PartiallyProgrammed")
        )
        server.kubectl("delete", "pod", "web-2", "-n", namespace, "--grace-period=0", "--force")
        again = await cluster.wait_for(
            POLICIES, "web", lambda it: ancestor(it).get("Programmed") == ("True", "Programmed")
        )
        assert stored["metadata"]["generation"] == again["metadata"]["generation"] == 1

        server.kubectl("delete", POLICIES, "web", "-n", namespace)
        async with asyncio.timeout(PATIENCE):
            while cluster.statuses.writer.states:
                await asyncio.sleep(0.05)
        assert cluster.statuses.writer.counts["failed"] == 0

    run(server, namespace, test)


def test_a_status_that_is_right_is_left_alone_by_watches_and_restarts(server: ApiServer, namespace: str) -> None:
    async def first(cluster: RunningStatuses) -> None:
        cluster.apply(pod("web-0"), policy(to_pods(app="web")))
        await cluster.wait_for(POLICIES, "web", lambda it: "Programmed" in ancestor(it))

    async def second(cluster: RunningStatuses) -> None:
        before = cluster.get(POLICIES, "web")["metadata"]["resourceVersion"]
        writer = cluster.statuses.writer
        async with asyncio.timeout(PATIENCE):
            while not writer.counts["unchanged"]:
                await asyncio.sleep(0.05)
        server.kubectl("label", POLICIES, "web", "seen=true", "-n", namespace)
        async with asyncio.timeout(PATIENCE):
            while writer.counts["unchanged"] < 2:
                await asyncio.sleep(0.05)
        assert writer.counts["written"] == 0
        assert cluster.get(POLICIES, "web")["metadata"]["resourceVersion"] != before

    run(server, namespace, first)
    run(server, namespace, second)


def test_a_service_that_comes_and_goes(server: ApiServer, namespace: str) -> None:
    async def test(cluster: RunningStatuses) -> None:
        cluster.apply(policy(to_services("web")))
        await cluster.wait_for(POLICIES, "web", lambda it: ancestor(it) == {"Accepted": ("False", "TargetNotFound")})
        cluster.apply(service("web"))
        await cluster.wait_for(POLICIES, "web", lambda it: ancestor(it).get("Accepted") == ("True", "Accepted"))
        server.kubectl("delete", "service", "web", "-n", namespace)
        await cluster.wait_for(POLICIES, "web", lambda it: ancestor(it) == {"Accepted": ("False", "TargetNotFound")})

    run(server, namespace, test, AMBIENT)


GATEWAY: Manifest = {
    "apiVersion": f"{GATEWAY_API}/v1",
    "kind": "Gateway",
    "metadata": {"name": "edge"},
    "spec": {"gatewayClassName": "eastgate", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}


def auth_policy(name: str) -> Manifest:
    return {
        "apiVersion": "apim.kuadrant.io/v1alpha1",
        "kind": "AuthPolicy",
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"group": GATEWAY_API, "kind": "Gateway", "name": "edge"},
            "rules": [{"hosts": ["*.example.com"]}],
            "authSchemes": [{"hosts": ["*.example.com"], "identity": [{"name": "any", "anonymous": {}}]}],
        },
    }


def test_two_auth_policies_that_conflict(server: ApiServer, namespace: str) -> None:
    def available(status: Any) -> tuple[str, str] | None:
        return conditions(status).get("Available")

    async def test(cluster: RunningStatuses) -> None:
        cluster.apply(GATEWAY, auth_policy("a"), auth_policy("b"))
        await cluster.wait_for(AUTH, "b", lambda it: available(it) == ("False", "Conflicted"))
        await cluster.wait_for(AUTH, "a", lambda it: available(it) == ("False", "NotEnforced"))
        names = [f"AuthPolicy/{namespace}/{name}" for name in ("a", "b")]
        cluster.report(report_of([f"gateway:{namespace}/edge/edge-1"], policies=names))
        await cluster.wait_for(AUTH, "a", lambda it: available(it) == ("True", "GatewayProtected"))
        shown = server.kubectl("get", AUTH, "-n", namespace, "--no-headers")
        assert [line.split()[:4] for line in shown.splitlines()] == [
            ["a", "Gateway", "edge", "True"],
            ["b", "Gateway", "edge", "False"],
        ]
        server.kubectl("wait", f"{AUTH}/a", "-n", namespace, "--for=condition=Available", "--timeout=5s")
        server.kubectl("delete", AUTH, "a", "-n", namespace)
        await cluster.wait_for(AUTH, "b", lambda it: available(it) == ("True", "GatewayProtected"))

    run(server, namespace, test)


def test_an_access_policy_names_its_targets(server: ApiServer, namespace: str) -> None:
    group = "agentic.prototype.x-k8s.io"
    backend: Manifest = {
        "apiVersion": f"{group}/v0alpha0",
        "kind": "XBackend",
        "metadata": {"name": "tools"},
        "spec": {"mcp": {"serviceName": "tools", "port": 80, "path": "/mcp"}},
    }
    access: Manifest = {
        "apiVersion": f"{group}/v0alpha0",
        "kind": "XAccessPolicy",
        "metadata": {"name": "tools"},
        "spec": {
            "targetRefs": [{"group": group, "kind": "XBackend", "name": "tools"}],
            "rules": [{"name": "all", "source": {"type": "ServiceAccount", "serviceAccount": {"name": "agent"}}}],
        },
    }
    route: Manifest = {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "tools"},
        "spec": {
            "parentRefs": [{"name": "edge"}],
            "rules": [{"backendRefs": [{"group": group, "kind": "XBackend", "name": "tools"}]}],
        },
    }

    async def test(cluster: RunningStatuses) -> None:
        cluster.apply(access)
        await cluster.wait_for(ACCESS, "tools", lambda it: ancestor(it) == {"Accepted": ("False", "TargetNotFound")})
        cluster.apply(backend, GATEWAY, route)
        await cluster.wait_for(ACCESS, "tools", lambda it: ancestor(it).get("Programmed") == ("False", "NotEnforced"))
        name = f"XAccessPolicy/{namespace}/tools"
        cluster.report(report_of([f"gateway:{namespace}/edge/edge-1"], policies=[name]))
        stored = await cluster.wait_for(
            ACCESS, "tools", lambda it: ancestor(it).get("Programmed") == ("True", "Programmed")
        )
        ref = {"group": group, "kind": "XBackend", "name": "tools", "namespace": namespace}
        assert stored["status"]["ancestors"][0]["ancestorRef"] == ref

    run(server, namespace, test)


def test_the_routes_of_linkerd_have_parents(server: ApiServer, namespace: str) -> None:
    linkerd: Manifest = {
        "apiVersion": "policy.linkerd.io/v1beta3",
        "kind": "Server",
        "metadata": {"name": "web"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "port": 8080, "proxyProtocol": "HTTP/1"},
    }
    route: Manifest = {
        "apiVersion": "policy.linkerd.io/v1beta3",
        "kind": "HTTPRoute",
        "metadata": {"name": "web"},
        "spec": {
            "parentRefs": [{"group": "policy.linkerd.io", "kind": "Server", "name": "web"}],
            "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}],
        },
    }

    async def test(cluster: RunningStatuses) -> None:
        cluster.apply(pod("web-0"), linkerd, route, policy(to_pods(app="web")))
        await cluster.wait_for(POLICIES, "web", lambda it: bool(ancestor(it)))
        cluster.report(report_of([f"{namespace}/web-0"], policies=[f"HTTPRoute/{namespace}/web"]))
        assert "status" not in cluster.get(ROUTES, "web")
        cluster.statuses.take_settings(mesh=None, shared_groups=frozenset({"policy.linkerd.io"}))
        stored = await cluster.wait_for(ROUTES, "web", lambda it: bool(it.get("parents")))
        (parent,) = stored["status"]["parents"]
        assert parent["controllerName"] == CONTROLLER_NAME
        assert conditions(parent) == {"Accepted": ("True", "Accepted"), "Programmed": ("True", "Programmed")}

    run(server, namespace, test)


def test_the_controller_of_linkerd_is_known_by_its_lease(server: ApiServer, namespace: str) -> None:
    async def present(connection: Connection) -> bool:
        return "policy.linkerd.io" not in await unwritten_groups(connection)

    async def test(cluster: RunningStatuses) -> None:
        async with connect(server.kubeconfig) as connection:
            assert not await present(connection)
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": "policy-controller-write"},
            }
            cluster.apply(lease)
            assert await present(connection)
            server.kubectl("delete", "lease", "policy-controller-write", "-n", namespace)

    run(server, namespace, test)


def test_eastgate_writes_no_status_for_policies_of_other_controllers(server: ApiServer, namespace: str) -> None:
    istio_like: Manifest = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "web"},
        "spec": {"podSelector": {}},
    }

    async def test(cluster: RunningStatuses) -> None:
        cluster.apply(istio_like, policy(to_pods(app="web")))
        await cluster.wait_for(POLICIES, "web", lambda it: bool(ancestor(it)))
        assert {ref.group for ref in cluster.statuses.writer.states} == {GROUP}

    run(server, namespace, test)
