"""Rules, stages, chains and layers: the model that every policy API is translated to.

    a Rule     is a predicate and its origin
    a Stage    is one of five ways to use rules
    a Chain    is an ordered list of stages; a request that passes all of them is allowed
    a Layer    is one enforcement point of one level: its selector picks exactly ONE chain for a request
    a request  passes its layers in path order; ALL must allow, the first denial decides

Every dialect uses only these five stages:

    Deny        ANY rule matches: denied
    AskAll      EVERY authorizer whose rule matches must allow; an error or a missing answer denies
    AllowAny    NO rule matches: denied; otherwise the next stage follows
    FirstMatch  ordered; each rule accepts (ends this chain, allowed), denies, or passes (leaves this stage)
    Observe     recorded, decides nothing

A layer with audited policies also contains a second layer in which they are in force (`Audit`). The would-be decision
on a request is the decision of those second layers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import field, replace
from typing import Final, Generic, TypeAlias, TypeVar

from eastgate.basics.records import dataclass
from eastgate.ir.attributes import Attribute
from eastgate.ir.authorizers import Answer, Authorizer, Reply, consents
from eastgate.ir.derivations import Derivation
from eastgate.ir.placement import Placement, Reading, Scope
from eastgate.ir.predicates import Computed, Is, Predicate, atoms, mentions
from eastgate.ir.provenance import EffectivePolicy, Origin, PolicyRef


@dataclass(frozen=True, slots=True)
class Rule:
    """A predicate and its origin. Two rules from different lines are different rules."""

    when: Predicate
    origin: Origin


class Effect(enum.StrEnum):
    """The effect of a rule of `FirstMatch` on a request that it matches."""

    ACCEPT = "accept"
    DENY = "deny"
    PASS = "pass"  # noqa: S105 - not a password


class Refusal(enum.IntEnum):
    """The refusal that a denied client sees: an HTTP status, or a closed connection."""

    CLOSED = 0
    BAD_REQUEST = 400
    UNAUTHENTICATED = 401
    FORBIDDEN = 403
    NOT_FOUND = 404

    def __str__(self) -> str:
        return "closed" if self is Refusal.CLOSED else str(self.value)


@dataclass(frozen=True, slots=True)
class Deny:
    """ANY rule matches: denied. Otherwise the next stage follows."""

    name: str
    rules: tuple[Rule, ...]
    refusal: Refusal = Refusal.FORBIDDEN


@dataclass(frozen=True, slots=True)
class AllowAny:
    """ANY rule matches: the next stage follows. Otherwise denied."""

    name: str
    rules: tuple[Rule, ...]
    refusal: Refusal = Refusal.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Ask:
    """One external authorizer, asked about the requests that the rule matches.

    `evaluator` answers if Eastgate itself evaluates the authorizer; it is None for an external service. `fail_open`:
    the policy wants requests to pass if the authorizer cannot be asked.
    """

    rule: Rule
    authorizer: str
    evaluator: Authorizer | None = field(default=None, repr=False)
    fail_open: bool = False

    def consents(self, answer: Answer | None) -> bool:
        """Return whether a request passes with this answer. None: there was no answer."""
        return consents(answer) or (self.fail_open and answer == Reply.ERROR)


@dataclass(frozen=True, slots=True)
class AskAll:
    """EVERY authorizer whose rule matches must allow. An error, a timeout and a missing answer deny."""

    name: str
    asks: tuple[Ask, ...]
    refusal: Refusal = Refusal.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Step:
    """One rule of an ordered stage, with its effect."""

    rule: Rule
    effect: Effect


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """The FIRST matching step decides. If no step matches, `otherwise` decides."""

    name: str
    steps: tuple[Step, ...]
    otherwise: Effect = Effect.PASS
    refusal: Refusal = Refusal.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Observe:
    """Rules that are recorded and decide nothing. `would`: the effect that each rule would have if it were enforced."""

    name: str
    rules: tuple[Rule, ...]
    would: tuple[str, ...] = ()


Stage = Deny | AskAll | AllowAny | FirstMatch | Observe


def rules_of(stage: Stage) -> Iterator[Rule]:
    """Yield every rule of a stage, in order."""
    match stage:
        case Deny(rules=rules) | AllowAny(rules=rules) | Observe(rules=rules):
            yield from rules
        case FirstMatch(steps=steps):
            yield from (step.rule for step in steps)
        case AskAll(asks=asks):
            yield from (ask.rule for ask in asks)


def rewrite_stage(stage: Stage, change: Callable[[Rule], Rule | None]) -> Stage:
    """Return a stage with each rule changed to another rule, or removed if the change returns None."""
    match stage:
        case Deny(rules=rules) | AllowAny(rules=rules):
            return replace(stage, rules=tuple(rule for rule in map(change, rules) if rule is not None))
        case Observe(rules=rules, would=would):
            observed = [(rule, word) for rule, word in zip(map(change, rules), would, strict=True) if rule is not None]
            return Observe(stage.name, tuple(rule for rule, _ in observed), tuple(word for _, word in observed))
        case FirstMatch(steps=steps):
            changed = ((change(step.rule), step.effect) for step in steps)
            return replace(stage, steps=tuple(Step(rule, effect) for rule, effect in changed if rule is not None))
        case AskAll(asks=asks):
            asked = ((ask, change(ask.rule)) for ask in asks)
            return replace(stage, asks=tuple(replace(ask, rule=rule) for ask, rule in asked if rule is not None))


def asks_of(stage: Stage) -> tuple[Ask, ...]:
    """Return the questions of a stage to external authorizers."""
    return stage.asks if isinstance(stage, AskAll) else ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Stages in order. A request that passes all of them is allowed.

    `readings` are the readings of an unclear specification that shaped this chain. `scope` is the reason why the
    selector chose it, or None if the layer has no selector. `effective` is the policy that the stages are made of, if
    several policies are folded to one.
    """

    stages: tuple[Stage, ...]
    readings: tuple[Reading, ...] = ()
    scope: Scope | None = None
    effective: EffectivePolicy | None = None
    looks_at: frozenset[Attribute] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "looks_at", _looked_at(self.stages))

    @property
    def chosen_by(self) -> tuple[PolicyRef, ...]:
        """Return the policies and routes that made the selector choose this chain."""
        return () if self.scope is None else self.scope.refs

    @property
    def asks(self) -> Iterator[Ask]:
        """Yield every question to an external authorizer, in order."""
        for stage in self.stages:
            yield from asks_of(stage)

    @property
    def has_audit(self) -> bool:
        """Return whether a stage is only observed."""
        return any(isinstance(stage, Observe) for stage in self.stages)

    @property
    def audited(self) -> Iterator[tuple[Rule, str]]:
        """Yield the rules that are only observed, each with the effect that it would have."""
        for stage in self.stages:
            if isinstance(stage, Observe):
                yield from zip(stage.rules, stage.would, strict=True)

    def rules(self, *, observed: bool) -> Iterator[Rule]:
        """Yield every rule in order; with `observed`, also rules that decide nothing."""
        for stage in self.stages:
            if observed or not isinstance(stage, Observe):
                yield from rules_of(stage)

    def atoms(self, *, observed: bool) -> Iterator[Is | Computed]:
        """Yield every atom of the rules, in order; with `observed`, also of rules that decide nothing."""
        for rule in self.rules(observed=observed):
            yield from atoms(rule.when)


def _looked_at(stages: tuple[Stage, ...]) -> frozenset[Attribute]:
    """Return the attributes that can change the outcome. Observed rules cannot change it."""
    deciding = (stage for stage in stages if not isinstance(stage, Observe))
    return frozenset().union(*(mentions(rule.when) for stage in deciding for rule in rules_of(stage)))


@dataclass(frozen=True, slots=True)
class SelectorCase:
    """One case of a layer's selector.

    `synthetic`: generated (Linkerd's probe route). An ambiguous path does not match it, instead of failing the request.
    """

    when: Predicate
    chain: Chain
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """One enforcement point of one level. The FIRST case that matches gives the chain, else `otherwise` does.

    `derivations` compute attributes that requests do not contain. `audit` is the layer with its audited policies in
    force; it decides nothing.
    """

    at: Placement
    otherwise: Chain
    cases: tuple[SelectorCase, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    audit: Audit | None = None
    name: str = field(init=False, compare=False, repr=False)
    selects_by: frozenset[Attribute] = field(init=False, compare=False, repr=False)
    looks_at: frozenset[Attribute] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.at))
        selects_by: frozenset[Attribute] = frozenset().union(*(mentions(case.when) for case in self.cases))
        object.__setattr__(self, "selects_by", selects_by)
        object.__setattr__(self, "looks_at", selects_by.union(*(chain.looks_at for chain in self.chains)))

    @property
    def chains(self) -> Iterator[Chain]:
        """Yield every chain that the selector can pick."""
        yield from (case.chain for case in self.cases)
        yield self.otherwise

    @property
    def asks(self) -> Iterator[Ask]:
        """Yield every question of its chains to an external authorizer."""
        for chain in self.chains:
            yield from chain.asks

    def atoms(self, *, observed: bool) -> Iterator[Is | Computed]:
        """Yield every atom of the selector and the rules; with `observed`, also of rules that decide nothing."""
        for case in self.cases:
            yield from atoms(case.when)
        for chain in self.chains:
            yield from chain.atoms(observed=observed)
        if observed and self.audit is not None:
            yield from self.audit.layer.atoms(observed=True)


@dataclass(frozen=True, slots=True)
class Audit:
    """A layer with its audited policies in force, in addition to the others. It gives the would-be decision.

    `policies` are the audited policies that would change the layer. `closing` are the audited policies that deny by
    their presence: with one of them in force, the layer denies requests that no rule allows.
    """

    layer: Layer
    policies: tuple[Origin, ...]
    closing: tuple[Origin, ...] = ()


def in_force(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Return the layers with every audited policy in force."""
    return tuple(layer if layer.audit is None else layer.audit.layer for layer in layers)


# Outcomes: the decision on a request, of one layer and of all.


class UnaskedRefusal(enum.StrEnum):
    """The reason why a request was refused before any rule was evaluated; outcomes have it as the name of the stage."""

    HOST = "bad-host"
    SPELLING = "encoded-path"


class Unroutable(enum.StrEnum):
    """The reason why a request has no destination. Stages that refuse such requests have this name."""

    NO_ROUTE = "no-route"
    NO_INBOUND_ROUTE = "no-inbound-route"
    NO_BACKEND = "no-backend"
    REFERENCE_NOT_GRANTED = "reference-not-granted"
    BACKEND_NOT_DECLARED = "backend-not-declared"
    UNSUPPORTED_FILTER = "unsupported-filter"
    NO_HOST_POLICY = "no-host-policy"


REFUSED_HOST: Final = UnaskedRefusal.HOST
REFUSED_SPELLING: Final = UnaskedRefusal.SPELLING


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision of one layer. `rule` is the rule that decided, or None if a default decided or no rule matched."""

    allowed: bool
    layer: str | None = None
    stage: str | None = None
    rule: Rule | None = None
    refusal: int | None = None

    @property
    def is_unasked(self) -> bool:
        """Return whether the request was refused before any rule was evaluated."""
        return not self.allowed and self.rule is None and self.stage in (None, REFUSED_HOST, REFUSED_SPELLING)

    @property
    def status(self) -> int:
        """Return the status that the client sees: 200 if allowed, otherwise the refusal (0: a closed connection)."""
        return 200 if self.refusal is None else int(self.refusal)


UNOPPOSED: Final = Outcome(allowed=True)  # no policy, or none that denies or accepts


# Policies and the points where they apply


Stances: TypeAlias = tuple[tuple[str, Hashable], ...]
"""Inputs of layers other than policies, by the name of the dialect. Most dialects have none."""

P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Attachment(Generic[P_co]):
    """A policy at a point. `service` is the Service that the policy targets and that leads to the workload, if any.

    `host` is the host of the point, if policies are found by host. `perhaps`: it is unknown whether the policy applies
    to the point.
    """

    policy: P_co
    service: str | None = None
    host: str | None = None
    perhaps: bool = False
