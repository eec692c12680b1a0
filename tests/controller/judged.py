"""A cluster whose API server sends every change to a replica of the controller."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eastgate.controller.admission.configuration import webhook_configurations
from eastgate.reports.crds import Webhook
from tests.authority.sources.objects import GROUP, policy
from tests.controller.replicas import SYSTEM, Replicas
from tests.programs import ApiServer

Plain = dict[str, Any]
_REVIEWS = re.compile(r'^eastgate_admission_requests_total\{[^}]*webhook="validate"[^}]*\} ([0-9.]+)$', re.MULTILINE)
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


class Cluster:
    """An API server, and a replica of the controller that serves its webhooks."""

    def __init__(self, server: ApiServer, replicas: Replicas) -> None:
        self.server = server
        self.replicas = replicas
        self.statements = 0

    def patch(self, path: str, change: Plain) -> tuple[int, str]:
        status, answer = self.server.request("PATCH", path, change)
        return status, str(answer.get("message", ""))

    def state(self, spec: Plain) -> None:
        """Create a ClusterInvariant, and wait until it is proven."""
        self.statements += 1
        path, name = "/apis/eastgate.dev/v1alpha1/clusterinvariants", f"i{self.statements}"
        self.server.create(
            path,
            {"apiVersion": "eastgate.dev/v1alpha1", "kind": "ClusterInvariant"}
            | {"metadata": {"name": name}, "spec": spec},
        )

        def is_proven() -> bool:
            _, stored = self.server.request("GET", f"{path}/{name}")
            return [each["reason"] for each in (stored.get("status") or {}).get("conditions") or ()] == ["Proven"]

        self.replicas.wait_until(is_proven)

    def reviews(self) -> float:
        """Return the number of reviews that the replica got."""
        return sum(float(number) for number in _REVIEWS.findall((self.replicas.fetch("a", "/metrics") or b"").decode()))


@contextmanager
def run_judged(
    folder: Path, definitions: Sequence[str] = ("eastgate",), options: Sequence[str] = ()
) -> Iterator[Cluster]:
    """Run an API server, and a replica with its account in a cluster, until it gets reviews."""
    for part in ("api", "replicas"):
        (folder / part).mkdir()
    with ApiServer(folder / "api") as server:
        server.install(*definitions)
        server.create("/api/v1/namespaces", {"metadata": {"name": SYSTEM}})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        account = {"kind": "ServiceAccount", "name": "eastgate", "namespace": SYSTEM}
        server.create(_BINDINGS, {"metadata": {"name": "eastgate"}, "roleRef": role, "subjects": [account]})
        kubeconfig = server.kubeconfig_for(f"{SYSTEM}/eastgate")
        with Replicas(server, folder / "replicas", options, kubeconfig) as replicas:
            replicas.start_all("a")
            url = f"https://localhost:{replicas.ports['a']['webhook']}"
            server.apply(*webhook_configurations(Webhook(SYSTEM, "eastgate", "", url)))
            broken = policy("default", "canary", ["web"]) | {"spec": {"targetRefs": []}}
            path = f"{policies_of('default')}?dryRun=All"
            replicas.wait_until(lambda: "EG" in str(server.request("POST", path, broken)[1].get("message")))
            yield Cluster(server, replicas)


def policies_of(namespace: str) -> str:
    return f"/apis/{GROUP}/v1alpha2/namespaces/{namespace}/authorizationpolicies"


def never(shop: str, to: Plain, **more: Any) -> Plain:
    return {"never": {"from": {"serviceAccounts": [f"{shop}/stranger"]}, "to": to}, "existingOnly": True, **more}
