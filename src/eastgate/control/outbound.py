"""The outbound resources of proxies: how their applications reach Services.

Callers that differ in nothing but their names share these resources: in a cluster all pods of a namespace do. When pods
come and go, only the Services are looked at again that they stand behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.control.sites import ProxySite, upstreams_of_service
from eastgate.envoy.config.clusters import Upstream, service_resources
from eastgate.envoy.config.sidecar import Outbound, outbound_resources
from eastgate.envoy.server.resources import ResourceKey, XdsResource
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class OutboundChange:
    """The outbound resources that are new or different for a proxy, and those that are gone."""

    put: tuple[XdsResource, ...] = ()
    removed: tuple[ResourceKey, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.removed)


@dataclass(frozen=True, slots=True)
class _CallerClass:
    """What the outbound resources of a proxy depend on, beside the world."""

    namespace: str
    out: Outbound


@dataclass(slots=True)
class _Reached:
    """The Services as the callers of a class reach them, and the resources for that."""

    upstreams: dict[str, tuple[Upstream, ...]]  # by Service
    resources: dict[ResourceKey, XdsResource]


class OutboundResources:
    """The outbound resources of all proxies with an outbound listener."""

    def __init__(self) -> None:
        self._reached: dict[_CallerClass, _Reached] = {}

    def clear(self) -> None:
        """Forget everything, because anything may have changed."""
        self._reached.clear()

    def of(
        self, site: ProxySite, world: World, sites: Mapping[str, ProxySite], settings: Settings
    ) -> Iterable[XdsResource]:
        """Return the outbound resources of a proxy, which no policy changes."""
        caller = _class_of(site, world)
        reached = self._reached.get(caller)
        if reached is None:
            reached = self._reached[caller] = _Reached({}, {})
            self._renew(caller, reached, sorted(world.services), world, sites, settings)
        return reached.resources.values()

    def update(
        self, services: Collection[str], world: World, sites: Mapping[str, ProxySite], settings: Settings
    ) -> Mapping[str, OutboundChange]:
        """Look at some Services again; return what that changes for each proxy that it changes something for."""
        used = {key: _class_of(site, world) for key, site in sites.items() if site.calls_out}
        classes = set(used.values())
        self._reached = {caller: reached for caller, reached in self._reached.items() if caller in classes}
        changes = {
            caller: self._renew(caller, reached, sorted(services), world, sites, settings)
            for caller, reached in self._reached.items()
        }
        return {key: change for key, caller in used.items() if (change := changes.get(caller))}

    def _renew(
        self,
        caller: _CallerClass,
        reached: _Reached,
        services: Iterable[str],
        world: World,
        sites: Mapping[str, ProxySite],
        settings: Settings,
    ) -> OutboundChange:
        before: list[Upstream] = []
        after: list[Upstream] = []
        for key in services:
            before += reached.upstreams.pop(key, ())
            service = world.services.get(key)
            if service is not None:
                of_service = tuple(upstreams_of_service(service, world, sites, settings, caller.namespace))
                if of_service:
                    reached.upstreams[key] = of_service
                after += of_service
        if reached.resources and _names(before) == _names(after):  # the same hosts lead to the same clusters
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
        change = difference(reached.resources, resources)
        reached.resources = resources
        return change


def _class_of(site: ProxySite, world: World) -> _CallerClass:
    out = Outbound("127.0.0.1", None) if site.in_pod else Outbound(site.address, site.address)
    return _CallerClass(world.workloads[site.workload].namespace, out)


def _names(upstreams: Iterable[Upstream]) -> list[tuple[str, tuple[str, ...]]]:
    return [(upstream.name, upstream.hosts) for upstream in upstreams]


def difference(before: Mapping[ResourceKey, XdsResource], after: Mapping[ResourceKey, XdsResource]) -> OutboundChange:
    """Return what is new, different or gone."""
    changed = tuple(resource for key, resource in after.items() if _version(before, key) != resource.version)
    return OutboundChange(changed, tuple(sorted(before.keys() - after.keys())))


def _version(resources: Mapping[ResourceKey, XdsResource], key: ResourceKey) -> str | None:
    resource = resources.get(key)
    return resource.version if resource is not None else None
