"""Placement of questions in an ambient mesh: a waypoint, if istiod has bound one, and the ztunnel of each pod."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tests.istio.callers import cluster_of, proxy_of_caller
from tests.istio.client import Call
from tests.istio.cluster import Cluster, address_of
from tests.istio.envoy import access_log
from tests.istio.gateways import GATEWAY_NAME
from tests.istio.identities import TestCa
from tests.istio.judging import judge_ztunnel
from tests.istio.listeners import Config, Site, waypoint_listener_at
from tests.istio.placing import Placed, Steps, twin
from tests.istio.questions import Caller, Destination, Unanswerable, caller_of, request_of
from tests.istio.tables import Manifest
from tests.istio.ztunnel import Connection, decide

_INTERNAL = "main_internal"


def waypoints(cluster: Cluster) -> list[str]:
    """Return the pods of all waypoints."""
    gateways = [one for one in cluster.of_kind("Gateway") if one["spec"].get("gatewayClassName") == "istio-waypoint"]
    names = ((one["metadata"]["namespace"], {GATEWAY_NAME: one["metadata"]["name"]}) for one in gateways)
    return [pod for namespace, labels in names for pod in cluster.selected(namespace, labels)]


class AmbientPlacement:
    """Places questions of one table, for which istiod has configured waypoints and ztunnels."""

    def __init__(self, cluster: Cluster, configured: Mapping[str, Any], ca: TestCa, folder: Path) -> None:
        self._cluster, self._ca = cluster, ca
        self._proxies: Any = configured["proxies"]
        self._callers: Any = configured.get("callers")
        self._state: Any = configured.get("ambient")
        self._log = access_log(folder)

    def place(self, placed: Placed, case: Manifest, destination: Destination) -> Steps:
        """Return the call to a waypoint, which plaintext callers bypass, and the decisions of ztunnels."""
        steps = Steps()
        caller = caller_of(case, self._cluster)
        waypoint, has_identity = self._next(case, destination) if caller.identity is not None else (None, False)
        if waypoint is not None:
            steps.calls.append(self._call(placed, case, caller, self._addressed(destination), waypoint))
            caller = Caller(self._cluster.identity(waypoint), address_of(self._cluster.pods[waypoint]))
        elif not has_identity:
            caller = Caller(None, caller.address)
        for pod in destination.pods:
            address = address_of(self._cluster.pods[pod])
            connection = Connection(caller.address, address, destination.port, caller.identity)
            selecting = (self._state["workloads"].get(pod) or {}).get("policies") or ()
            verdict = decide(self._state["policies"] or (), pod.partition("/")[0], selecting, connection)
            steps.answers.append(judge_ztunnel(verdict))
        return steps

    def _next(self, case: Manifest, destination: Destination) -> tuple[str | None, bool]:
        """Return the waypoint of a caller, and whether the waypoint sees its identity, or else the pod."""
        proxy = proxy_of_caller(case, self._cluster)
        if proxy is None:
            return self._waypoint_of(self._addressed(destination)), True
        if destination.service is None:  # only a ztunnel sends such calls to a waypoint
            return None, True
        hops = self._callers[f"{proxy['namespace']}/{proxy['name']}"].get(cluster_of(*destination.service))
        if not hops:
            raise Unanswerable("the proxy of the caller leads it nowhere")
        addresses = {hop["address"] for hop in hops}
        to_waypoint = [pod for pod in waypoints(self._cluster) if address_of(self._cluster.pods[pod]) in addresses]
        return next(iter(to_waypoint), None), all(hop["isTunnel"] for hop in hops)

    def _addressed(self, destination: Destination) -> Destination:
        """Return the destination of a connection: the pods, if a Service has no address."""
        service = self._cluster.service(destination.service[0]) if destination.service is not None else None
        is_headless = service is not None and service["spec"]["clusterIP"] == "None"
        return replace(destination, service=None) if is_headless else destination

    def _waypoint_of(self, destination: Destination) -> str | None:
        """Return the pod of the waypoint that istiod has bound to the destination."""
        if destination.service is not None:
            bound = self._state["services"].get(destination.service[0])
        else:
            bound = self._state["workloads"].get(destination.pods[0])
        if not bound or "waypoint" not in bound:
            return None
        address = str(ip_address(base64.b64decode(bound["waypoint"]["address"]["address"])))
        for service in self._cluster.of_kind("Service", ""):
            if service["spec"].get("clusterIP") == address:
                pods = self._cluster.selected(service["metadata"]["namespace"], service["spec"]["selector"])
                return pods[0]
        raise Unanswerable(f"nothing has the address of the waypoint, {address}")

    def _call(self, placed: Placed, case: Manifest, caller: Caller, destination: Destination, waypoint: str) -> Call:
        """Return the call to a waypoint, with a listener for it at the destination's address."""
        if destination.service is not None:
            key, port = destination.service
            service = self._cluster.service(key)
            assert service is not None
            address, host = service["spec"]["clusterIP"], ".".join(reversed(key.split("/")))
            http, bytes_ = (f"inbound-vip|{port}|{protocol}|{host}." for protocol in ("http", "tcp"))
        else:
            address, port = address_of(self._cluster.pods[destination.pods[0]]), destination.port
            http, bytes_ = "direct-http", "direct-tcp"
        address = twin(address, caller.address)
        if (address, port) not in placed.listeners:
            site = Site(address, port, self._ca, self._log)
            chains = self._chain(waypoint, http), self._chain(waypoint, bytes_)
            placed.listeners[address, port] = waypoint_listener_at(site, *chains)
        called = destination.service[0].partition("/")[2] if destination.service is not None else ""
        request = request_of(case, self._cluster, destination.pods, waypoint_of=called)
        return Call(caller.address, address, port, caller.identity, request, case.get("sni"))

    def _chain(self, waypoint: str, name: str) -> Config | None:
        """Return the chain of a waypoint with a name prefix."""
        listeners = self._proxies[waypoint]["listeners"]
        internal = next(each for each in listeners if each["name"] == _INTERNAL)
        return next((chain for chain in internal["filter_chains"] if chain["name"].startswith(name)), None)
