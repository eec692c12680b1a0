"""What becomes of a request that no rule mentions: the mode that a workload is in, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eastgate import dialects
from eastgate.analysis.cluster import Cluster
from eastgate.analysis.describing.policies import level_of
from eastgate.analysis.effective.words import condition_text
from eastgate.dialects import Policy
from eastgate.dialects.gep3779 import Policy as GepPolicy
from eastgate.dialects.gep3779.model import Level, Tier
from eastgate.dialects.linkerd.stance import Stance
from eastgate.policy import AllowAny, AskAll, Chain, Deny, Effect, FirstMatch, Layer, OneOf, PolicyRef, rules_of
from eastgate.policy.attributes import PORT
from eastgate.policy.predicates import And, Is, Predicate
from eastgate.world import Workload

__all__ = ["Mode", "modes", "stance_of", "summary"]

OPEN, GUARDED, ALLOW_LIST, CLOSED = "open", "open-except", "allow-list", "closed"


@dataclass(frozen=True, slots=True)
class Mode:
    """How a layer treats what no rule mentions. `where` is the part of the layer that this is about."""

    layer: str
    mode: str
    why: str
    policies: tuple[PolicyRef, ...] = ()
    where: str = ""

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
    told = dict(dialects.stances(workload, attached, authority.settings, authority.world)).get("Linkerd")
    return told if isinstance(told, Stance) else None


def modes(cluster: Cluster, workload: Workload) -> list[Mode]:
    """The modes of a workload: of each level of GEP-3779, and of Linkerd's ports where it has a say."""
    return cluster.of_class("modes", workload.key, lambda: _modes(cluster, workload))


def _modes(cluster: Cluster, workload: Workload) -> list[Mode]:
    layers = {layer.name: layer for layer in cluster.layers(workload.key)}
    attached = cluster.attached(workload.key)
    found: list[Mode] = []
    for level in Level:
        name = f"workload/{level}"
        layer = layers.get(name)
        found += [Mode(name, OPEN, "no policy targets it")] if layer is None else _of_level(layer, level, attached)
    if (closed := layers.get("unreadable")) is not None:
        refs = _refusing(closed.otherwise)
        found.append(Mode(closed.name, CLOSED, f"{', '.join(map(str, refs))} cannot be read", refs))
    if (inbound := layers.get("workload/inbound")) is not None:
        found += _of_inbound(inbound, stance_of(cluster, workload))
    return found


# GEP-3779


def _of_level(layer: Layer, level: Level, attached: Sequence[Policy]) -> list[Mode]:
    ours = [one for one in attached if isinstance(one, GepPolicy) and level_of(one) == level and not one.audit]
    closing = tuple(one.ref for one in ours if one.tier is Tier.NAMESPACED)
    cases = [_of_chain(layer.name, case.chain, closing, condition_text(case.when)) for case in layer.cases]
    return [_of_chain(layer.name, layer.otherwise, closing, ""), *cases]


def _of_chain(layer: str, chain: Chain, closing: tuple[PolicyRef, ...], where: str) -> Mode:
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
    ports: dict[PolicyRef, set[int]] = {}
    chains: dict[PolicyRef, Chain] = {}
    for case in layer.cases:
        for server in case.chain.chosen_by[:1]:  # its route comes after it
            ports.setdefault(server, set()).update(_ports(case.when))
            chains.setdefault(server, case.chain)
    found = []
    for server, numbers in ports.items():
        listed = ", ".join(map(str, sorted(numbers)))
        chain = chains[server]
        mode = OPEN if _lets_all_in(chain) else ALLOW_LIST
        found.append(Mode(layer.name, mode, f"owned by {_owner(chain.scope)}", (server,), f"port {listed}"))
    where = "any other port" if found else "any port"
    if stance is not None:
        default = stance.default
        mode = CLOSED if default.policy == "deny" else OPEN if _lets_all_in(layer.otherwise) else ALLOW_LIST
        found.append(Mode(layer.name, mode, f"default policy {default.policy}, from {default.source}", (), where))
    return found


def _owner(scope: str) -> str:
    """`Server namespace/name, protocol X`, without the route behind it."""
    return ", ".join(scope.split(":")[0].split(", ")[:2])


def _ports(when: Predicate) -> Iterable[int]:
    for part in when.parts if isinstance(when, And) else (when,):
        if isinstance(part, Is) and part.attribute == PORT and isinstance(part.matcher, OneOf):
            yield from (port for port in part.matcher.values if isinstance(port, int))


def _lets_all_in(chain: Chain) -> bool:
    return all(
        any(rule.when == And(()) for rule in stage.rules) for stage in chain.stages if isinstance(stage, AllowAny)
    )
