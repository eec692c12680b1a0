"""Istio: AuthorizationPolicy, RequestAuthentication and PeerAuthentication, at sidecars, ztunnel and waypoints."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.cluster import Everything, Target, Workload, World
from eastgate.cluster.installations import INSTALLATIONS
from eastgate.cluster.pods import INJECTION_ANNOTATIONS
from eastgate.cluster.unread.locating import content_of, selector_in
from eastgate.dialects.base import Dialect, Kind, NameUse, Scene, Surroundings
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.logs import codes as log_codes
from eastgate.dialects.istio.model import DRY_RUN, GROUP, Action, IstioAuthorizationPolicy, IstioPolicy
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.dialects.istio.targets import targets_of, widened
from eastgate.dialects.istio.words import WORDS, conditions
from eastgate.ir import Attachment, Layer
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Hashable

    from eastgate.dialects.linting import Linting
    from eastgate.dialects.logs import LoggedDecision

__all__ = ["DIALECT", "DRY_RUN", "GROUP", "Policy"]

Policy = IstioPolicy

_VERSIONS = ("v1", "v1beta1")


def _kinds(kind: str, name_use: NameUse) -> Iterator[Kind[IstioPolicy]]:
    """Yield a kind in each of its versions."""
    for version in _VERSIONS:
        yield Kind(GROUP, version, kind, _read, partial(_shapes, kind), name_use=name_use, locate=_locate)


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> IstioPolicy | None:
    from eastgate.dialects.istio.meaning import (
        read,  # imported here because many folders have no policy of Istio
    )

    return read(document, root, settings, reporter)


def _shapes(kind: str) -> tuple[Record[Settings], ...]:
    from eastgate.dialects.istio.meaning import shape_of

    return (shape_of(kind),)


def _layers(attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> list[Layer]:
    from eastgate.dialects.istio.assemble import layers  # imported here because many folders have no such workload

    return layers(attached, scene)


def _stance(workload: Workload, attached: Sequence[Attachment[IstioPolicy]], scene: Scene) -> Hashable:
    """Return the stance of a workload, or None if no policy applies to it."""
    if not attached:
        return None
    from eastgate.dialects.istio.assemble import stance_of  # imported here because many folders have no policy of Istio

    return stance_of(workload, attached, scene)


def _examine(
    policies: Collection[IstioPolicy], settings: Settings, world: World
) -> Iterable[tuple[IstioPolicy | None, Diagnostic]]:
    from eastgate.dialects.istio.examine import examine

    return examine(policies, settings, world)


def _notices(
    policies: Sequence[IstioPolicy], settings: Settings, world: World, workloads: Collection[str] | None
) -> Iterable[Diagnostic]:
    if not policies:
        return ()
    from eastgate.dialects.istio.examine import notices

    return notices(policies, settings, world, workloads)


def _locate(document: Document) -> tuple[Target, ...] | None:
    """Return the targets of a policy that has errors elsewhere, or None if it has `targetRefs`."""
    content = content_of(document)
    if "targetRefs" in content or "targetRef" in content:
        return None
    selector = selector_in(content, "selector")
    return (Everything(document.home),) if selector is None else targets_of(document.home, selector, in_root=False)


def _widen(targets: tuple[Target, ...], document: Document, settings: Settings) -> tuple[Target, ...]:
    """Widen targets to all namespaces for the root namespace, and to all pods for Gateways, which may be waypoints."""
    in_root = document.home == settings.section(IstioSettings).root_namespace
    return tuple(wide for target in targets for wide in widened(target, document.home, in_root=in_root))


def _closes(policy: IstioPolicy) -> bool:
    """Return whether it is an ALLOW policy without rules, which turns on deny by default."""
    is_allow = isinstance(policy, IstioAuthorizationPolicy) and policy.action is Action.ALLOW
    return isinstance(policy, IstioAuthorizationPolicy) and is_allow and not policy.rules and not policy.audit


def _lint() -> Linting[IstioPolicy]:
    from eastgate.dialects.istio.lint import LINTING

    return LINTING


def _read_log(line: str) -> LoggedDecision | None:
    from eastgate.dialects.istio.logs.lines import read_line  # imported here because only `why` reads logs

    return read_line(line)


def _shows_proxies(world: World) -> bool:
    if not world.meshed and not world.meshed_namespaces:
        return False
    from eastgate.dialects.istio.planes import shows_proxies  # imported here because many folders have no proxies

    return shows_proxies(world)


_MESH_CONFIG_KINDS = frozenset({"ConfigMap", *(kind for _, kind in INSTALLATIONS)})  # kinds that may hold a MeshConfig

DIALECT: Dialect[IstioPolicy] = Dialect(
    name="Istio",
    model=IstioPolicy,
    kinds=(
        *_kinds("AuthorizationPolicy", NameUse.OTHER_GROUPS),
        *_kinds("PeerAuthentication", NameUse.OURS_ALONE),
        *_kinds("RequestAuthentication", NameUse.OURS_ALONE),
    ),
    layers=_layers,
    words=WORDS,
    settings=IstioSettings,
    codes=lambda: (codes, codes, log_codes),
    closes=_closes,
    lint=_lint,
    stance=_stance,
    examine=_examine,
    examined_kinds=_MESH_CONFIG_KINDS | {"Service"},
    status=conditions,
    read_log=_read_log,
    widen=_widen,
    notices=_notices,
    surroundings=Surroundings(
        kinds=_MESH_CONFIG_KINDS | {"Gateway"},  # a Gateway may be the waypoint of any workload
        of=_shows_proxies,
        config_namespaces=frozenset({"istio-system"}),
        root_namespace=lambda settings: settings.section(IstioSettings).root_namespace,
        pod_annotations=INJECTION_ANNOTATIONS,
    ),
    deciding_annotations=frozenset({DRY_RUN}),
)
