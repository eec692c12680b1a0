"""Two replicas: one writes, and after its end the other does. Enforcement never changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.authority.sources.objects import CART, GROUP, policy
from tests.controller.replicas import Replicas
from tests.programs import ApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.real]


def condition(server: ApiServer, namespace: str, name: str, kind: str) -> dict[str, Any]:
    path = f"/apis/{GROUP}/v1alpha2/namespaces/{namespace}/authorizationpolicies/{name}"
    _, obj = server.request("GET", path)
    ancestors = (obj.get("status") or {}).get("ancestors") or []
    conditions = [each for entry in ancestors for each in entry["conditions"] if each["type"] == kind]
    return conditions[0] if conditions else {}


@pytest.mark.parametrize("is_asked", [True, False], ids=["terminated", "killed"])
def test_another_replica_takes_over(own_api_server: ApiServer, tmp_path: Path, is_asked: bool) -> None:
    server = own_api_server
    server.install("eastgate")
    namespace = server.namespace("shop")
    policies = f"/apis/{GROUP}/v1alpha2/namespaces/{namespace}/authorizationpolicies"
    server.create(f"/api/v1/namespaces/{namespace}/pods", CART)

    def is_observed(name: str, generation: int) -> Callable[[], bool]:
        return lambda: condition(server, namespace, name, "Accepted").get("observedGeneration") == generation

    with Replicas(server, tmp_path) as replicas:
        replicas.start_all("a", "b")
        server.create(policies, policy(namespace, "cart", ["web"]))
        replicas.wait_until(is_observed("cart", 1))
        first = replicas.leader
        assert first in ("a", "b")
        replicas.lose(first, is_asked=is_asked)
        server.request("PATCH", f"{policies}/cart", {"spec": policy(namespace, "cart", ["batch"])["spec"]})
        server.create(policies, policy(namespace, "more", ["web"]))
        replicas.wait_until(is_observed("cart", 2))
        replicas.wait_until(is_observed("more", 1))
        assert replicas.leader == ({"a", "b"} - {first}).pop()
        assert condition(server, namespace, "cart", "Programmed")["status"] == "False"  # the pod has no proxy
