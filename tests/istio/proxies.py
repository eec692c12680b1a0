"""Placement of calls to sidecars and gateways: a copy of the listener that decides, at the pod's own address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.istio.client import Call
from tests.istio.cluster import Cluster, address_of
from tests.istio.envoy import access_log
from tests.istio.identities import TestCa
from tests.istio.listeners import Config, Site, has_tls, listener_at
from tests.istio.placing import Placed, Steps, twin
from tests.istio.questions import Destination, caller_of, request_of
from tests.istio.tables import Manifest

_INBOUND = "virtualInbound"


class ProxyPlacement:
    """Places questions of one table, whose proxies istiod has configured."""

    def __init__(self, cluster: Cluster, configured: Mapping[str, Any], ca: TestCa, folder: Path) -> None:
        self._cluster, self._proxies, self._ca = cluster, configured["proxies"], ca
        self._log = access_log(folder)

    def place(self, placed: Placed, case: Manifest, destination: Destination) -> Steps:
        """Return the calls to each pod.

        A caller of the mesh uses plaintext if the port has no TLS, because its proxy would know this. The TLS of a
        gateway is for all clients. Plaintext bytes with a server name are the handshake of the application.
        """
        steps = Steps()
        caller = caller_of(case, self._cluster)
        for pod in destination.pods:
            address = twin(address_of(self._cluster.pods[pod]), caller.address)
            listener = self._listener(placed, pod, address, destination)
            http = request_of(case, self._cluster, [pod])
            is_tls = listener is not None and has_tls(listener)
            identity, sni = caller.identity if is_tls else None, case.get("sni")
            carries_tls = identity is None and http is None and sni is not None
            call = Call(caller.address, address, destination.port, identity, http, sni, carries_tls=carries_tls)
            if is_tls and destination.kind == "router":
                host = http.host.partition(":")[0] if http is not None else None
                call = replace(call, sni=sni or host, is_tls=True, carries_tls=False)
            steps.calls.append(call)
        return steps

    def _listener(self, placed: Placed, pod: str, address: str, destination: Destination) -> Config | None:
        key = (address, destination.port)
        if key not in placed.listeners:
            configuration = self._proxies[pod]
            routes = {each["name"]: each for each in configuration["routes"] or ()}
            is_sidecar = destination.kind == "sidecar"
            written = _listener_for(configuration["listeners"], None if is_sidecar else destination.port)
            if written is None:
                return None
            site = Site(address, destination.port, self._ca, self._log, None if is_sidecar else routes)
            placed.listeners[key] = listener_at(site, written)
        return placed.listeners[key]


def _listener_for(listeners: list[Config], port: int | None) -> Config | None:
    """Return the listener of a gateway's port, or the one for all inbound connections of a pod."""
    for listener in listeners:
        own = listener["address"].get("socket_address", {}).get("port_value")
        if listener["name"] == _INBOUND if port is None else own == port:
            return listener
    return None
