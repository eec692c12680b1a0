"""The writer with a faulty API server. The tests set the time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from eastgate.controller.status import Assessment, EventRecorder, Notice, NoticeReason, StatusWriter, StoredPolicy
from eastgate.controller.status.schedule import Pace, Schedule
from eastgate.dialects.serving import Status
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import ApiError, Connection, Resource, UnreachableError
from tests.controller.status.clusters import GROUP
from tests.controller.status.test_merging import entry

RESOURCE = Resource(GROUP, "v1alpha2", "authorizationpolicies", "AuthorizationPolicy")
REF = PolicyRef("AuthorizationPolicy", "shop", "web", GROUP)
POLICY: dict[str, Any] = {
    "apiVersion": RESOURCE.api_version,
    "kind": RESOURCE.kind,
    "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1", "generation": 1},
}


class TroubledServer:
    """An API server that first returns the configured errors, and then serves one policy."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.requests: list[str] = []
        self.version = 1
        self.refuses: Exception | None = None  # every status
        self.refuses_events: Exception | None = None

    def _answer(self, request: str) -> dict[str, Any]:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        return {**POLICY, "metadata": {**POLICY["metadata"], "resourceVersion": str(self.version)}}

    async def get(self, _resource: Resource, _name: str, _namespace: str | None = None) -> dict[str, Any]:
        return self._answer("get")

    async def apply(self, _resource: Resource, obj: Mapping[str, Any], **_options: Any) -> dict[str, Any]:
        if self.refuses is not None:
            raise self.refuses
        answer = self._answer(f"apply {obj['metadata']['resourceVersion']}")
        self.version += 1
        return {**answer, "metadata": {**answer["metadata"], "resourceVersion": str(self.version)}}

    async def create(self, _resource: Resource, _obj: Mapping[str, Any]) -> dict[str, Any]:
        if self.refuses_events is not None:
            raise self.refuses_events
        return self._answer("create")


def assessment(generation: int = 1, *notices: Notice) -> Assessment:
    return Assessment(REF, Status.ANCESTORS, StoredPolicy(generation, "u"), (entry(),), notices)


class Clocked:
    """A writer with a clock that only the test moves."""

    def __init__(self, server: TroubledServer, said: Assessment | None = None, *, events: bool = False) -> None:
        self.now = 0.0
        self.troubles: list[Exception] = []
        self.schedule: Schedule[PolicyRef] = Schedule(Pace(delay=0, between=0, first_retry=1), jitter=lambda: 1.0)
        connection = cast("Connection", server)
        self.said = said or assessment()
        self.writer = StatusWriter(
            connection,
            lambda _ref: self.said,
            lambda _ref: RESOURCE,
            recorder=EventRecorder(connection, "test", clock=lambda: self.now) if events else None,
            schedule=self.schedule,
            clock=lambda: self.now,
            on_trouble=lambda _ref, error: self.troubles.append(error),
        )

    def settle(self) -> None:
        asyncio.run(self.writer.settle())


def test_a_failed_write_is_retried_later_and_not_sooner() -> None:
    server = TroubledServer(UnreachableError("gone"), ApiError(500, "InternalError", "no", {"retryAfterSeconds": 9}))
    clocked = Clocked(server)
    clocked.writer.observe(POLICY)
    clocked.settle()
    clocked.writer.mark([REF])
    clocked.settle()
    assert server.requests == ["apply 1"]
    assert clocked.schedule.wait(0) == 1
    clocked.now = 1
    clocked.settle()
    assert clocked.schedule.wait(1) == 9
    clocked.now = 10
    clocked.settle()
    assert server.requests == ["apply 1"] * 3
    assert [type(error) for error in clocked.troubles] == [UnreachableError, ApiError]
    assert clocked.writer.counts == {"failed": 2, "written": 1}
    assert clocked.schedule.wait(10) is None


def test_after_a_conflict_the_object_is_read_and_merged_again() -> None:
    server = TroubledServer(ApiError(409, "Conflict", "modified"))
    server.version = 5
    clocked = Clocked(server)
    clocked.writer.observe(POLICY)
    clocked.settle()
    assert server.requests == ["apply 1", "get", "apply 5"]


def test_repeated_conflicts_delay_the_write() -> None:
    server = TroubledServer()
    server.refuses = ApiError(409, "Conflict", "modified")
    clocked = Clocked(server)
    clocked.writer.observe(POLICY)
    clocked.settle()
    assert clocked.writer.counts == {"conflicts": 4, "failed": 1}
    assert clocked.schedule.wait(0) == 1


def test_a_policy_whose_assessment_fails_does_not_stop_others() -> None:
    server = TroubledServer()
    clocked = Clocked(server)

    def assess(ref: PolicyRef) -> Assessment:
        if ref.name == "bad":
            raise RecursionError("too deep")
        return clocked.said

    clocked.writer._assess = assess
    clocked.writer.observe({**POLICY, "metadata": {**POLICY["metadata"], "name": "bad"}})
    clocked.writer.observe(POLICY)
    clocked.settle()
    assert clocked.writer.counts == {"failed": 1, "written": 1}
    assert [str(error) for error in clocked.troubles] == ["too deep"]


def test_a_policy_that_is_gone_is_no_failure() -> None:
    server = TroubledServer(ApiError(404, "NotFound", "gone"))
    clocked = Clocked(server)
    clocked.writer.observe(POLICY)
    clocked.settle()
    assert clocked.writer.counts["failed"] == 0
    assert clocked.schedule.wait(0) is None


def test_an_unassessed_generation_waits() -> None:
    server = TroubledServer()
    clocked = Clocked(server, assessment(0))
    clocked.writer.observe(POLICY)
    clocked.settle()
    assert server.requests == ["get"]
    clocked.said = assessment(1)
    clocked.now = 1
    clocked.settle()
    assert server.requests == ["get", "apply 1"]


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no"), UnreachableError("gone")], ids=["403", "gone"])
def test_an_event_that_cannot_be_written_stops_no_status(error: Exception) -> None:
    server = TroubledServer()
    clocked = Clocked(server, assessment(1, Notice(NoticeReason.NOT_ENFORCED, "nobody")), events=True)
    clocked.writer.observe(POLICY)
    server.refuses_events = error
    clocked.settle()
    assert clocked.writer.counts == {"written": 1}


def test_only_writes_of_other_controllers_cause_a_new_check() -> None:
    server = TroubledServer()
    clocked = Clocked(server)
    clocked.writer.observe(POLICY)
    clocked.settle()
    written = {**POLICY, "metadata": {**POLICY["metadata"], "resourceVersion": "2"}}
    clocked.writer.observe(written)
    assert len(clocked.schedule) == 0
    clocked.writer.observe({**POLICY, "metadata": {**POLICY["metadata"], "resourceVersion": "3"}})
    assert len(clocked.schedule) == 1


def test_only_kinds_whose_status_eastgate_writes_are_kept() -> None:
    clocked = Clocked(TroubledServer())
    clocked.writer.observe({**POLICY, "apiVersion": "security.istio.io/v1"})
    assert len(clocked.schedule) == 0


def test_a_running_writer_writes_marked_policies_until_it_is_cancelled() -> None:
    server = TroubledServer()
    clocked = Clocked(server)

    async def test() -> None:
        running = asyncio.create_task(clocked.writer.run())
        await asyncio.sleep(0)
        clocked.writer.observe(POLICY)
        while not clocked.writer.counts["written"]:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(test())
    assert server.requests == ["apply 1"]
