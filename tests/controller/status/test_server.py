"""Status and events on a real API server, with kubectl as the user, and other controllers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from eastgate.controller.status import CONTROLLER_NAME, EventRecorder
from eastgate.reading.kubernetes import ApiError, connect
from eastgate.settings import MeshMode, Settings
from tests.controller.status.clusters import NOW, Manifest, pod, policy, report_of, service, to_pods, to_services
from tests.controller.status.following import FollowingController
from tests.programs import ApiServer

pytestmark = pytest.mark.apiserver

PLURAL = "authorizationpolicies.gateway.networking.x-k8s.io"
OTHER = "example.com/controller"
PROGRAMMED = '{.status.ancestors[0].conditions[?(@.type=="Programmed")].status}'


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    api_server.install("eastgate")
    return api_server


@pytest.fixture
def namespace(server: ApiServer) -> str:
    return server.namespace("status")


@asynccontextmanager
async def controller(server: ApiServer, *others: Manifest) -> AsyncIterator[FollowingController]:
    async with connect(server.kubeconfig) as connection:
        yield FollowingController(connection, await connection.discover(), others)


def run(server: ApiServer, test: Callable[[FollowingController], Awaitable[None]], *others: Manifest) -> None:
    async def started() -> None:
        async with controller(server, *others) as ours:
            await test(ours)

    asyncio.run(started())


def pods(namespace: str, count: int = 2) -> list[Manifest]:
    return [pod(f"web-{number}", namespace) for number in range(count)]


def put(server: ApiServer, manifest: Manifest, namespace: str) -> None:
    """Apply a policy as its owner."""
    metadata = {"name": manifest["metadata"]["name"], "namespace": namespace}
    server.apply({**manifest, "metadata": metadata})


def get(server: ApiServer, namespace: str, name: str = "web") -> Any:
    return server.get(PLURAL, "-n", namespace, name)


def conditions(obj: Any, at: int = 0) -> dict[str, tuple[str, str, int]]:
    return {
        each["type"]: (each["status"], each["reason"], each["observedGeneration"])
        for each in obj["status"]["ancestors"][at]["conditions"]
    }


def columns(server: ApiServer, plural: str, *arguments: str) -> dict[str, str]:
    """Return the output of `kubectl get` for the only object, by column."""
    title, line = server.kubectl("get", plural, *arguments).splitlines()
    starts = [at for at in range(len(title)) if title[at] != " " and (at == 0 or title[at - 1] == " ")]
    ends = [*starts[1:], None]
    return {title[a:b].strip(): line[a:b].strip() for a, b in zip(starts, ends, strict=True)}


def foreign(name: str, controller_name: str = OTHER, message: str = "") -> Manifest:
    condition = {"type": "Accepted", "status": "True", "reason": "Accepted", "message": message}
    return {
        "ancestorRef": {"group": "", "kind": "Service", "name": name},
        "controllerName": controller_name,
        "conditions": [{**condition, "lastTransitionTime": NOW}],
    }


def write_entries(server: ApiServer, namespace: str, *entries: Manifest, name: str = "web") -> None:
    patch = json.dumps({"status": {"ancestors": entries}})
    server.kubectl("patch", PLURAL, name, "-n", namespace, "--subresource=status", "--type=merge", "-p", patch)


def test_status_through_create_change_and_delete(server: ApiServer, namespace: str) -> None:
    proxies = [f"{namespace}/web-{number}" for number in range(2)]
    names = [f"AuthorizationPolicy/{namespace}/web"]

    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        assert columns(server, PLURAL, "-n", namespace)["PROGRAMMED"] == ""  # no controller has checked it
        ours.report = report_of(waiting=proxies, policies=names)
        await ours.settle(namespace)
        assert conditions(get(server, namespace)) == {
            "Accepted": ("True", "Accepted", 1),
            "Programmed": ("False", "Reconciling", 1),
        }

        ours.report = report_of(proxies[:1], waiting=proxies[1:], policies=names)
        await ours.settle(namespace)
        assert conditions(get(server, namespace))["Programmed"] == ("False", "PartiallyProgrammed", 1)
        assert columns(server, PLURAL, "-n", namespace)["PROBLEM"] == "PartiallyProgrammed"
        assert columns(server, PLURAL, "-n", namespace)["PROGRAMMED"] == "False"

        ours.report = report_of(proxies, policies=names)
        await ours.settle(namespace)
        server.kubectl("wait", f"{PLURAL}/web", "-n", namespace, f"--for=jsonpath={PROGRAMMED}=True", "--timeout=5s")
        assert columns(server, PLURAL, "-n", namespace)["PROBLEM"] == ""
        assert columns(server, PLURAL, "-n", namespace)["PROGRAMMED"] == "True"
        assert columns(server, PLURAL, "-n", namespace, "-o", "wide")["CONTROLLER"] == CONTROLLER_NAME

        put(server, policy(to_pods(app="web"), rules=[{"networkAttributes": {"ports": [8080]}}]), namespace)
        await ours.settle(namespace)
        assert conditions(get(server, namespace))["Programmed"] == ("False", "Reconciling", 2)
        ours.report = report_of(proxies, policies=names, generation=2)
        await ours.settle(namespace)
        assert conditions(get(server, namespace))["Programmed"] == ("True", "Programmed", 2)

        server.kubectl("delete", PLURAL, "web", "-n", namespace)
        ours.writer.mark_all()
        await ours.writer.settle()
        assert ours.writer.counts["failed"] == 0
        await ours.settle(namespace)
        assert ours.writer.states == {}

    run(server, test, *pods(namespace))


def test_nothing_is_written_without_need(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.settle(namespace)
        before = get(server, namespace)["metadata"]
        written = ours.writer.counts["written"]
        assert written == 1
        for _ in range(3):
            ours.writer.mark_all()
            await ours.settle(namespace)
        after = get(server, namespace)["metadata"]
        assert (after["resourceVersion"], after["generation"]) == (before["resourceVersion"], 1)
        assert ours.writer.counts["written"] == 1

        another = FollowingController(ours.connection, ours.discovery, ours.others)
        await another.settle(namespace)
        assert another.writer.counts == {"unchanged": 1}
        assert get(server, namespace)["metadata"]["resourceVersion"] == before["resourceVersion"]

    run(server, test, *pods(namespace))


def test_our_own_write_is_no_reason_to_look_again(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.settle(namespace)
        looked = sum(ours.writer.counts.values())
        await ours.settle(namespace)
        assert sum(ours.writer.counts.values()) == looked
        write_entries(server, namespace)  # another program removes the entry of Eastgate
        await ours.settle(namespace)
        assert len(get(server, namespace)["status"]["ancestors"]) == 1

    run(server, test, *pods(namespace))


def test_no_entry_is_lost_when_two_controllers_write_at_once(server: ApiServer, namespace: str) -> None:
    rounds = 40

    async def theirs(ours: FollowingController) -> None:
        """Act as another controller: read, change and replace, and check each time that its entry was kept."""
        resource = ours.discovery.find("gateway.networking.x-k8s.io", "AuthorizationPolicy")
        assert resource is not None
        written = None
        for number in range(rounds):
            while True:
                obj = await ours.connection.get(resource, "web", namespace)
                entries = obj.get("status", {}).get("ancestors", [])
                own = [entry for entry in entries if entry["controllerName"] == OTHER]
                assert [entry["conditions"][0]["message"] for entry in own] == ([written] if written else [])
                kept = [entry for entry in entries if entry["controllerName"] != OTHER]
                obj["status"] = {"ancestors": [*kept, foreign("web", message=f"round {number}")]}
                try:
                    await ours.connection.replace(resource, obj, subresource="status", manager="theirs")
                except ApiError as error:
                    if not error.is_conflict:
                        raise
                    continue
                written = f"round {number}"
                break

    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.read(namespace)
        (ref,) = ours.stored
        proxies = [f"{namespace}/web-{number}" for number in range(2)]

        async def toggle() -> None:
            for number in range(rounds):
                ours.take_report(report_of(proxies[: 1 + number % 2], policies=[str(ref)]))
                ours.writer.mark([ref])
                while len(ours.writer._schedule):
                    await ours.writer.settle()

        await asyncio.gather(theirs(ours), toggle())
        entries = get(server, namespace)["status"]["ancestors"]
        assert sorted(entry["controllerName"] for entry in entries) == [CONTROLLER_NAME, OTHER]
        messages = {entry["controllerName"]: entry["conditions"][-1]["message"] for entry in entries}
        assert messages == {CONTROLLER_NAME: "in force at all 2 proxies concerned", OTHER: f"round {rounds - 1}"}
        assert ours.writer.counts["conflicts"] > 0

    run(server, test, *pods(namespace))


def test_an_overwritten_entry_is_restored_beside_the_others(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.settle(namespace)
        write_entries(server, namespace, foreign("web"))
        await ours.settle(namespace)
        entries = get(server, namespace)["status"]["ancestors"]
        assert [entry["controllerName"] for entry in entries] == [OTHER, CONTROLLER_NAME]
        assert entries[0] == foreign("web")

    run(server, test, *pods(namespace))


def test_a_full_list_is_left_alone_and_signalled(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        write_entries(server, namespace, *(foreign(f"service-{number}") for number in range(16)))
        await ours.settle(namespace)
        entries = get(server, namespace)["status"]["ancestors"]
        assert {entry["controllerName"] for entry in entries} == {OTHER}
        assert {ref.name for ref in ours.writer.full} == {"web"}
        assert "AncestorsFull" in server.kubectl("events", "-n", namespace)

        write_entries(server, namespace, *(foreign(f"service-{number}") for number in range(15)))
        await ours.settle(namespace)
        assert len(get(server, namespace)["status"]["ancestors"]) == 16
        assert ours.writer.full == set()

    run(server, test, *pods(namespace))


def test_more_targets_than_fit_are_folded(server: ApiServer, namespace: str) -> None:
    names = [f"service-{number:02}" for number in range(12)]

    async def test(ours: FollowingController) -> None:
        ours.settings = Settings(mesh_mode=MeshMode.AMBIENT)
        put(server, policy(to_services(*names)), namespace)
        write_entries(server, namespace, *(foreign(name) for name in names[:6]))
        await ours.settle(namespace)
        entries = get(server, namespace)["status"]["ancestors"]
        assert len(entries) == 16
        assert "2 more targets are not listed" in entries[-1]["conditions"][0]["message"]

    run(server, test, *(service(name, namespace) for name in names))


def test_a_forged_status_of_a_generation_that_does_not_exist_is_written_over(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.settle(namespace)
        before = get(server, namespace)["status"]["ancestors"]
        assert conditions(get(server, namespace))["Programmed"][0] == "False"
        (entry,) = get(server, namespace)["status"]["ancestors"]
        for condition in entry["conditions"]:
            condition |= {"observedGeneration": 9, "status": "True", "reason": "Programmed"}
        write_entries(server, namespace, entry)
        await ours.settle(namespace)
        after = get(server, namespace)["status"]["ancestors"]
        assert [bare(each) for each in after] == [bare(each) for each in before]

    run(server, test, *pods(namespace))


def bare(entry: Manifest) -> Manifest:
    """Return an entry without the times of its conditions."""
    kept = [{key: value for key, value in each.items() if key != "lastTransitionTime"} for each in entry["conditions"]]
    return entry | {"conditions": kept}


def test_forged_conditions_of_a_cluster_policy_are_written_over_and_removed(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        server.apply(CLUSTER_POLICY)
        await ours.settle(namespace)
        before = server.get("clusterauthorizationpolicy", "admin")["status"]
        times = {"observedGeneration": 99, "lastTransitionTime": NOW, "message": "", "reason": "Forged"}
        types = ("Accepted", "Available", "Programmed", "ResolvedRefs", "Theirs")
        forged = [{"type": type_, "status": "True", **times} for type_ in types]
        patch = json.dumps({"status": {"observedGeneration": 99, "conditions": forged}})
        path = ("clusterauthorizationpolicy", "admin", "--subresource=status", "--type=merge", "-p", patch)
        server.kubectl("patch", *path, "--field-manager=forger")
        await ours.settle(namespace)
        after = server.get("clusterauthorizationpolicy", "admin")["status"]
        theirs = [each for each in after["conditions"] if each["type"] == "Theirs"]
        assert theirs == [forged[-1]]
        ours_now = [each for each in after["conditions"] if each["type"] != "Theirs"]
        assert bare({**after, "conditions": ours_now}) == bare(before)
        written = ours.writer.counts["written"]
        await ours.settle(namespace)
        assert ours.writer.counts["written"] == written
        server.kubectl("delete", "clusterauthorizationpolicy", "admin")

    run(server, test, *pods(namespace))


def test_a_changed_policy_does_not_get_the_status_of_its_old_generation(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.read(namespace)
        put(server, policy(to_pods(app="api")), namespace)
        await ours.writer._check(next(iter(ours.stored)))
        assert "status" not in get(server, namespace)
        assert (ours.writer.counts["conflicts"], ours.writer.counts["behind"]) == (1, 1)
        await ours.settle(namespace)
        assert conditions(get(server, namespace))["Accepted"] == ("True", "Accepted", 2)

    run(server, test, *pods(namespace))


def test_an_object_of_the_same_name_gets_a_status_of_its_own(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        await ours.read(namespace)
        server.kubectl("delete", PLURAL, "web", "-n", namespace)
        put(server, policy(to_pods(app="api")), namespace)
        await ours.writer._check(next(iter(ours.stored)))
        assert "status" not in get(server, namespace)

    run(server, test, *pods(namespace))


def test_a_policy_that_waits_for_a_finalizer_counts_and_reports_it(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        hold = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
        server.kubectl("patch", PLURAL, "web", "-n", namespace, "--type=merge", "-p", hold)
        server.kubectl("delete", PLURAL, "web", "-n", namespace, "--wait=false")
        await ours.settle(namespace)
        (entry,) = get(server, namespace)["status"]["ancestors"]
        assert entry["conditions"][-1]["message"].endswith("it is being deleted, and counts until it is gone")
        release = json.dumps({"metadata": {"finalizers": []}})
        server.kubectl("patch", PLURAL, "web", "-n", namespace, "--type=merge", "-p", release)

    run(server, test, *pods(namespace))


CLUSTER_POLICY: Manifest = {
    "apiVersion": "eastgate.dev/v1alpha1",
    "kind": "ClusterAuthorizationPolicy",
    "metadata": {"name": "admin"},
    "spec": {
        "tier": "Admin",
        "priority": 1,
        "action": "DENY",
        "enforcementLevel": "NETWORK",
        "subject": {"namespaceSelector": {}, "podSelector": {}},
        "rules": [{}],
    },
}


def test_kubectl_waits_for_conditions_of_a_cluster_policy(server: ApiServer, namespace: str) -> None:
    proxies = [f"{namespace}/web-{number}" for number in range(2)]
    names = ["ClusterAuthorizationPolicy/admin"]
    wait = ("wait", "clusterauthorizationpolicy/admin", "--for=condition=Programmed", "--timeout=1s")

    async def test(ours: FollowingController) -> None:
        server.apply(CLUSTER_POLICY)
        theirs = {"type": "Theirs", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": NOW}
        patch = json.dumps({"status": {"conditions": [theirs]}})
        path = ("clusterauthorizationpolicy", "admin", "--subresource=status", "--type=merge", "-p", patch)
        server.kubectl("patch", *path, "--field-manager=theirs")
        ours.report = report_of(proxies[:1], policies=names)
        await ours.settle(namespace)
        server.kubectl(*wait, fails=True)
        assert columns(server, "clusterauthorizationpolicies")["PROBLEM"] == "PartiallyProgrammed"
        ours.report = report_of(proxies, policies=names)
        await ours.settle(namespace)
        server.kubectl(*wait)
        assert columns(server, "clusterauthorizationpolicies")["ACCEPTED"] == "True"
        stored = server.get("clusterauthorizationpolicy", "admin")["status"]
        assert stored["observedGeneration"] == 1
        assert [condition["type"] for condition in stored["conditions"]] == ["Theirs", "Accepted", "Programmed"]
        changed = {**CLUSTER_POLICY, "spec": {**CLUSTER_POLICY["spec"], "priority": 2}}
        server.apply(changed)
        server.kubectl(*wait, fails=True)  # this generation is not checked yet
        written = ours.writer.counts["written"]
        await ours.settle(namespace)
        await ours.settle(namespace)
        assert ours.writer.counts["written"] == written + 1
        server.kubectl("delete", "clusterauthorizationpolicy", "admin")

    run(server, test, *pods(namespace))


def events(server: ApiServer, namespace: str) -> list[Any]:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    return sorted(server.request("GET", path)[1]["items"], key=lambda event: str(event["reason"]))


def test_a_policy_with_errors_is_shown_as_such_and_has_an_event(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_services("web")), namespace)  # in a sidecar mesh
        await ours.settle(namespace)
        assert columns(server, PLURAL, "-n", namespace)["PROBLEM"] == "Invalid"
        (event,) = events(server, namespace)
        assert (event["type"], event["reason"], event["regarding"]["name"]) == ("Warning", "Invalid", "web")
        assert event["note"].startswith("EG2021: spec.targetRefs[0].kind:")
        ours.writer.mark_all()
        await ours.settle(namespace)
        assert len(events(server, namespace)) == 1

        ours.writer._recorder = EventRecorder(ours.connection, "another")  # it has read nothing yet
        ours.writer.mark_all()
        await ours.settle(namespace)
        (event,) = events(server, namespace)
        assert event["series"]["count"] == 2

        put(server, policy(to_pods(app="web")), namespace)
        proxies = [f"{namespace}/web-{number}" for number in range(2)]
        ours.report = report_of(proxies, policies=[f"AuthorizationPolicy/{namespace}/web"], generation=2)
        await ours.settle(namespace)
        assert [(event["type"], event["reason"]) for event in events(server, namespace)] == [
            ("Warning", "Invalid"),
            ("Normal", "Programmed"),
        ]

    run(server, test, *pods(namespace), service("web", namespace))


def test_events_are_limited_in_number(server: ApiServer, namespace: str) -> None:
    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        names = [f"AuthorizationPolicy/{namespace}/web"]
        for number in range(20):
            ours.report = report_of(rejecting={f"{namespace}/web-{number}": "bad"}, policies=names)
            ours.others = [pod(f"web-{number}", namespace)]
            await ours.settle(namespace)
            ours.writer.mark_all()
            await ours.writer.settle()
        assert len(events(server, namespace)) == 10
        assert ours.recorder.counts == {"written": 10, "dropped": 10}

    run(server, test)


def test_a_status_fits_the_limits_of_the_api_server(server: ApiServer, namespace: str) -> None:
    """The API server accepts a status with entries of maximum length."""
    long = "x" * 250
    many = [f"{namespace}/{long}{number}" for number in range(9)]

    async def test(ours: FollowingController) -> None:
        put(server, policy(to_pods(app="web")), namespace)
        names = [f"AuthorizationPolicy/{namespace}/web"]
        ours.report = report_of(rejecting=dict.fromkeys(many, "bad " * 5000), policies=names)
        await ours.settle(namespace)
        assert ours.writer.counts["failed"] == 0
        assert conditions(get(server, namespace))["Programmed"][1] == "NotEnforced"

    run(server, test, *(pod(name.rpartition("/")[2], namespace) for name in many))
