"""Descriptions of policies by their dialect, for reports that do not depend on dialects.

Predicates and label selectors stay data here. Reports render them in one way for all dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Selector, Workload
from eastgate.cluster.targets import Target
from eastgate.ir import ALWAYS, Chain, Layer, Origin, Placement, PolicyRef, Predicate, Reading, Rule
from eastgate.ir.symbolic.stages import allow_lists, order_chain
from eastgate.settings import Settings

# The mode of a layer, which decides requests that match no rule. It follows from the stages.


class Mode(StrEnum):
    """The strictness of a layer."""

    OPEN = "open"
    GUARDED = "open-except"
    ALLOW_LIST = "allow-list"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class LayerMode:
    """The mode of a layer, its reason, and its policies. `where` is the part of the layer with this mode.

    `readings` are the settings that affect how the layer reads its policies.
    """

    at: Placement
    mode: Mode
    why: str
    policies: tuple[PolicyRef, ...] = ()
    where: str | Predicate = ""
    readings: tuple[Reading, ...] = ()


def modes_of_layer(layer: Layer, closing: Iterable[PolicyRef]) -> list[LayerMode]:
    """Return the modes of a layer by its stages. `closing` are the policies that turn on deny by default."""
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
        why = f"open, except where {', '.join(map(str, refs))} denies"
        return LayerMode(at, Mode.GUARDED, why, refs, where, readings)
    return LayerMode(at, Mode.OPEN, "no policy denies anything", (), where, readings)


def refusing(chain: Chain) -> tuple[PolicyRef, ...]:
    """Return the policies that deny requests, or ask authorizers that may deny."""
    refs = (arm.rule.origin.policy for stage in order_chain(chain) for arm in stage.denying)
    return tuple(dict.fromkeys(ref for ref in refs if ref is not None))


def lets_all_in(chain: Chain) -> bool:
    """Return whether a chain of allow lists allows every request."""
    return all(any(arm.when == ALWAYS for arm in stage.accepting) for stage in allow_lists(chain))


P = TypeVar("P", bound="_Enforceable")

NO_ACTION = "-"
NOTHING_SELECTED = "its target selects nothing that exists"
NO_RULES = "it has no rules, so that nothing matches"


@dataclass(frozen=True, slots=True)
class DescribedTarget:
    """A target as its author wrote it. `target` is the equivalent target for selection in the world, if any."""

    kind: str
    expression: str | Selector
    target: Target | None = None


@dataclass(frozen=True, slots=True)
class DescribedRule:
    """A rule: its effect if all conditions that it `asks` hold, and the place where it is written.

    `about` is the part of the traffic that it applies to, if it does not apply to all.
    """

    does: str
    asks: tuple[str | Predicate, ...]
    origin: Origin | None
    span: Span | None
    about: str = ""


@dataclass(frozen=True, slots=True)
class DescribedTier:
    """The position of a policy in the order of evaluation of its dialect."""

    name: str
    priority: int


def _return_none(_policy: object) -> None:
    return None


def _is_direct(_policy: object) -> bool:
    return False


class _Enforceable(Protocol):
    @property
    def ref(self) -> PolicyRef: ...
    @property
    def audit(self) -> bool: ...


def _modes(layer: Layer, policies: Sequence[_Enforceable], _stance: Hashable) -> list[LayerMode]:
    """Return modes by the stages alone. Every enforced policy turns on deny by default."""
    return modes_of_layer(layer, [policy.ref for policy in policies if not policy.audit])


def _return_no_refs(_policy: object) -> tuple[PolicyRef, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Words(Generic[P]):
    """The descriptions of the policies of one dialect.

    - `action` is the effect of a policy on requests that it matches (`NO_ACTION` if it has none by itself).
    - `level` is the place where it is enforced, and `rules` are its rules in the order written.
    - `why_idle` returns why a valid policy changes nothing. It gets the problem in the policy's status, if any, and
      whether the targets select anything that exists.
    - `targets` are those that the author wrote, if they differ from `policy.targets`.
    - `is_indirect` returns whether a policy is attached to more than it applies to.
    - `names` are objects that a policy names without being attached to them.
    - `count_rules` is needed only if `rules` lists more than rules.
    - `modes` returns the effect of a layer of this dialect on requests that match no rule. It gets the policies on the
      workload, and its stance.
    - `levels` are those that are shown even if no policy makes a layer of them.
    - `mesh_name` is the dialect's name of a workload, if that is not its identity.
    """

    action: Callable[[P], str]
    level: Callable[[P], str]
    rules: Callable[[P], Iterable[DescribedRule]]
    why_idle: Callable[[P, str | None, bool], str]
    targets: Callable[[P], Sequence[DescribedTarget] | None] = _return_none
    tier: Callable[[P], DescribedTier | None] = _return_none
    is_indirect: Callable[[P], bool] = _is_direct
    names: Callable[[P], Iterable[PolicyRef]] = _return_no_refs
    count_rules: Callable[[P], int] | None = None
    modes: Callable[[Layer, Sequence[P], Hashable], list[LayerMode]] = _modes
    levels: tuple[Placement, ...] = ()
    mesh_name: Callable[[Workload, Settings], str | None] | None = None


def describe_rule(does: str, rule: Rule) -> DescribedRule:
    """Return the description of a rule by its predicate."""
    return DescribedRule(does, (rule.when,), rule.origin, rule.origin.span)


def describe_rules(does: str, rules: Iterable[Rule]) -> list[DescribedRule]:
    """Return the descriptions of rules with the same effect."""
    return [describe_rule(does, rule) for rule in rules]
