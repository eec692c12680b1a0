"""The container that Linkerd's injector adds to every pod of the mesh: its named ports and probes, in no manifest."""

from __future__ import annotations

from collections.abc import Container, Mapping

from eastgate.cluster import HttpProbe, Workload, World
from eastgate.dialects.linkerd.values import is_port

_ADMIN = "linkerd-admin"
# The name of each port, the annotation that changes it, and its default.
_PORTS = {
    "linkerd-proxy": ("config.linkerd.io/inbound-port", 4143),
    _ADMIN: ("config.linkerd.io/admin-port", 4191),
}
PORT_ANNOTATIONS = tuple(annotation for annotation, _ in _PORTS.values())
_PROBES = ("/live", "/ready")


def injected_ports(workload: Workload, world: World) -> Mapping[str, int]:
    """Return the ports that the injector adds, by name.

    There are none outside of the cluster. A pod that declares the name was read from a cluster, with the container.
    """
    if not workload.is_pod:
        return {}
    annotations = {**world.namespace(workload.namespace).annotations, **workload.annotations}
    return {
        name: int(annotations[key]) if is_port(annotations.get(key, "")) else usual
        for name, (key, usual) in _PORTS.items()
        if not workload.ports_named(name)
    }


def injected_probes(workload: Workload, world: World) -> tuple[HttpProbe, ...]:
    """Return the probes of the container that the injector adds."""
    admin = injected_ports(workload, world).get(_ADMIN)
    return tuple(HttpProbe(admin, path) for path in _PROBES) if admin is not None else ()


def probes_with(workload: Workload, owned: Container[int], world: World) -> tuple[HttpProbe, ...]:
    """Return the probes of a workload, and those of its proxy on ports that a Server owns."""
    return (*workload.probes, *(probe for probe in injected_probes(workload, world) if probe.port in owned))


def ports_named(workload: Workload, name: str, world: World) -> frozenset[int]:
    """Return the numbers of all TCP ports of that name, with those that the injector adds."""
    injected = injected_ports(workload, world).get(name)
    return workload.ports_named(name) if injected is None else frozenset({injected})
