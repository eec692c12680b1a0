"""What a workload itself says about its inbound policy: its annotations, its ports and probes, and its routes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eastgate.dialects.base import Scene
from eastgate.dialects.linkerd.model import GROUP, InboundRoute, Resource
from eastgate.places import Span
from eastgate.policy import Attachment
from eastgate.settings import InboundPolicy
from eastgate.world import GATEWAY_GROUP, HttpProbe, Route, Workload

__all__ = ["Default", "Stance", "stance_of"]

_DEFAULT_POLICY = "config.linkerd.io/default-inbound-policy"
_OPAQUE_PORTS = "config.linkerd.io/opaque-ports"
_IDENTITY_PORTS = "config.linkerd.io/proxy-require-identity-inbound-ports"
_INBOUND_KINDS = ("HTTPRoute", "GRPCRoute")


@dataclass(frozen=True, slots=True)
class Default:
    """The policy of a port that nothing else governs, and who chose it."""

    policy: InboundPolicy
    source: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Stance:
    """All of a workload that its layers depend on."""

    default: Default
    names: tuple[tuple[str, int], ...]  # of its ports
    probes: tuple[HttpProbe, ...]
    opaque: frozenset[int]
    identity_required: frozenset[int]
    routes: tuple[InboundRoute, ...]

    def numbers(self, port: int | str) -> frozenset[int]:
        """The ports that a Server means: a number, declared or not, or all that bear a name."""
        return frozenset({port}) if isinstance(port, int) else frozenset(n for name, n in self.names if name == port)


def stance_of(workload: Workload, attached: Sequence[Attachment[Resource]], scene: Scene) -> Stance | None:
    """The stance of a workload; None where Linkerd has no say: nobody mentions it, and its default lets all in."""
    default = _default(workload, scene)
    if not attached and default.policy is InboundPolicy.ALL_UNAUTHENTICATED:
        return None
    return Stance(
        default=default,
        names=tuple(_names(workload)),
        probes=tuple(probe for probe in workload.probes if probe.rooted),  # Linkerd reads any other path as a host
        opaque=_ports(workload, _OPAQUE_PORTS, scene),
        identity_required=_ports(workload, _IDENTITY_PORTS, scene),
        routes=tuple(_routes(workload.namespace, scene)),
    )


def _names(workload: Workload) -> Iterator[tuple[str, int]]:
    for port in (*workload.ports, *workload.init_ports):
        if port.name and port.protocol == "TCP":
            yield port.name, port.number


def _default(workload: Workload, scene: Scene) -> Default:
    """The pod's own annotation, else that of its namespace, else the setting; one that is none counts as absent."""
    namespace = scene.world.namespace(workload.namespace)
    for holder, what in ((workload, "the pod"), (namespace, f"namespace {namespace.name}")):
        written = holder.annotations.get(_DEFAULT_POLICY)
        if written in set(InboundPolicy):
            return Default(InboundPolicy(written), f"annotation {_DEFAULT_POLICY} of {what}", holder.span)
    return Default(scene.settings.linkerd_default_policy, "setting linkerdDefaultPolicy")


def _annotation(workload: Workload, name: str, scene: Scene) -> str:
    namespace = scene.world.namespace(workload.namespace)
    return workload.annotations.get(name) or namespace.annotations.get(name) or ""


def _ports(workload: Workload, annotation: str, scene: Scene) -> frozenset[int]:
    """Numbers, ranges such as 8000-8010, and names of ports, separated by commas; what is none of these is skipped."""
    found: set[int] = set()
    for part in (one.strip() for one in _annotation(workload, annotation, scene).split(",")):
        first, dash, last = part.partition("-")
        if _is_port(first) and (_is_port(last) if dash else not last):
            found.update(range(int(first), int(last or first) + 1))
        else:
            found |= workload.ports_named(part)
    return frozenset(found)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535


def _routes(namespace: str, scene: Scene) -> Iterator[InboundRoute]:
    """The routes of Gateway API with a Server as a parent."""
    for route in scene.world.routes.values():
        if route.namespace == namespace and route.kind in _INBOUND_KINDS and _has_server(route):
            yield InboundRoute(
                GATEWAY_GROUP,
                route.kind,
                route.namespace,
                route.name,
                route.parents,
                route.hostnames,
                route.rules,
                route.grpc_rules,
                route.created,
            )


def _has_server(route: Route) -> bool:
    return any(parent.group.lower() == GROUP and parent.kind.lower() == "server" for parent in route.parents)
