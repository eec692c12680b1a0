"""The stance of a workload on its inbound policy: its annotations, ports, probes and routes."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import HttpProbe, Workload, World
from eastgate.cluster.placement import LOOPBACK
from eastgate.dialects.auditing import enforced
from eastgate.dialects.base import Scene
from eastgate.dialects.linkerd.authorizations import cluster_networks
from eastgate.dialects.linkerd.model import INBOUND_KINDS, InboundRoute, LinkerdResource, Server, is_server
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.dialects.linkerd.values import is_port
from eastgate.ir import Attachment
from eastgate.settings import Networks

# The container that Linkerd's injector adds to every pod of the mesh. Its named ports and probes are in no manifest.


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

    There are none outside of the cluster. A pod that declares the name was read from a cluster, and has the container.
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
    """Return the probes of a workload, and the probes of its proxy on ports of a Server."""
    return (*workload.probes, *(probe for probe in injected_probes(workload, world) if probe.port in owned))


def ports_named(workload: Workload, name: str, world: World) -> frozenset[int]:
    """Return the numbers of all TCP ports with a name, including those that the injector adds."""
    injected = injected_ports(workload, world).get(name)
    return workload.ports_named(name) if injected is None else frozenset({injected})


DEFAULT_POLICY = "config.linkerd.io/default-inbound-policy"
_OPAQUE_PORTS = "config.linkerd.io/opaque-ports"
_IDENTITY_PORTS = "config.linkerd.io/proxy-require-identity-inbound-ports"
POD_ANNOTATIONS = frozenset({DEFAULT_POLICY, _OPAQUE_PORTS, _IDENTITY_PORTS, *PORT_ANNOTATIONS})
"""Annotations of a pod that the stance depends on."""


@dataclass(frozen=True, slots=True)
class Default:
    """The policy of a port without a Server, and the source of the policy."""

    policy: InboundPolicy
    source: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Stance:
    """The properties of a workload, besides its policies, that its layers depend on.

    Workloads with the same policies and the same stance have the same layers.
    """

    default: Default
    names: tuple[tuple[str, int], ...]  # of its ports
    probes: tuple[HttpProbe, ...]
    proxy_probes: tuple[HttpProbe, ...]  # probes of its proxy, which only a Server can deny
    opaque: frozenset[int]
    identity_required: frozenset[int]
    routes: tuple[InboundRoute, ...]
    itself: Networks  # source addresses of requests of the pod to itself
    cluster: Networks

    def numbers(self, port: int | str) -> frozenset[int]:
        """Return the ports that a Server selects: a port by its number, declared or not, or all ports with its name."""
        return frozenset({port}) if isinstance(port, int) else frozenset(n for name, n in self.names if name == port)


def stance_of(workload: Workload, attached: Sequence[Attachment[LinkerdResource]], scene: Scene) -> Stance | None:
    """Return the stance of a workload; None if it has no policy, and a default policy that allows all."""
    default, identity_required = _default(workload, scene), _ports(workload, _IDENTITY_PORTS, scene)
    if not attached and not identity_required and default.policy is InboundPolicy.ALL_UNAUTHENTICATED:
        return None
    placement = scene.world.placement
    return Stance(
        default=default,
        names=tuple(_names(workload, scene)),
        probes=tuple(probe for probe in workload.probes if probe.rooted),  # Linkerd reads any other path as a host
        proxy_probes=injected_probes(workload, scene.world),
        opaque=_ports(workload, _OPAQUE_PORTS, scene),
        identity_required=identity_required,
        routes=tuple(_routes(workload.namespace, scene)),
        itself=LOOPBACK if placement is None else placement.itself(workload.key),
        cluster=(*cluster_networks(scene.settings), *(() if placement is None else placement.networks)),
    )


def enforce(policy: LinkerdResource) -> LinkerdResource:
    """Return a resource in audit mode, or a Server with `accessPolicy: audit`, as if it were enforced.

    Return any other resource unchanged.
    """
    in_force = enforced(policy)
    if isinstance(in_force, Server) and in_force.access is InboundPolicy.AUDIT:
        return replace(in_force, access=InboundPolicy.DENY)
    return in_force


def enforce_stance(stance: Hashable) -> Hashable:
    """Return the stance of a workload with the default policy `audit` as if the policy were enforced."""
    if not isinstance(stance, Stance) or stance.default.policy is not InboundPolicy.AUDIT:
        return stance
    return replace(stance, default=replace(stance.default, policy=InboundPolicy.DENY))


def _names(workload: Workload, scene: Scene) -> Iterator[tuple[str, int]]:
    names = {port.name for port in (*workload.ports, *workload.init_ports) if port.name}
    for name in sorted(names):
        yield from ((name, number) for number in sorted(workload.ports_named(name)))
    yield from injected_ports(workload, scene.world).items()


def _default(workload: Workload, scene: Scene) -> Default:
    """Return the policy of the annotation, or else of the setting. Like Linkerd, ignore an invalid annotation."""
    annotation = _annotation(workload, DEFAULT_POLICY, scene)
    if annotation is not None and annotation.text in set(InboundPolicy):
        source = f"annotation {DEFAULT_POLICY} of {annotation.holder}"
        return Default(InboundPolicy(annotation.text), source, annotation.span)
    return Default(scene.settings.section(LinkerdSettings).linkerd_default_policy, "setting linkerdDefaultPolicy")


@dataclass(frozen=True, slots=True)
class _Annotation:
    text: str
    holder: str
    span: Span | None


def _annotation(workload: Workload, name: str, scene: Scene) -> _Annotation | None:
    """Return the annotation of the pod or of its namespace. The injector copies it from the namespace to the pods."""
    namespace = scene.world.namespace(workload.namespace)
    if name in workload.annotations:
        return _Annotation(workload.annotations[name], "the pod", workload.span)
    if name in namespace.annotations:
        return _Annotation(namespace.annotations[name], f"namespace {namespace.name}", namespace.span)
    return None


def _ports(workload: Workload, name: str, scene: Scene) -> frozenset[int]:
    """Return the ports of an annotation: numbers, ranges such as 8000-8010, and names, separated by commas.

    Invalid entries are skipped.
    """
    ports: set[int] = set()
    annotation = _annotation(workload, name, scene)
    for part in (item.strip() for item in annotation.text.split(",")) if annotation is not None else ():
        first, dash, last = part.partition("-")
        if is_port(first) and (is_port(last) if dash else not last):
            ports.update(range(int(first), int(last or first) + 1))
        else:
            ports |= workload.ports_named(part)
    return frozenset(ports)


def _routes(namespace: str, scene: Scene) -> Iterator[InboundRoute]:
    """Yield the routes of Gateway API that have a Server as a parent."""
    for route in scene.world.routes.values():
        if route.namespace == namespace and route.kind in INBOUND_KINDS and any(map(is_server, route.parents)):
            yield InboundRoute.of(route)
