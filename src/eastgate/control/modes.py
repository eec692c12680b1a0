"""Computes the mode of a port: what happens to callers that no rule is about, by the names that `get` has for it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from eastgate.ir import ALWAYS, NEVER, Layer
from eastgate.ir.symbolic.stages import OrderedStage, order_chain


class PortMode(enum.StrEnum):
    """The modes from the widest to the narrowest."""

    OPEN = "open"  # nothing can deny anybody anything
    OPEN_EXCEPT = "open-except"  # what no rule denies is allowed
    ALLOW_LIST = "allow-list"  # what no rule allows is denied


_ORDER = list(PortMode)


def mode_of(layers: Iterable[Layer]) -> PortMode:
    """Return the narrowest mode of some layers: ALL of them must allow."""
    stages = (stage for layer in layers for chain in layer.chains for stage in order_chain(chain))
    return max(map(_mode, stages), key=_ORDER.index, default=PortMode.OPEN)


def changed_modes(
    workload: str, before: Mapping[int, PortMode] | None, now: Mapping[int, PortMode]
) -> dict[str, tuple[PortMode | None, PortMode]]:
    """Return the modes of a workload's ports that changed, as (before, now): by its name where all ports changed alike.

    Of a new workload only ports that are not allow-lists are reported.
    """
    was = before or {}
    changed = {
        port: (was.get(port), mode)
        for port, mode in now.items()
        if mode is not was.get(port) and (port in was or mode is not PortMode.ALLOW_LIST)
    }
    if len(changed) == len(now) and len(set(changed.values())) == 1:
        return {workload: next(iter(changed.values()))}
    return {f"{workload}:{port}": modes for port, modes in changed.items()}


def _mode(stage: OrderedStage) -> PortMode:
    if stage.denies_by_default:
        return PortMode.OPEN if any(arm.when == ALWAYS for arm in stage.accepting) else PortMode.ALLOW_LIST
    denying = [arm for arm in stage.denying if arm.when != NEVER]
    if not stage.ranked and any(arm.when == ALWAYS and arm.authorizer is None for arm in denying):
        return PortMode.ALLOW_LIST
    return PortMode.OPEN_EXCEPT if denying else PortMode.OPEN
