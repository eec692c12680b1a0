"""What becomes of a request that no rule mentions: the mode that a workload is in, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eastgate import dialects
from eastgate.analysis.cluster import Cluster
from eastgate.analysis.describing.policies import level_of
from eastgate.analysis.effective.words import condition_text
from eastgate.dialects import Policy, linkerd
from eastgate.dialects.gep3779 import Policy as GepPolicy
from eastgate.dialects.gep3779.model import Level, Tier
from eastgate.dialects.gep3779.provenance import PLACEMENTS
from eastgate.dialects.linkerd.provenance import INBOUND, InboundScope
from eastgate.dialects.linkerd.stance import Stance
from eastgate.dialects.rejected import UNREADABLE
from eastgate.policy import (
    ALWAYS,
    AllowAny,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    OneOf,
    Placement,
    PolicyRef,
    Predicate,
    conjuncts,
    rules_of,
)
from eastgate.policy.attributes import PORT
from eastgate.world import Workload

__all__ = ["Mode", "modes", "stance_of", "summary"]

OPEN, GUARDED, ALLOW_LIST, CLOSED = "open", "open-except", "allow-list", "closed"


@dataclass(frozen=True, slots=True)
class Mode:
    """How a layer treats what no rule mentions. `where` is the part of the layer that this is about."""

    at: Placement
    mode: str
    why: str
    policies: tuple[PolicyRef, ...] = ()
    where: str = ""

    @property
    def layer(self) -> str:
        """The name of the layer."""
        return str(self.at)

    @property
    def level(self) -> str:
        """The level of the layer; nothing where it is of no level."""
        return "" if self.at.site is None else self.at.level

    def to_json(self) -> dict[str, object]:
        """As plain data."""
        return {
            "layer": self.layer,
            "where": self.where or None,
            "mode": self.mode,
            "why": self.why,
            "policies": [str(ref) for ref in self.policies],
        }


def summary(found: Iterable[Mode]) -> str:
    """The strictest of some modes, for a column."""
    kinds = {one.mode for one in found}
    return next((mode for mode in (CLOSED, ALLOW_LIST, GUARDED) if mode in kinds), OPEN)


def stance_of(cluster: Cluster, workload: Workload) -> Stance | None:
    """What the workload itself says to Linkerd; None where Linkerd has no say."""
    authority = cluster.authority
    attached = authority.engine.attached(workload.key)
    told = dict(dialects.stances(workload, attached, authority.settings, authority.world)).get(linkerd.DIALECT.name)
    return told if isinstance(told, Stance) else None


def modes(cluster: Cluster, workload: Workload) -> list[Mode]:
    """The modes of a workload: of each level of GEP-3779, and of Linkerd's ports where it has a say."""
    return cluster.of_class("modes", workload.key, lambda: _modes(cluster, workload))


def _modes(cluster: Cluster, workload: Workload) -> list[Mode]:
    layers = {layer.at: layer for layer in cluster.layers(workload.key)}
    attached = cluster.attached(workload.key)
    found: list[Mode] = []
    for level, placement in PLACEMENTS.items():
        layer = layers.get(placement)
        found += [Mode(placement, OPEN, "no policy targets it")] if layer is None else _of_level(layer, level, attached)
    if (closed := layers.get(UNREADABLE)) is not None:
        refs = _refusing(closed.otherwise)
        found.append(Mode(closed.at, CLOSED, f"{', '.join(map(str, refs))} cannot be read", refs))
    if (inbound := layers.get(INBOUND)) is not None:
        found += _of_inbound(inbound, stance_of(cluster, workload))
    return found


# GEP-3779


def _of_level(layer: Layer, level: Level, attached: Sequence[Policy]) -> list[Mode]:
    ours = [one for one in attached if isinstance(one, GepPolicy) and level_of(one) == level and not one.audit]
    closing = tuple(one.ref for one in ours if one.tier is Tier.NAMESPACED)
    cases = [_of_chain(layer.at, case.chain, closing, condition_text(case.when)) for case in layer.cases]
    return [_of_chain(layer.at, layer.otherwise, closing, ""), *cases]


def _of_chain(layer: Placement, chain: Chain, closing: tuple[PolicyRef, ...], where: str) -> Mode:
    readings = "".join(f"; {reading}" for reading in chain.readings)
    for stage in chain.stages:
        if isinstance(stage, AllowAny):
            by = ", ".join(str(ref) for ref in closing)
            if stage.rules:
                return Mode(layer, ALLOW_LIST, f"deny by default because of {by}{readings}", closing, where)
            return Mode(
                layer, CLOSED, f"no rule allows anything; deny by default because of {by}{readings}", closing, where
            )
    refs = _refusing(chain)
    if refs:
        return Mode(layer, GUARDED, f"open but for what {', '.join(map(str, refs))} denies{readings}", refs, where)
    return Mode(layer, OPEN, f"no policy denies anything{readings}", (), where)


def _refusing(chain: Chain) -> tuple[PolicyRef, ...]:
    """The policies that deny something, or ask somebody who may."""
    found: dict[PolicyRef, None] = {}
    for stage in chain.stages:
        match stage:
            case Deny() | AskAll():
                rules = list(rules_of(stage))
            case FirstMatch(steps=steps):
                rules = [step.rule for step in steps if step.effect is Effect.DENY]
            case _:
                continue
        found.update({rule.origin.policy: None for rule in rules if rule.origin.policy is not None})
    return tuple(found)


# Linkerd


def _of_inbound(layer: Layer, stance: Stance | None) -> list[Mode]:
    """One mode for each port that a Server owns, and one for the default."""
    ports: dict[InboundScope, set[int]] = {}
    chains: dict[InboundScope, Chain] = {}
    for case in layer.cases:
        scope = case.chain.scope
        if isinstance(scope, InboundScope) and scope.server is not None:
            ports.setdefault(scope.port, set()).update(_ports(case.when))
            chains.setdefault(scope.port, case.chain)
    found = []
    for port, numbers in ports.items():
        listed = ", ".join(map(str, sorted(numbers)))
        mode = OPEN if _lets_all_in(chains[port]) else ALLOW_LIST
        found.append(Mode(layer.at, mode, f"owned by {port}", port.refs, f"port {listed}"))
    where = "any other port" if found else "any port"
    if stance is not None:
        default = stance.default
        mode = CLOSED if default.policy == "deny" else OPEN if _lets_all_in(layer.otherwise) else ALLOW_LIST
        found.append(Mode(layer.at, mode, f"default policy {default.policy}, from {default.source}", (), where))
    return found


def _ports(when: Predicate) -> Iterable[int]:
    for part in conjuncts(when):
        if isinstance(part, Is) and part.attribute == PORT and isinstance(part.matcher, OneOf):
            yield from (port for port in part.matcher.values if isinstance(port, int))


def _lets_all_in(chain: Chain) -> bool:
    return all(
        any(rule.when == ALWAYS for rule in stage.rules) for stage in chain.stages if isinstance(stage, AllowAny)
    )
