"""Places whole questions: at the first proxy, and behind a gateway at the workloads that its routes lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.istio.ambient import AmbientPlacement
from tests.istio.cluster import Cluster, address_of
from tests.istio.identities import TestCa
from tests.istio.listeners import Config, clusters_of_route
from tests.istio.placing import Placed, Steps
from tests.istio.proxies import ProxyPlacement
from tests.istio.questions import Caller, Destination, Unanswerable, caller_of, service_destination
from tests.istio.tables import Manifest


class Placer:
    """Places questions of one table."""

    def __init__(self, cluster: Cluster, configured: Mapping[str, Any], ca: TestCa, folder: Path) -> None:
        self._cluster, self._proxies = cluster, configured["proxies"]
        self._envoys = ProxyPlacement(cluster, configured, ca, folder)
        self._ambient = AmbientPlacement(cluster, configured, ca, folder)

    def place(self, placed: Placed, case: Manifest, destination: Destination) -> Steps:
        """Return the steps of a question."""
        caller = caller_of(case, self._cluster)
        steps = self._at(placed, case, caller, destination)
        if destination.kind == "router" and "http" in case:
            gateway = destination.pods[0]
            own = Caller(self._cluster.identity(gateway), address_of(self._cluster.pods[gateway]), is_gateway=True)
            forwarded = {**case, "forwardedFor": [*_listed(case.get("forwardedFor")), caller.address], "sni": None}
            for name, behind in self._behind(gateway):
                steps.onward[name] = self._at(placed, forwarded, own, behind)
        return steps

    def _at(self, placed: Placed, case: Manifest, caller: Caller, destination: Destination) -> Steps:
        if destination.kind == "none":
            return Steps()
        placement = self._ambient if destination.kind == "ambient" else self._envoys
        return placement.place(placed, case, caller, destination)

    def _behind(self, gateway: str) -> Iterator[tuple[str, Destination]]:
        """Yield the clusters that the routes of a gateway lead to, and the pods of each that is a Service."""
        for name in sorted(set(_clusters(self._proxies[gateway]["routes"] or ()))):
            try:
                yield name, self._service(name)
            except Unanswerable:
                continue  # nothing there decides

    def _service(self, cluster: str) -> Destination:
        """Return the destination of a cluster, which is named outbound|PORT|SUBSET|HOST."""
        _, port, _, host = cluster.split("|")
        name, namespace = host.split(".")[:2]
        return service_destination(f"{namespace}/{name}", int(port), self._cluster)


def services_behind(cluster: Cluster) -> Iterator[Destination]:
    """Yield every Service that a gateway could lead to."""
    for service in cluster.of_kind("Service", ""):
        for port in service["spec"].get("ports") or ():
            key = f"{service['metadata']['namespace']}/{service['metadata']['name']}"
            try:
                yield service_destination(key, port["port"], cluster)
            except Unanswerable:
                continue


def _clusters(routes: Iterable[Config]) -> Iterator[str]:
    for configuration in routes:
        for host in configuration.get("virtual_hosts", ()):
            for route in host.get("routes", ()):
                yield from (name for name in clusters_of_route(route) if name.count("|") == 3)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []
