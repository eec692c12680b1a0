"""Declarations of the containers of a pod: ports, and the probes that the kubelet sends to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from eastgate.cluster import codes
from eastgate.cluster.pods import MESH_PROXIES, ContainerPort, HttpProbe
from eastgate.cluster.shapes import NAMED_PORT, PORT, TEXT, Of, each, given, record
from eastgate.ir.paths import sent_path
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, ListOf, Text

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


# Shapes


def _protocol_problems(protocol: str) -> Iterator[Problem]:
    if protocol and protocol not in _PROTOCOLS:
        is_wrong_case = protocol.upper() in _PROTOCOLS
        way_out = f"write {protocol.upper()}" if is_wrong_case else "write TCP, UDP or SCTP"
        yield Problem(codes.BAD_PROTOCOL, f"`{protocol}` is not a protocol of a port", way_out)


PROTOCOL = given(Text("a protocol", Demand(_protocol_problems)))


def ports(key: str) -> ListOf[None]:
    """Return the shape of a list of ports; `key` is the field with the number."""
    number: Of = Field(PORT, required=True, into="number")
    return each({key: number, "name": TEXT, "protocol": PROTOCOL}, make=ContainerPort)


def containers(*, probed: bool = True) -> dict[str, Of | ListOf[None]]:
    """Return the fields of a pod's spec that hold containers.

    Without `probed`, the probes do not come from the kubelet, and are not read.
    """
    probe = record(
        {"httpGet": record({"port": Field(NAMED_PORT, required=True), "path": TEXT})},
        make=lambda port=None, path="": (port, path),
    )
    probes = dict.fromkeys(_PROBES if probed else (), probe)
    container = each({"name": TEXT, "ports": ports("containerPort"), **probes, "restartPolicy": TEXT}, make=_container)
    return {"containers": container, "initContainers": container}


# Meaning


_Probe: TypeAlias = tuple[int | str | None, str]  # port and path


class Container(NamedTuple):
    """The declarations of a container."""

    name: str
    ports: tuple[ContainerPort, ...]
    probes: tuple[HttpProbe, ...]
    restarted: bool


def _container(
    name: str = "", ports: tuple[ContainerPort, ...] = (), restart_policy: str = "", **probes: _Probe
) -> Container:
    read = [_probe(port, path, ports) for port, path in probes.values()] if probes else ()
    return Container(name, ports, tuple(filter(None, read)), restart_policy == "Always")


def of_containers(main: tuple[Container, ...], initial: tuple[Container, ...]) -> dict[str, Any]:
    """Return the declarations of the containers of a pod, under their names in a `Pod`.

    Containers come first, then sidecars: the order in which Kubernetes resolves a port's name.
    """
    running = [*main, *[container for container in initial if container.restarted]]
    probes = [probe for container in (*main, *initial) for probe in container.probes]
    return {
        "ports": tuple([port for container in running for port in container.ports]),
        "init_ports": tuple([port for container in initial if not container.restarted for port in container.ports]),
        "probes": tuple(dict.fromkeys(probes)),
        "mesh_proxies": tuple([container.name for container in running if container.name in MESH_PROXIES]),
    }


def _probe(port: int | str | None, path: str, declared: tuple[ContainerPort, ...]) -> HttpProbe | None:
    """Return a probe by HTTP. Other probes, and probes to an undeclared port, allow no request."""
    if isinstance(port, str):
        port = next((of.number for of in declared if port and of.name == port and of.protocol == "TCP"), None)
    # The kubelet adds the slash to a path that lacks it, and to an empty path.
    rooted = path.startswith("/")
    return HttpProbe(port, sent_path(path if rooted else f"/{path}"), rooted or not path) if port else None
