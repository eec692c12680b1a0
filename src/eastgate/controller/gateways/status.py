"""The status of the GatewayClasses and Gateways of Eastgate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from eastgate.basics.records import dataclass
from eastgate.controller.conditions import StatusCondition, merge_conditions
from eastgate.controller.gateways.listeners import listener_conditions, listener_status
from eastgate.controller.gateways.objects import AddressError, ObjectKey, infrastructure_metadata, requested_address
from eastgate.controller.gateways.parameters import ParameterError
from eastgate.controller.gateways.routes import GatewayStanding

GATEWAY_CONDITIONS: Final = ("Accepted", "Programmed", "ResolvedRefs")
_MAX_ADDRESSES: Final = 16
_UNREADABLE: Final = "Eastgate cannot read this Gateway"


@dataclass(frozen=True, slots=True)
class GatewayProgress:
    """Whether all proxies of a Gateway have acknowledged its configuration. `detail` names the missing part."""

    programmed: bool
    detail: str = ""


_UNKNOWN_PROGRESS: Final = GatewayProgress(False, "no proxy has connected yet")


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """The facts about a Gateway beside its listeners.

    `parameters` is the error in its parameters, and `unreadable` why it cannot be read. `service` is its Service.
    `foreign` are objects with its names that belong to another owner.
    """

    parameters: str | None = None
    unreadable: str | None = None
    service: Mapping[str, Any] | None = None
    foreign: tuple[ObjectKey, ...] = ()
    progress: GatewayProgress = _UNKNOWN_PROGRESS


def class_status(gateway_class: Mapping[str, Any], problem: str | None, now: str) -> dict[str, Any]:
    """Return the status of a GatewayClass of Eastgate. `problem` is the error in its parameters, or None."""
    if problem is None:
        accepted = StatusCondition.true("Accepted", "Accepted")
    else:
        accepted = StatusCondition.false("Accepted", "InvalidParameters", problem)
    before = gateway_class.get("status") or {}
    generation = int(gateway_class["metadata"].get("generation") or 0)
    return {**before, "conditions": merge_conditions(before.get("conditions"), [accepted], generation, now)}


def gateway_status(
    gateway: Mapping[str, Any], standing: GatewayStanding, facts: GatewayFacts, now: str
) -> dict[str, Any]:
    """Return the status of a Gateway of Eastgate; equal to the existing one if nothing changes."""
    before = gateway.get("status") or {}
    generation = int(gateway["metadata"].get("generation") or 0)
    accepted = _accepted(gateway, standing, facts)
    addresses = service_addresses(facts.service)
    programmed = _programmed(gateway, standing, facts, accepted, addresses)
    conditions = [accepted, programmed, *_client_certificate(gateway)]
    pending = None if programmed.status == "True" else programmed.message
    listeners_before = {entry.get("name"): entry for entry in before.get("listeners") or ()}
    listeners = [
        listener_status(
            of_listener,
            merge_conditions(
                (listeners_before.get(of_listener.listener.name) or {}).get("conditions"),
                listener_conditions(of_listener, pending),
                generation,
                now,
            ),
        )
        for of_listener in standing.listeners
    ]
    lists = {"listeners": listeners, "addresses": addresses}
    return {
        **before,
        "conditions": merge_conditions(before.get("conditions"), conditions, generation, now, ours=GATEWAY_CONDITIONS),
        **{key: entries for key, entries in lists.items() if entries or before.get(key)},
    }


def service_addresses(service: Mapping[str, Any] | None) -> list[dict[str, str]]:
    """Return the addresses of a Service in the form of a Gateway's status."""
    if service is None:
        return []
    if service["spec"].get("type") != "LoadBalancer":
        own = service["spec"].get("clusterIPs") or [service["spec"].get("clusterIP")]
        return [{"type": "IPAddress", "value": address} for address in own if address and address != "None"]
    addresses: list[dict[str, str]] = []
    for ingress in ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ():
        if ingress.get("ip"):
            addresses.append({"type": "IPAddress", "value": ingress["ip"]})
        elif ingress.get("hostname"):
            addresses.append({"type": "Hostname", "value": ingress["hostname"]})
    return addresses[:_MAX_ADDRESSES]


def _accepted(gateway: Mapping[str, Any], standing: GatewayStanding, facts: GatewayFacts) -> StatusCondition:
    if standing.gateway is None:
        return StatusCondition.false("Accepted", "Invalid", facts.unreadable or _UNREADABLE)
    if facts.parameters is not None:
        return StatusCondition.false("Accepted", "InvalidParameters", facts.parameters)
    try:
        infrastructure_metadata(gateway)
        requested_address(gateway)
    except ParameterError as error:
        return StatusCondition.false("Accepted", "InvalidParameters", str(error))
    except AddressError as error:
        return StatusCondition.false("Accepted", "UnsupportedAddress", str(error))
    broken = [entry for entry in standing.listeners if not entry.is_usable]
    if broken:
        names = ", ".join(entry.listener.name for entry in broken)
        works = len(broken) < len(standing.listeners) or any(entry.is_open for entry in broken)
        build = StatusCondition.true if works else StatusCondition.false
        return build("Accepted", "ListenersNotValid", f"listeners that accept no connections: {names}")
    if not standing.listeners:
        return StatusCondition.false("Accepted", "ListenersNotValid", "there are no listeners")
    return StatusCondition.true("Accepted", "Accepted", _remark(gateway))


def _remark(gateway: Mapping[str, Any]) -> str:
    allowed = ((gateway["spec"].get("allowedListeners") or {}).get("namespaces") or {}).get("from") or "None"
    return "" if allowed == "None" else "ListenerSets are not supported: their listeners are not served"


def _programmed(
    gateway: Mapping[str, Any],
    standing: GatewayStanding,
    facts: GatewayFacts,
    accepted: StatusCondition,
    addresses: list[dict[str, str]],
) -> StatusCondition:
    if accepted.status != "True":
        return StatusCondition.false("Programmed", "Invalid", accepted.message)
    if facts.foreign:
        names = ", ".join(f"{kind} {namespace}/{name}" for kind, namespace, name in facts.foreign)
        return StatusCondition.false(
            "Programmed", "NoResources", f"objects of these names exist and have another owner: {names}"
        )
    if not any(entry.is_usable for entry in standing.listeners):
        return StatusCondition.false("Programmed", "Invalid", accepted.message)
    if not addresses:
        return StatusCondition.false("Programmed", "AddressNotAssigned", "the Service has no address yet")
    asked = requested_address(gateway)
    if asked is not None and asked not in (address["value"] for address in addresses):
        return StatusCondition.false("Programmed", "AddressNotUsable", f"the Service did not get the address {asked}")
    if not facts.progress.programmed:
        return StatusCondition.false("Programmed", "Pending", facts.progress.detail or "proxies are being configured")
    return StatusCondition.true("Programmed", "Programmed")


def _client_certificate(gateway: Mapping[str, Any]) -> list[StatusCondition]:
    backend = ((gateway["spec"].get("tls") or {}).get("backend")) or {}
    if not backend.get("clientCertificateRef"):
        return []
    message = "tls.backend.clientCertificateRef is not supported: backends see the certificate of the mesh"
    return [StatusCondition.false("ResolvedRefs", "InvalidClientCertificateRef", message)]
