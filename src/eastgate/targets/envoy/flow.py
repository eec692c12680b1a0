"""One layer at one port, as a decision for each caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from eastgate.policy import (
    ALWAYS,
    NEVER,
    REFUSED_SPELLING,
    AllowAny,
    AskAll,
    Chain,
    Computed,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Not,
    Observe,
    OneOf,
    PolicyRef,
    Predicate,
    Present,
    Refusal,
    Rule,
    Stage,
    assume,
    at_port,
    atoms,
    is_network,
    mentions,
    rewrite,
    rules_of,
)
from eastgate.policy.attributes import HOST, IDENTITY, MESH_NAME, METHOD, PATH, PORT
from eastgate.policy.hosts import HOST_PATTERN, is_host
from eastgate.policy.paths import REFUSED, RESPELLED, is_refused, is_respelled, is_sensitive
from eastgate.targets.envoy.callers import Caller, Naming
from eastgate.targets.envoy.codes import ASKS_AN_AUTHORIZER, Inexpressible
from eastgate.targets.envoy.decisions import NO_AUDIT, Node, Verdict, allow, choice, deny
from eastgate.targets.envoy.exactness import obstacle
from eastgate.targets.envoy.filing import Filed

__all__ = ["BAD_HOST", "ENCODED_CHARACTER", "ENCODED_SLASH", "Flow", "at_port", "is_network"]

_Say: TypeAlias = "Callable[[Rule | None], Node]"
_Asks: TypeAlias = "Callable[[Is | Computed], bool]"
_CALLER = frozenset({IDENTITY.name, MESH_NAME.name})
ENCODED_SLASH = Computed(
    "the path has an encoded slash or backslash",
    frozenset({PATH}),
    lambda values: is_refused(str(values[PATH])),
    pattern=(PATH, f"(?is).*({REFUSED}).*"),
)
_BAD_PATH = Verdict(False, int(Refusal.BAD_REQUEST), "encoded-slash")
_BAD_SPELLING = Verdict(False, int(Refusal.BAD_REQUEST), REFUSED_SPELLING)
BAD_HOST = Not(
    Computed(
        "the host is one",
        frozenset({HOST}),
        lambda values: is_host(str(values[HOST])),
        pattern=(HOST, f"(?i){HOST_PATTERN}"),
    )
)
ENCODED_CHARACTER = Computed(
    "the path has characters as %XX that need not be",
    frozenset({PATH}),
    lambda values: is_respelled(str(values[PATH])),
    pattern=(PATH, f"(?s).*(?:{RESPELLED}).*"),
)


class Flow:
    """A layer at a port. Raises Inexpressible where a proxy could not decide as the layer does."""

    def __init__(self, layer: Layer, port: int, naming: Naming) -> None:
        self.layer = at_port(layer, port)
        self.policies = frozenset(_policies(self.layer))
        self.asked = tuple(_asked(self.layer, observed=True))
        self._port = port
        self._naming = naming
        self._filed: dict[int, tuple[list[Rule], Filed]] = {}
        self._told_apart = bool(self.layer.cases)  # HTTP and what is not
        self._decided: dict[tuple[Caller | None, bool], Node] = {}
        self._by_caller = any(atom.attribute.name in _CALLER for atom in self.asked if isinstance(atom, Is))
        self._sizes: dict[int, int] = {}  # of chains: how many policies each has
        self._chains: dict[tuple[int, Caller | None], Node] = {}
        self._check()

    def _check(self) -> None:
        for chain in self.layer.chains:
            for stage in chain.stages:
                if isinstance(stage, AskAll):
                    raise Inexpressible(ASKS_AN_AUTHORIZER, "it asks an external authorizer", _policies(self.layer))
        for atom in _asked(self.layer, observed=False):
            problem = obstacle(atom)
            if problem is not None:
                raise Inexpressible(*problem, self.policies)

    # Deciding

    def decision(self, caller: Caller, *, http: bool) -> Node:
        """Return what the layer decides for callers of a cell: the same object for all, where it asks for none.

        `http`: the request is known to be HTTP.
        """
        key = caller if self._by_caller else None, http and self._told_apart
        if key not in self._decided:
            self._decided[key] = self._pick(caller, http, lambda chain: self._chain(chain, caller))
        return self._decided[key]

    def refusal(self, caller: Caller) -> Node:
        """The same for requests whose path has an encoded slash."""
        if PATH not in self.layer.looks_at:
            return self.decision(caller, http=True)
        return self._without(_is_about_path, _BAD_PATH, caller)

    def respelled(self, caller: Caller) -> Node:
        """The same for requests whose path has encoded characters that patterns may not take for what they are."""
        if not any(map(is_sensitive, _asked(self.layer, observed=False))):
            return self.decision(caller, http=True)
        return self._without(is_sensitive, _BAD_SPELLING, caller)

    def audit(self, caller: Caller, *, http: bool) -> Node | None:
        """What policies in audit mode would have done; None where there are none."""
        if not any(isinstance(stage, Observe) for chain in self.layer.chains for stage in chain.stages):
            return None
        return self._pick(caller, http, lambda chain: self._observed(chain, caller))

    def _pick(self, caller: Caller, http: bool, of: Callable[[Chain], Node]) -> Node:
        cases = [(self._settled(case.when, caller, http), case.chain) for case in self.layer.cases]
        return choice([(when, of(chain)) for when, chain in cases if when != NEVER], of(self.layer.otherwise))

    def _chain(self, chain: Chain, caller: Caller) -> Node:
        """Return what a chain decides. Routes that share one share its decision."""
        key = id(chain), caller if self._by_caller else None
        if key not in self._chains:
            self._chains[key] = self._decide(chain, caller)
        return self._chains[key]

    def _decide(self, chain: Chain, caller: Caller) -> Node:
        stages = [stage for stage in chain.stages if not isinstance(stage, Observe)]
        policies = self._sizes.get(id(chain))
        if policies is None:
            named = {rule.origin.policy for stage in stages for rule in rules_of(stage)} - {None}
            policies = self._sizes[id(chain)] = len(named)
        return self._from(stages, caller, None, policies)

    def _from(self, stages: Sequence[Stage], caller: Caller, accepted: Rule | None, policies: int) -> Node:
        """What the rest of a chain decides; `accepted` is the last rule so far that let the request go on."""
        if not stages:
            return allow(accepted)
        stage, rest = stages[0], stages[1:]

        def go_on(rule: Rule | None) -> Node:
            return self._from(rest, caller, rule or accepted, policies)

        match stage:
            case Deny(refusal=refusal):
                return self._tests(stage, caller, lambda rule, _: deny(rule, refusal, policies), go_on(None))
            case AllowAny(refusal=refusal):
                return self._tests(stage, caller, lambda rule, _: go_on(rule), deny(None, refusal, policies))
            case FirstMatch(steps=steps, otherwise=otherwise, refusal=refusal):
                by_effect: dict[Effect, _Say] = {
                    Effect.ACCEPT: lambda rule: allow(rule or accepted),
                    Effect.DENY: lambda rule: deny(rule, refusal, policies),
                    Effect.PASS: lambda _rule: go_on(None),
                }
                return self._tests(
                    stage, caller, lambda rule, place: by_effect[steps[place].effect](rule), by_effect[otherwise](None)
                )
            case _:
                raise AssertionError(f"no such stage is left: {stage}")

    def _tests(self, stage: Stage, caller: Caller, say: Callable[[Rule, int], Node], otherwise: Node) -> Node:
        known = self._filed.get(id(stage))
        if known is None:
            every = list(rules_of(stage))
            known = self._filed[id(stage)] = every, Filed.of((rule.when for rule in every), self._naming)
        rules, filed = known
        settled = ((self._settled(rules[place].when, caller, False), place) for place in filed.concerning(caller))
        return choice(((when, say(rules[place], place)) for when, place in settled if when != NEVER), otherwise)

    def _settled(self, predicate: Predicate, caller: Caller, http: bool) -> Predicate:
        def settle(atom: Is | Computed) -> Predicate:
            if isinstance(atom, Computed):
                return atom
            name, matcher = atom.attribute.name, atom.matcher
            if name in _CALLER:
                return self._naming.settle(atom, caller)
            if name == PORT.name:
                return ALWAYS if matcher.contains(self._port) else NEVER
            if http and name == METHOD.name and isinstance(matcher, Present):
                return ALWAYS
            return NEVER if isinstance(matcher, OneOf) and not matcher.values else atom

        return rewrite(predicate, settle)

    # A path with an encoded slash: its chain is chosen without looking at it, and refuses it where it looks at paths

    def _without(self, asks: _Asks, refused: Verdict, caller: Caller) -> Node:
        """What is decided without atoms that may not be asked; refused where it depends on them."""

        def chosen(chain: Chain) -> Node:
            rules = (rule for stage in chain.stages if not isinstance(stage, Observe) for rule in rules_of(stage))
            dependent = any(asks(atom) for rule in rules for atom in atoms(rule.when))
            return refused if dependent else self._chain(chain, caller)

        def cases() -> Iterator[tuple[Predicate, Node]]:
            for case in self.layer.cases:
                when = self._settled(case.when, caller, True)
                if case.synthetic:
                    yield when, chosen(case.chain)
                else:
                    yield assume(when, asks, held=False), chosen(case.chain)
                    yield assume(when, asks, held=True), refused

        return choice(cases(), chosen(self.layer.otherwise))

    # Policies in audit mode

    def _observed(self, chain: Chain, caller: Caller) -> Node:
        tests: list[tuple[Predicate, Node]] = []
        for stage in chain.stages:
            if isinstance(stage, Observe):
                for rule, would in zip(stage.rules, stage.would, strict=True):
                    if any(obstacle(atom) is not None for atom in atoms(rule.when)):
                        continue  # a policy that decides nothing closes nothing either
                    verdict = deny(rule, Refusal.FORBIDDEN, 0) if would.upper() == "DENY" else allow(rule)
                    tests.append((self._settled(rule.when, caller, False), verdict))
        return choice(tests, NO_AUDIT)


def _is_about_path(atom: Is | Computed) -> bool:
    return PATH in mentions(atom)


def _asked(layer: Layer, *, observed: bool) -> Iterator[Is | Computed]:
    """Every atom of a layer; of what is only observed, where that is wanted."""
    for case in layer.cases:
        yield from atoms(case.when)
    for chain in layer.chains:
        for stage in chain.stages:
            for rule in rules_of(stage) if observed or not isinstance(stage, Observe) else ():
                yield from atoms(rule.when)


def _policies(layer: Layer) -> Iterable[PolicyRef]:
    for chain in layer.chains:
        for stage in chain.stages:
            yield from (rule.origin.policy for rule in rules_of(stage) if rule.origin.policy is not None)
