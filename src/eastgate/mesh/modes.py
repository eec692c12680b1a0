"""Who gets in where no rule is about them: the mode of a workload, by the names that `get` has for it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from eastgate.policy import ALWAYS, NEVER, AllowAny, AskAll, Deny, Effect, FirstMatch, Layer, Observe, Stage

__all__ = ["Mode", "changed_modes", "mode_of"]


class Mode(enum.StrEnum):
    """From the widest to the narrowest."""

    OPEN = "open"  # nothing can deny anybody anything
    OPEN_EXCEPT = "open-except"  # what no rule denies is allowed
    ALLOW_LIST = "allow-list"  # what no rule allows is denied


_ORDER = list(Mode)


def mode_of(layers: Iterable[Layer]) -> Mode:
    """The narrowest mode of some layers: ALL of them must allow."""
    stages = (stage for layer in layers for chain in layer.chains for stage in chain.stages)
    return max(map(_mode, stages), key=_ORDER.index, default=Mode.OPEN)


def changed_modes(
    workload: str, before: Mapping[int, Mode] | None, now: Mapping[int, Mode]
) -> dict[str, tuple[Mode | None, Mode]]:
    """The modes of a workload's ports that are others than before: by its name where all ports have changed alike.

    Of a new workload it is told what is not closed to whom no rule lets in.
    """
    was = before or {}
    found = {
        port: (was.get(port), mode)
        for port, mode in now.items()
        if mode is not was.get(port) and (port in was or mode is not Mode.ALLOW_LIST)
    }
    if len(found) == len(now) and len(set(found.values())) == 1:
        return {workload: next(iter(found.values()))}
    return {f"{workload}:{port}": modes for port, modes in found.items()}


def _mode(stage: Stage) -> Mode:
    match stage:
        case Observe() | Deny(rules=()) | AskAll(asks=()):
            return Mode.OPEN
        case AllowAny(rules=rules):
            return Mode.OPEN if any(rule.when == ALWAYS for rule in rules) else Mode.ALLOW_LIST
        case Deny(rules=rules):
            if all(rule.when == NEVER for rule in rules):
                return Mode.OPEN
            return Mode.ALLOW_LIST if any(rule.when == ALWAYS for rule in rules) else Mode.OPEN_EXCEPT
        case AskAll():
            return Mode.OPEN_EXCEPT
        case FirstMatch(otherwise=Effect.DENY):
            return Mode.ALLOW_LIST
        case FirstMatch(steps=steps):
            return Mode.OPEN_EXCEPT if any(step.effect is Effect.DENY for step in steps) else Mode.OPEN
