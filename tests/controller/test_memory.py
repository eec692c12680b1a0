"""The memory of a replica: an owner of a namespace cannot exhaust it, and used memory is released."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.authority.sources.large import LARGE, path_of
from tests.authority.sources.objects import CART, GROUP, policy
from tests.controller.replicas import Replicas
from tests.programs import ApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.real]

_SIZE = 900_000  # bytes; an API server stores no more than 1.5 MB


def resident(pid: int) -> int:
    """Return the memory of a process in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024


def condition_of(server: ApiServer, obj: dict[str, Any], kind: str = "Accepted") -> dict[str, Any]:
    found, stored = server.request("GET", f"{path_of(obj)}/{obj['metadata']['name']}")
    ancestors = ((stored.get("status") or {}).get("ancestors") or []) if found == 200 else []
    conditions = [each for entry in ancestors for each in entry["conditions"] if each["type"] == kind]
    return conditions[0] if conditions else {}


def delete(server: ApiServer, objects: Iterable[dict[str, Any]]) -> None:
    for obj in objects:
        status, answer = server.request("DELETE", f"{path_of(obj)}/{obj['metadata']['name']}")
        assert status == 200, answer


def follow(server: ApiServer, replicas: Replicas, namespace: str, name: str) -> None:
    """Wait until a replica has read all earlier objects: policies of a kind arrive in the order of their changes."""
    last = policy(namespace, name, ["web"])
    server.create(path_of(last), last)
    replicas.wait_until(lambda: bool(condition_of(server, last)))


def test_large_policies_that_select_nothing_cost_a_replica_little(own_api_server: ApiServer, tmp_path: Path) -> None:
    """This holds without admission. Without limits, each policy took sixty times its size, mostly for ever."""
    server = own_api_server
    server.install("eastgate", "istio")
    namespace = server.namespace("owner")
    shapes = ("accounts", "peers", "principals")
    objects = [LARGE[shapes[number % 3]](namespace, f"large-{number}", _SIZE) for number in range(19)]
    of_gep = [obj for obj in objects if obj["apiVersion"].startswith(GROUP)]
    with Replicas(server, tmp_path) as replicas:
        replicas.start_all("a")
        follow(server, replicas, namespace, "first")
        pid = replicas.processes["a"].pid
        start = resident(pid)
        for obj in objects:
            server.create(path_of(obj), obj)
        replicas.wait_until(lambda: all(condition_of(server, obj) for obj in of_gep))
        accepted = condition_of(server, of_gep[0])
        assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
        assert "EG0142" in accepted["message"]
        with_policies = resident(pid)
        delete(server, objects)
        follow(server, replicas, namespace, "second")
        after = resident(pid)
    assert with_policies < start + 150, (start, with_policies, after)
    assert after < start + 150, (start, with_policies, after)


def test_memory_comes_back_when_policies_are_deleted(own_api_server: ApiServer, tmp_path: Path) -> None:
    """With very high limits: hardly any memory of policies that were read remains."""
    server = own_api_server
    server.install("eastgate")
    namespace = server.namespace("owner")
    objects = [LARGE["accounts"](namespace, f"large-{number}", _SIZE // 2) for number in range(8)]
    with Replicas(server, tmp_path, ("--set", "policyLimit=1Gi", "--set", "namespaceLimit=1Gi")) as replicas:
        replicas.start_all("a")
        follow(server, replicas, namespace, "first")
        pid = replicas.processes["a"].pid
        start = resident(pid)
        for obj in objects:
            server.create(path_of(obj), obj)
        replicas.wait_until(lambda: all(condition_of(server, obj).get("status") == "True" for obj in objects))
        with_policies = resident(pid)
        delete(server, objects)
        follow(server, replicas, namespace, "second")
        replicas.wait_until(lambda: resident(pid) < start + 60)
    assert with_policies < start + 250, (start, with_policies)


def test_the_newest_policies_of_a_namespace_are_beyond_its_limit(own_api_server: ApiServer, tmp_path: Path) -> None:
    """All replicas select the same policies, until there is space again."""
    server = own_api_server
    server.install("eastgate")
    namespace = server.namespace("owner")
    server.create(f"/api/v1/namespaces/{namespace}/pods", CART)
    objects = [LARGE["accounts"](namespace, name, 5_000) for name in ("b-first", "a-second")]

    def states() -> list[str | None]:
        return [condition_of(server, obj).get("reason") for obj in objects]

    with Replicas(server, tmp_path, ("--set", "namespaceLimit=20Ki")) as replicas:
        replicas.start_all("a", "b")
        server.create(path_of(objects[0]), objects[0])
        replicas.wait_until(lambda: states()[0] == "Accepted")
        server.wait_until(lambda: is_later(server, objects[0], namespace))
        server.create(path_of(objects[1]), objects[1])
        replicas.wait_until(lambda: states() == ["Accepted", "Invalid"])
        assert "EG0143" in condition_of(server, objects[1])["message"]
        leader = replicas.leader
        replicas.lose(leader, is_asked=True)
        replicas.wait_until(lambda: replicas.leader not in ("", leader))
        delete(server, objects[:1])
        replicas.wait_until(lambda: states()[1] == "Accepted")


def is_later(server: ApiServer, obj: dict[str, Any], namespace: str) -> bool:
    """Return whether an object that is created now gets a later second than this one."""
    _, stored = server.request("GET", f"{path_of(obj)}/{obj['metadata']['name']}")
    probe = server.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"generateName": "probe-"}})
    return bool(probe["metadata"]["creationTimestamp"] > stored["metadata"]["creationTimestamp"])
