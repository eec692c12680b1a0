"""The mode of a workload in each layer: the verdict on a request that no rule matches.

Each dialect defines the modes of its own layers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from eastgate import dialects
from eastgate.authority.authority import programs_of
from eastgate.basics.records import dataclass
from eastgate.cluster import Workload
from eastgate.cluster.points import Direction
from eastgate.dialects import registered
from eastgate.dialects.base import Dialect, Scene
from eastgate.dialects.linting import enumerated
from eastgate.dialects.words import LayerMode, Mode
from eastgate.ir import Placement, PolicyRef, Site
from eastgate.reports.cluster import Cluster
from eastgate.reports.conditions import condition_text


@dataclass(frozen=True, slots=True)
class ShownMode:
    """The mode of a layer for output: `where` and `readings` are text. `untargeted`: no policy targets it."""

    at: Placement
    mode: Mode
    why: str
    policies: tuple[PolicyRef, ...] = ()
    where: str = ""
    readings: tuple[str, ...] = ()
    untargeted: bool = False

    @property
    def layer(self) -> str:
        """Return the name of the layer."""
        return str(self.at)

    @property
    def level(self) -> str:
        """Return the level of the layer; empty for a layer without a level."""
        return "" if self.at.site is None else self.at.level

    @property
    def exact_why(self) -> str:
        """Return the reason, with the settings that the layer is read with."""
        return "; ".join([self.why, *self.readings])

    def to_json(self) -> dict[str, object]:
        return {
            "layer": self.layer,
            "where": self.where or None,
            "mode": str(self.mode),
            "why": self.exact_why,
            "policies": [str(ref) for ref in self.policies],
        }


def summary(shown: Iterable[ShownMode]) -> str:
    """Return the strictest mode of the layers, for a column.

    A layer may have a mode for each of its parts, such as HTTP and bytes. It is closed if all of its parts are.
    """
    by_layer: dict[Placement, set[Mode]] = {}
    for each in shown:
        by_layer.setdefault(each.at, set()).add(each.mode)
    present = {
        Mode.ALLOW_LIST if mode is Mode.CLOSED and len(parts) > 1 else mode
        for parts in by_layer.values()
        for mode in parts
    }
    return str(next((mode for mode in reversed(Mode) if mode in present), Mode.OPEN))


def stances_of(cluster: Cluster, workload: Workload) -> dict[str, Hashable]:
    """Return the stance that the workload declares for each dialect, by the name of the dialect."""
    authority = cluster.authority
    attached = programs_of(authority).attached(workload.key)
    return dict(dialects.stances(workload, attached, authority.settings, authority.world))


def modes(cluster: Cluster, workload: Workload) -> list[ShownMode]:
    """Return the modes of a workload: the levels that every workload has come first, then the other layers."""
    return cluster.of_class("modes", workload.key, lambda: _modes(cluster, workload))


def _modes(cluster: Cluster, workload: Workload) -> list[ShownMode]:
    stances = stances_of(cluster, workload)
    ordered = sorted(registered().dialects, key=lambda dialect: not dialect.words.levels)
    return [mode for dialect in ordered for mode in _of_dialect(dialect, cluster, workload, stances.get(dialect.name))]


def _of_dialect(dialect: Dialect[Any], cluster: Cluster, workload: Workload, stance: Hashable) -> Iterable[ShownMode]:
    authority = cluster.authority
    attached = programs_of(authority).attached(workload.key)
    scene = Scene(authority.settings, authority.world, stance)
    layers = {layer.at: layer for layer in dialect.assemble(attached, scene)}
    for end in cluster.network_ends(workload.key):
        at_end = dialect.assemble_end(programs_of(authority).attached(end), end.direction, scene)
        layers |= {layer.at: layer for layer in at_end}
    policies = [policy for policy in cluster.attached(workload.key) if isinstance(policy, dialect.model)]
    for placement in dict.fromkeys((*dialect.words.levels, *layers)):
        layer = layers.get(placement)
        if layer is None:
            yield ShownMode(placement, Mode.OPEN, "no policy targets it", untargeted=True)
        else:
            yield from map(_show, dialect.words.modes(layer, policies, stance))


def _show(mode: LayerMode) -> ShownMode:
    where = mode.where if isinstance(mode.where, str) else condition_text(mode.where)
    return ShownMode(mode.at, mode.mode, mode.why, mode.policies, where, tuple(map(str, mode.readings)))


_INGRESS = Placement(Site.NETWORK, Direction.INGRESS)


def isolation_text(cluster: Cluster, workloads: Sequence[Workload]) -> str | None:
    """Name the network policies that isolate workloads; None if there are none."""
    engine = programs_of(cluster.authority)
    shown = (mode for workload in workloads for mode in modes(cluster, workload) if mode.at == _INGRESS)
    names = sorted({str(ref) for mode in shown if mode.mode in (Mode.ALLOW_LIST, Mode.CLOSED) for ref in mode.policies})
    is_sent_under_policies = any(engine.layers_of(each, Direction.EGRESS) for each in engine.network_policies)
    if not is_sent_under_policies:
        return f"no rule of {enumerated(names)} allows it" if names else None
    if not names:
        return "no egress rule of the caller allows it"
    return f"no rule of {enumerated(names)}, or no egress rule of the caller, allows it"
