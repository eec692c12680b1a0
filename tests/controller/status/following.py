"""A controller for tests: it reads the policies of a namespace from an API server, and updates their status."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.authority.sources.documents import ref_of
from eastgate.controller.proxies.progress import MeshReport
from eastgate.controller.status import Assessment, ClusterView, EventRecorder, StatusWriter, StoredPolicy, assess
from eastgate.controller.status.schedule import Pace, Schedule
from eastgate.envoy.plan.decisions import policy_name
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import Connection, Discovery, JsonObject, Resource
from eastgate.settings import Settings
from tests.controller.status.clusters import GROUP, Manifest, authority_of, with_uids

KINDS = (
    (GROUP, "AuthorizationPolicy"),
    ("eastgate.dev", "ClusterAuthorizationPolicy"),
    ("agentic.prototype.x-k8s.io", "XAccessPolicy"),
    ("apim.kuadrant.io", "AuthPolicy"),
)


class FollowingController:
    """A controller that reads everything and writes statuses on request. `others` are objects that are not policies."""

    def __init__(self, connection: Connection, discovery: Discovery, others: Iterable[Manifest] = ()) -> None:
        self.connection = connection
        self.discovery = discovery
        self.others = list(others)
        self.report = self._taken = MeshReport()
        self.settings = Settings()
        self.recorder = EventRecorder(connection, "test", clock=lambda: 0.0)
        self.writer = StatusWriter(
            connection,
            self.assess,
            self.find,
            recorder=self.recorder,
            clock=lambda: 0.0,  # without pauses
            schedule=Schedule(Pace(delay=0, between=0, first_retry=0, burst=10**6)),
        )
        self.stored: dict[PolicyRef, JsonObject] = {}
        self.view = ClusterView(authority_of())

    def find(self, ref: PolicyRef) -> Resource | None:
        return self.discovery.find(ref.group, ref.kind)

    def assess(self, ref: PolicyRef) -> Assessment | None:
        policies = {policy.ref: policy for policy in self.view.authority.policies}
        if ref not in policies or ref not in self.stored:
            return None
        return assess(policies[ref], StoredPolicy.of(self.stored[ref]), self.view)

    async def read(self, namespace: str) -> None:
        """Read all policies, and observe them as from a watch."""
        before = self.stored
        self.stored = {}
        for group, kind in KINDS:
            resource = self.discovery.find(group, kind)
            assert resource is not None
            for obj in (await self.connection.list(resource, namespace if resource.namespaced else None))[0]:
                self.stored[ref_of(obj)] = obj
        self.view = ClusterView(authority_of(*self.others, *self.stored.values(), settings=self.settings))
        self.take_report(self.report)
        for obj in self.stored.values():
            self.writer.observe(obj)
        for ref in before.keys() - self.stored.keys():
            self.writer.forget(ref)

    def take_report(self, report: MeshReport) -> None:
        """Take the acknowledgements of proxies for the existing policies."""
        uids = {policy_name(ref): obj["metadata"]["uid"] for ref, obj in self.stored.items()}
        self.view.report = with_uids(report, uids)
        if report is not self._taken:
            self._taken = report
            self.writer.mark(self.stored)

    async def settle(self, namespace: str) -> None:
        """Read everything, and write until every status is up to date."""
        await self.read(namespace)
        await self.writer.settle()
