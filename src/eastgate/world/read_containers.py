"""What the containers of a pod declare: ports, and the probes that the kubelet sends to them."""

from __future__ import annotations

from typing import NamedTuple

from eastgate.policy.paths import sent_path
from eastgate.world import codes
from eastgate.world.fields import Section
from eastgate.world.pods import ContainerPort, HttpProbe

__all__ = ["Containers", "read_containers", "read_port", "read_protocol"]

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


class Containers(NamedTuple):
    """What the containers of a pod declare, under the names that it has in a `Pod`."""

    ports: tuple[ContainerPort, ...]
    init_ports: tuple[ContainerPort, ...]
    probes: tuple[HttpProbe, ...]


class _Container(NamedTuple):
    ports: tuple[ContainerPort, ...]
    probes: tuple[HttpProbe, ...]
    restarted: bool


def read_containers(spec: Section, *, probed: bool = True) -> Containers:
    """Containers first, then sidecars: the order in which Kubernetes resolves a port's name.

    Without `probed`, somebody else than the kubelet sends the probes.
    """
    main = [_container(one, probed) for one in spec.sections("containers")]
    initial = [_container(one, probed) for one in spec.sections("initContainers")]
    sidecars = [one for one in initial if one.restarted]
    return Containers(
        ports=tuple(port for one in main + sidecars for port in one.ports),
        init_ports=tuple(port for one in initial if not one.restarted for port in one.ports),
        probes=tuple(dict.fromkeys(probe for one in main + initial for probe in one.probes)),
    )


def read_port(port: Section, key: str) -> ContainerPort:
    """A port with its name and protocol; `key` is what the number is called."""
    return ContainerPort(port.required_port(key), port.text("name"), read_protocol(port))


def read_protocol(port: Section) -> str:
    """The protocol of a port of a container or Service."""
    protocol = port.text("protocol")
    if protocol and protocol not in _PROTOCOLS:
        known = protocol.upper() in _PROTOCOLS
        port.complain(
            codes.BAD_PROTOCOL,
            f"`{protocol}` is not a protocol of a port",
            "protocol",
            help=f"write {protocol.upper()}" if known else "write TCP, UDP or SCTP",
        )
    return protocol or "TCP"


def _container(container: Section, probed: bool) -> _Container:
    ports = tuple(read_port(port, "containerPort") for port in container.sections("ports"))
    probes = (_probe(container.section(kind), ports) for kind in _PROBES if probed and container.has(kind))
    return _Container(
        ports, tuple(probe for probe in probes if probe is not None), container.text("restartPolicy") == "Always"
    )


def _probe(probe: Section, ports: tuple[ContainerPort, ...]) -> HttpProbe | None:
    """A probe by HTTP. Those of other kinds, and one to a port that its container does not have, let nobody in."""
    get = probe.section("httpGet")
    if not isinstance(probe.data.get("httpGet"), dict):
        return None
    number, path = _probed_port(get, ports), get.text("path") or ""
    # The kubelet puts the slash before a path that lacks it, and before none at all.
    rooted = path.startswith("/")
    return HttpProbe(number, sent_path(path if rooted else f"/{path}"), rooted or not path) if number else None


def _probed_port(get: Section, ports: tuple[ContainerPort, ...]) -> int | None:
    if not isinstance(get.data.get("port"), str):
        return get.required_port("port")
    name = get.port_or_name("port")
    return next((port.number for port in ports if port.name == name and port.protocol == "TCP"), None) if name else None
