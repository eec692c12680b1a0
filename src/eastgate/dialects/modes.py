"""The mode of a layer, which decides requests that no rule mentions, and how it follows from the stages."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.ir import ALWAYS, Chain, Layer, Placement, PolicyRef, Predicate, Reading
from eastgate.ir.symbolic.stages import allow_lists, order_chain


class Mode(StrEnum):
    """The strictness of a layer."""

    OPEN = "open"
    GUARDED = "open-except"
    ALLOW_LIST = "allow-list"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LayerMode:
    """The mode of a layer, why, and by which policies. `where` is the part of the layer that this is about.

    `readings` are the settings by which the layer reads its policies.
    """

    at: Placement
    mode: Mode
    why: str
    policies: tuple[PolicyRef, ...] = ()
    where: str | Predicate = ""
    readings: tuple[Reading, ...] = ()


def modes_of_layer(layer: Layer, closing: Iterable[PolicyRef]) -> list[LayerMode]:
    """Return the modes of a layer by its stages; `closing` are the policies that turn deny by default on."""
    refs = tuple(closing)
    cases = [_mode_of_chain(layer.at, case.chain, refs, case.when) for case in layer.cases]
    return [*cases, _mode_of_chain(layer.at, layer.otherwise, refs, "")]


def _mode_of_chain(at: Placement, chain: Chain, closing: tuple[PolicyRef, ...], where: str | Predicate) -> LayerMode:
    readings = tuple(chain.readings)
    for allow_list in allow_lists(chain):
        because = f"deny by default because of {', '.join(map(str, closing))}"
        if allow_list.arms:
            return LayerMode(at, Mode.ALLOW_LIST, because, closing, where, readings)
        return LayerMode(at, Mode.CLOSED, f"no rule allows anything; {because}", closing, where, readings)
    refs = refusing(chain)
    if refs:
        why = f"open but for what {', '.join(map(str, refs))} denies"
        return LayerMode(at, Mode.GUARDED, why, refs, where, readings)
    return LayerMode(at, Mode.OPEN, "no policy denies anything", (), where, readings)


def refusing(chain: Chain) -> tuple[PolicyRef, ...]:
    """Return the policies that deny something, or ask somebody who may."""
    refs = (arm.rule.origin.policy for stage in order_chain(chain) for arm in stage.denying)
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))


def lets_all_in(chain: Chain) -> bool:
    """Return whether a chain of allow lists lets everybody in."""
    return all(any(arm.when == ALWAYS for arm in stage.accepting) for stage in allow_lists(chain))
