"""The mode of a workload, layer by layer: what happens to a request that no rule matches.

Each dialect brings the modes of its own layers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from eastgate import dialects
from eastgate.cluster import Workload
from eastgate.dialects import registered
from eastgate.dialects.base import Dialect, Scene
from eastgate.dialects.modes import LayerMode, Mode
from eastgate.ir import Placement, PolicyRef
from eastgate.records import dataclass
from eastgate.reports.cluster import Cluster
from eastgate.reports.effective.words import condition_text

__all__ = ["ShownMode", "modes", "stances_of", "summary"]


@dataclass(frozen=True, slots=True)
class ShownMode:
    """The mode of a layer as it is shown: `where` in words."""

    at: Placement
    mode: Mode
    why: str
    policies: tuple[PolicyRef, ...] = ()
    where: str = ""

    @property
    def layer(self) -> str:
        """Return the name of the layer."""
        return str(self.at)

    @property
    def level(self) -> str:
        """Return the level of the layer; nothing where it is of no level."""
        return "" if self.at.site is None else self.at.level

    def to_json(self) -> dict[str, object]:
        return {
            "layer": self.layer,
            "where": self.where or None,
            "mode": str(self.mode),
            "why": self.why,
            "policies": [str(ref) for ref in self.policies],
        }


def summary(shown: Iterable[ShownMode]) -> str:
    """Return the strictest of some modes, for a column."""
    present = {layer.mode for layer in shown}
    return str(next((mode for mode in reversed(Mode) if mode in present), Mode.OPEN))


def stances_of(cluster: Cluster, workload: Workload) -> dict[str, Hashable]:
    """Return what the workload itself says to each dialect that lets it have a say, by the dialect's name."""
    authority = cluster.authority
    attached = authority.engine.attached(workload.key)
    return dict(dialects.stances(workload, attached, authority.settings, authority.world))


def modes(cluster: Cluster, workload: Workload) -> list[ShownMode]:
    """Return the modes of a workload: of the levels that every workload has first, then of the other layers."""
    return cluster.of_class("modes", workload.key, lambda: _modes(cluster, workload))


def _modes(cluster: Cluster, workload: Workload) -> list[ShownMode]:
    stances = stances_of(cluster, workload)
    ordered = sorted(registered().dialects, key=lambda dialect: not dialect.words.levels)
    return [
        _show(mode)
        for dialect in ordered
        for mode in _of_dialect(dialect, cluster, workload, stances.get(dialect.name))
    ]


def _of_dialect(dialect: Dialect[Any], cluster: Cluster, workload: Workload, stance: Hashable) -> Iterable[LayerMode]:
    authority = cluster.authority
    attached = authority.engine.attached(workload.key)
    scene = Scene(authority.settings, authority.world, stance)
    layers = {layer.at: layer for layer in dialect.assemble(attached, scene)}
    for end in cluster.network_ends(workload.key):
        at_end = dialect.assemble_end(authority.engine.attached(end), end.direction, scene)
        layers |= {layer.at: layer for layer in at_end}
    policies = [policy for policy in cluster.attached(workload.key) if isinstance(policy, dialect.model)]
    for placement in dict.fromkeys((*dialect.words.levels, *layers)):
        layer = layers.get(placement)
        if layer is None:
            yield LayerMode(placement, Mode.OPEN, "no policy targets it")
        else:
            yield from dialect.words.modes(layer, policies, stance)


def _show(mode: LayerMode) -> ShownMode:
    where = mode.where if isinstance(mode.where, str) else condition_text(mode.where)
    return ShownMode(mode.at, mode.mode, mode.why, mode.policies, where)
