"""Declarations of the containers of a pod: ports, and the probes that the kubelet sends to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from eastgate.cluster import codes
from eastgate.cluster.fields import Data, entries, mapping, number, text
from eastgate.cluster.pods import MESH_PROXIES, ContainerPort, HttpProbe
from eastgate.cluster.shapes import NAMED_PORT, PORT, TEXT, Of, each, record
from eastgate.ir.paths import sent_path
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, ListOf, Text

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


# Shapes


def _protocol_problems(protocol: str) -> Iterator[Problem]:
    if protocol and protocol not in _PROTOCOLS:
        is_wrong_case = protocol.upper() in _PROTOCOLS
        way_out = f"write {protocol.upper()}" if is_wrong_case else "write TCP, UDP or SCTP"
        yield Problem(codes.BAD_PROTOCOL, f"`{protocol}` is not a protocol of a port", way_out)


PROTOCOL: Text[None] = Text("a protocol", Demand(_protocol_problems))


def ports(key: str) -> ListOf[None]:
    """Return the shape of a list of ports; `key` is what the number is called."""
    return each({key: Field(PORT, required=True), "name": TEXT, "protocol": PROTOCOL})


_PROBE = record({"httpGet": record({"port": Field(NAMED_PORT, required=True), "path": TEXT})})


def containers(*, probed: bool = True) -> dict[str, Of | ListOf[None]]:
    """Return the fields of a pod's spec that hold containers.

    Without `probed`, somebody else than the kubelet sends the probes.
    """
    probes = dict.fromkeys(_PROBES if probed else (), _PROBE)
    container = each({"name": TEXT, "ports": ports("containerPort"), **probes, "restartPolicy": TEXT})
    return {"containers": container, "initContainers": container}


# Meaning


class Containers(NamedTuple):
    """The declarations of the containers of a pod, under the names that they have in a `Pod`."""

    ports: tuple[ContainerPort, ...]
    init_ports: tuple[ContainerPort, ...]
    probes: tuple[HttpProbe, ...]
    mesh_proxies: tuple[str, ...]


class _Container(NamedTuple):
    name: str
    ports: tuple[ContainerPort, ...]
    probes: tuple[HttpProbe, ...]
    restarted: bool


def read_containers(spec: Data, *, probed: bool = True) -> Containers:
    """Return containers first, then sidecars: the order in which Kubernetes resolves a port's name."""
    main = [_container(container, probed) for container in entries(spec, "containers")]
    initial = [_container(container, probed) for container in entries(spec, "initContainers")]
    sidecars = [container for container in initial if container.restarted]
    return Containers(
        ports=tuple(port for container in main + sidecars for port in container.ports),
        init_ports=tuple(port for container in initial if not container.restarted for port in container.ports),
        probes=tuple(dict.fromkeys(probe for container in main + initial for probe in container.probes)),
        mesh_proxies=tuple(container.name for container in main + sidecars if container.name in MESH_PROXIES),
    )


def read_port(port: Data, key: str) -> ContainerPort:
    """Return a port with its name and protocol."""
    return ContainerPort(number(port, key) or 0, text(port, "name"), read_protocol(port))


def read_protocol(port: Data) -> str:
    """Return the protocol of a port of a container or Service."""
    return text(port, "protocol") or "TCP"


def _container(container: Data, probed: bool) -> _Container:
    declared = tuple(read_port(port, "containerPort") for port in entries(container, "ports"))
    kinds = [kind for kind in _PROBES if kind in container] if probed else []
    probes = (_probe(mapping(container, kind), declared) for kind in kinds)
    return _Container(
        text(container, "name") or "",
        declared,
        tuple(probe for probe in probes if probe is not None),
        container.get("restartPolicy") == "Always",
    )


def _probe(probe: Data, declared: tuple[ContainerPort, ...]) -> HttpProbe | None:
    """Return a probe by HTTP. Those of other kinds, and to a port that its container does not have, let nobody in."""
    get = mapping(probe, "httpGet")
    port, path = _probed_port(get, declared), text(get, "path") or ""
    # The kubelet puts the slash before a path that lacks it, and before none at all.
    rooted = path.startswith("/")
    return HttpProbe(port, sent_path(path if rooted else f"/{path}"), rooted or not path) if port else None


def _probed_port(get: Data, declared: tuple[ContainerPort, ...]) -> int | None:
    name = text(get, "port")
    if name is None:
        return number(get, "port")
    return next((port.number for port in declared if name and port.name == name and port.protocol == "TCP"), None)
