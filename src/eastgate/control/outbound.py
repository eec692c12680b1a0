"""The outbound resources of proxies: the paths from their applications to Services.

Callers that differ only in their names share these resources. In a cluster, all pods of a namespace share them. When
pods come and go, only their Services are updated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from eastgate.basics.records import dataclass
from eastgate.control.capturing import captured_outbound
from eastgate.control.fleet import Fleet
from eastgate.control.sites import ProxySite, upstreams_of_service
from eastgate.envoy.config.capture import outbound_capture_resources
from eastgate.envoy.config.clusters import Upstream, service_resources
from eastgate.envoy.config.sidecar import Outbound, outbound_resources
from eastgate.envoy.server.resources import ResourceKey, XdsResource


@dataclass(frozen=True, slots=True)
class OutboundChange:
    """The outbound resources that are new or different for a proxy, and those that are gone."""

    put: tuple[XdsResource, ...] = ()
    removed: tuple[ResourceKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.removed)


@dataclass(frozen=True, slots=True)
class _CallerClass:
    """The properties of a caller on which its outbound resources depend."""

    namespace: str
    out: Outbound


@dataclass(slots=True)
class _ReachableServices:
    """The paths to Services for a class of callers, and their resources."""

    upstreams: dict[str, tuple[Upstream, ...]]  # by Service
    resources: dict[ResourceKey, XdsResource]


class OutboundResources:
    """The outbound resources of all sidecars of a fleet. They do not depend on policies.

    Sidecars in pods that redirect all connections share them, if their pods have addresses of the same IP versions.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._reached: dict[_CallerClass, _ReachableServices] = {}
        self._captured: dict[frozenset[bool], dict[ResourceKey, XdsResource]] = {}

    def clear(self) -> None:
        """Forget all resources, because anything may have changed."""
        self._reached.clear()
        self._captured.clear()

    def of(self, node: str) -> Iterable[XdsResource]:
        """Return the outbound resources of a sidecar; none if it has no outbound listener."""
        site = self._fleet.sites[node]
        if not site.calls_out:
            return ()
        if site.captured:
            return self._of_captured(site).values()
        caller = self._class_of(site)
        reached = self._reached.get(caller)
        if reached is None:
            reached = self._reached[caller] = _ReachableServices({}, {})
            self._renew(caller, reached, sorted(self._fleet.authority.world.services))
        return reached.resources.values()

    def follow(
        self, services: Collection[str], served: Mapping[str, ProxySite], *, captured: bool
    ) -> dict[str, OutboundChange]:
        """Update the resources of some Services; return the change for each affected proxy.

        With `captured`, also update the outbound resources of the `served` pods.
        """
        bound = {
            node: self._class_of(site)
            for node, site in self._fleet.sites.items()
            if site.calls_out and not site.captured
        }
        classes = set(bound.values())
        self._reached = {caller: reached for caller, reached in self._reached.items() if caller in classes}
        changes = {caller: self._renew(caller, reached, sorted(services)) for caller, reached in self._reached.items()}
        of_bound = {node: change for node, caller in bound.items() if (change := changes.get(caller))}
        return {**of_bound, **(self._follow_captured(served) if captured else {})}

    def _class_of(self, site: ProxySite) -> _CallerClass:
        out = Outbound("127.0.0.1", None) if site.in_pod else Outbound(site.address, site.address)
        return _CallerClass(self._fleet.authority.world.workloads[site.workload].namespace, out)

    def _renew(self, caller: _CallerClass, reached: _ReachableServices, services: Iterable[str]) -> OutboundChange:
        authority, sites = self._fleet.authority, self._fleet.sites
        before: list[Upstream] = []
        after: list[Upstream] = []
        for key in services:
            before += reached.upstreams.pop(key, ())
            service = authority.world.services.get(key)
            if service is not None:
                found = upstreams_of_service(service, authority.world, sites, authority.settings, caller.namespace)
                if of_service := tuple(found):
                    reached.upstreams[key] = of_service
                after += of_service
        if reached.resources and _names(before) == _names(after):  # the same hosts still lead to the same clusters
            renewed = {
                resource.key: resource
                for old, new in zip(before, after, strict=True)
                if old != new
                for resource in service_resources(new.name, new, caller.out.source)
            }
            resources = reached.resources | renewed
        else:
            every = (upstream for key in sorted(reached.upstreams) for upstream in reached.upstreams[key])
            resources = {resource.key: resource for resource in outbound_resources(caller.out, every)}
        change = _difference(reached.resources, resources)
        reached.resources = resources
        return change

    # Connections from pods

    def _of_captured(self, site: ProxySite) -> Mapping[ResourceKey, XdsResource]:
        families = _families(site)
        if families not in self._captured:
            self._captured[families] = {resource.key: resource for resource in self._make_captured(site)}
        return self._captured[families]

    def _follow_captured(self, served: Mapping[str, ProxySite]) -> dict[str, OutboundChange]:
        sites = {node: site for node, site in served.items() if site.captured}
        before, self._captured = self._captured, {}
        changes: dict[frozenset[bool], OutboundChange] = {}
        for site in sites.values():
            families = _families(site)
            if families in before and families not in changes:
                changes[families] = _difference(before[families], self._of_captured(site))
        return {node: change for node, site in sites.items() if (change := changes.get(_families(site)))}

    def _make_captured(self, site: ProxySite) -> Iterable[XdsResource]:
        fleet = self._fleet
        gateways = {
            gateway.key: [port for port, group in fleet.plans.listeners(node).items() if not group.tls]
            for node, gateway in fleet.gateways.items()
            if gateway.in_pod
        }
        outbound = captured_outbound(fleet.authority.world, fleet.sites, fleet.authority.settings, gateways)
        return outbound_capture_resources(site.addresses, outbound)


def _families(site: ProxySite) -> frozenset[bool]:
    """Return the IP versions of a pod's addresses: True for IPv6."""
    return frozenset(":" in address for address in site.addresses)


def _names(upstreams: Iterable[Upstream]) -> list[tuple[str, tuple[str, ...]]]:
    return [(upstream.name, upstream.hosts) for upstream in upstreams]


def _difference(before: Mapping[ResourceKey, XdsResource], after: Mapping[ResourceKey, XdsResource]) -> OutboundChange:
    """Return the new, different and removed resources."""
    changed = tuple(resource for key, resource in after.items() if _version(before, key) != resource.version)
    return OutboundChange(changed, tuple(sorted(before.keys() - after.keys())))


def _version(resources: Mapping[ResourceKey, XdsResource], key: ResourceKey) -> str | None:
    resource = resources.get(key)
    return resource.version if resource is not None else None
