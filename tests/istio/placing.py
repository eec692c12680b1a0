"""Places the proxies of a table: which listeners an Envoy needs for its questions, and what is sent to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from tests.istio.client import Call
from tests.istio.cluster import Cluster, address_of
from tests.istio.envoy import access_log
from tests.istio.identities import TestCa
from tests.istio.judging import Answer
from tests.istio.listeners import Config, Site, has_tls, listener_at
from tests.istio.questions import Caller, Destination, Unanswerable, caller_of, request_of
from tests.istio.tables import Manifest

_INBOUND = "virtualInbound"
_SIX = 0xFD99 << 112


@dataclass
class Placed:
    """The listeners of a table, by address and port, and the calls of each of its questions.

    Some questions, or parts of them, have answers without a call.
    """

    listeners: dict[tuple[str, int], Config] = field(default_factory=dict)
    calls: dict[int, list[Call]] = field(default_factory=dict)
    answers: dict[int, list[Answer]] = field(default_factory=dict)


class Placement:
    """Places questions of one table, whose proxies istiod has configured."""

    def __init__(self, cluster: Cluster, configured: Mapping[str, Any], ca: TestCa, folder: Path) -> None:
        self._cluster, self._proxies, self._ca = cluster, configured["proxies"], ca
        self._log = access_log(folder)

    def add(self, placed: Placed, number: int, case: Manifest, destination: Destination) -> None:
        """Place one question."""
        caller = caller_of(case, self._cluster)
        for pod in destination.pods:
            address = twin(address_of(self._cluster.pods[pod]), caller.address)
            listener = self._listener(placed, pod, address, destination)
            call = self._call(case, caller, address, destination.port, listener)
            placed.calls.setdefault(number, []).append(call)

    def _call(self, case: Manifest, caller: Caller, address: str, port: int, listener: Config | None) -> Call:
        """Return the call; a caller of the mesh speaks plaintext where the port has no TLS, as it has learned."""
        http = request_of(case, self._cluster)
        is_tls = listener is not None and has_tls(listener)
        sni = case.get("sni")
        return Call(caller.address, address, port, caller.identity if is_tls else None, http, sni)

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


def twin(address: str, caller: str) -> str:
    """Return an address of the family of the caller's that stands for a pod's address."""
    if ":" in caller and ":" not in address:
        return str(ip_address(_SIX | int(ip_address(address))))
    if ":" in address and ":" not in caller:
        raise Unanswerable("an IPv4 caller of a pod that has IPv6 only")
    return address


def _listener_for(listeners: list[Config], port: int | None) -> Config | None:
    """Return the listener of a gateway's port, or the one that all inbound connections of a pod come through."""
    for listener in listeners:
        own = listener["address"].get("socket_address", {}).get("port_value")
        if listener["name"] == _INBOUND if port is None else own == port:
            return listener
    return None
