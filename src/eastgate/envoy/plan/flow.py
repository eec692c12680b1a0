"""One layer at one port, as a decision for each cell of callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from eastgate.envoy.plan.codes import ASKS_AN_AUTHORIZER, Inexpressible
from eastgate.envoy.plan.combining import obstacle
from eastgate.envoy.plan.decisions import (
    ASK,
    NO_AUDIT,
    WOULD_ASK,
    WOULD_MATCH,
    Node,
    ProxyVerdict,
    closers_name,
    name_of,
    verdict_of,
)
from eastgate.envoy.plan.vantage import AT_SIDECAR, Vantage
from eastgate.ir import (
    ALWAYS,
    NEVER,
    REFUSED_SPELLING,
    Audit,
    Chain,
    Computed,
    Is,
    Layer,
    Not,
    OneOf,
    Origin,
    Outcome,
    PolicyRef,
    Predicate,
    Present,
    Refusal,
    at_port,
    atoms,
    rewrite,
)
from eastgate.ir.addresses import HOST_PATTERN, is_host
from eastgate.ir.attributes import HOST, METHOD, PATH, PORT
from eastgate.ir.paths import REFUSED, RESPELLED, is_refused, is_respelled, is_sensitive
from eastgate.ir.symbolic.caller_cells import CALLER_ATTRIBUTES, CallerCells
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.judging import is_about_path
from eastgate.ir.symbolic.partial import ArmIndex, Partial
from eastgate.ir.symbolic.stages import is_answer
from eastgate.ir.symbolic.trees import choice

Residual = Callable[[Predicate], Predicate]

ENCODED_SLASH = Computed(
    "the path has an encoded slash, backslash or NUL",
    frozenset({PATH}),
    lambda values: is_refused(str(values[PATH])),
    pattern=(PATH, f"(?is).*({REFUSED}).*"),
)
_BAD_PATH = ProxyVerdict(False, int(Refusal.BAD_REQUEST), "encoded-slash")
_BAD_SPELLING = ProxyVerdict(False, int(Refusal.BAD_REQUEST), REFUSED_SPELLING)
BAD_HOST = Not(
    Computed(
        "the host is one",
        frozenset({HOST}),
        lambda values: is_host(str(values[HOST])),
        pattern=(HOST, f"(?i){HOST_PATTERN}"),
    )
)
ENCODED_CHARACTER = Computed(
    "the path is not in its canonical spelling",
    frozenset({PATH}),
    lambda values: is_respelled(str(values[PATH])),
    pattern=(PATH, f"(?s).*(?:{RESPELLED}).*"),
)


_MARKS = {"ASK": WOULD_ASK, "AUDIT": WOULD_MATCH}


class Flow:
    """A layer at a port.

    If a proxy cannot decide as the layer does, it asks the authorizer, if its vantage has one; otherwise Inexpressible
    is raised.
    """

    def __init__(
        self,
        layer: Layer,
        port: int,
        callers: CallerCells,
        vantage: Vantage = AT_SIDECAR,
        audit: Audit | None = None,
    ) -> None:
        """Make the flow of a layer. `audit`: the layer is the would-be layer of this audit, and decides nothing."""
        self.layer = at_port(layer, port)
        self._audit = audit
        self._in_force: Flow | None = None
        self._vantage = vantage
        self.policies = frozenset(_policies(self.layer))
        self.asked = tuple(self.layer.atoms(observed=True))
        self._port = port
        self._callers = callers
        self._index = ArmIndex(callers)
        self._tells_http = bool(self.layer.cases)  # from other bytes
        self._by_caller = any(atom.attribute in CALLER_ATTRIBUTES for atom in self.asked if isinstance(atom, Is))
        self._sensitive = any(map(is_sensitive, self.layer.atoms(observed=False)))
        self._sizes: dict[int, int] = {}  # number of policies, for each chain
        self._partials: dict[CallerCell | None, Partial[ProxyVerdict]] = {}
        self._decided: dict[tuple[CallerCell | None, bool], Node] = {}
        self._asking = frozenset(id(ask.rule) for ask in self.layer.asks)
        self.is_left_to_authorizer = self._is_left_to_authorizer()

    def _is_left_to_authorizer(self) -> bool:
        """Return whether the authorizer decides the whole layer. Raises Inexpressible if it cannot either."""
        problem = next(filter(None, (obstacle(atom, self._vantage) for atom in self.layer.atoms(observed=False))), None)
        if self._vantage.asks:
            return problem is not None
        if self._audit is not None:  # a policy that decides nothing closes nothing
            return bool(self._asking) or problem is not None
        if self._asking:
            raise Inexpressible(ASKS_AN_AUTHORIZER, "it asks an external authorizer", _policies(self.layer))
        if problem is not None:
            raise Inexpressible(*problem, self.policies)
        return False

    def decision(self, caller: CallerCell, *, http: bool) -> Node:
        """Return the decision of the layer for callers of a cell: one object for all cells, if callers do not matter.

        `http`: the request is known to be HTTP.
        """
        if self.is_left_to_authorizer:
            return ASK if self._audit is None else self.untold
        key = caller if self._by_caller else None, http and self._tells_http
        if key not in self._decided:
            self._decided[key] = self._partial(caller).tree(self._residual(caller, http=http))
        return self._decided[key]

    def refusal(self, caller: CallerCell) -> Node:
        """Return the decision about requests with an encoded slash in the path."""
        if PATH not in self.layer.looks_at or self.is_left_to_authorizer:
            return self.decision(caller, http=True)
        return self._partial(caller).tree_without(is_about_path, _BAD_PATH, self._residual(caller, http=True))

    def respelled(self, caller: CallerCell) -> Node:
        """Return the decision about requests with encoded characters in the path that patterns may read differently."""
        if not self._sensitive or self.is_left_to_authorizer:
            return self.decision(caller, http=True)
        return self._partial(caller).tree_without(is_sensitive, _BAD_SPELLING, self._residual(caller, http=True))

    @property
    def in_force(self) -> Flow:
        """Return the flow of the layer with its audited policies in force; itself without any."""
        audit = self.layer.audit
        if audit is None:
            return self
        if self._in_force is None:
            self._in_force = Flow(audit.layer, self._port, self._callers, self._vantage, audit)
        return self._in_force

    @property
    def untold(self) -> ProxyVerdict:
        """Return the verdict if the proxy cannot determine the effect of an audited policy."""
        first = next(iter(self._audit.policies if self._audit is not None else ()), None)
        return ProxyVerdict(True, 200, name_of(first or Origin(None, 0), 0), would=WOULD_ASK)

    def would(self, caller: CallerCell, *, http: bool) -> Node:
        """Return the decision of the layer for callers of a cell, including refusals for the spelling of a path."""
        node = self.decision(caller, http=http)
        if not http:
            return node
        spelled = [(ENCODED_SLASH, self.refusal(caller)), (ENCODED_CHARACTER, self.respelled(caller))]
        return choice([(when, refused) for when, refused in spelled if refused != node], node)

    def audit(self, caller: CallerCell, *, http: bool) -> Node | None:
        """Return the effects of observed rules; None if there are none."""
        if not any(chain.has_audit for chain in self.layer.chains):
            return None
        residual = self._residual(caller, http=False)
        return self._partial(caller).tree(
            self._residual(caller, http=http), lambda chain: self._observed(chain, residual)
        )

    def _partial(self, caller: CallerCell) -> Partial[ProxyVerdict]:
        """Return the partial evaluation for a cell, or for all cells if the layer does not distinguish callers."""
        key = caller if self._by_caller else None
        partial = self._partials.get(key)
        if partial is None:
            residual = self._residual(caller, http=False)
            partial = self._partials[key] = Partial(self.layer, residual, self._verdict, self._index, key)
        return partial

    def _verdict(self, outcome: Outcome, chain: Chain) -> ProxyVerdict:
        if id(outcome.rule) in self._asking:
            return ASK if self._audit is None else replace(verdict_of(outcome, 0), allowed=True, would=WOULD_ASK)
        if self._audit is not None and outcome.rule is None and not outcome.allowed and self._audit.policies:
            closing = self._audit.closing or self._audit.policies
            return ProxyVerdict(False, outcome.status, closers_name(closing))
        return verdict_of(outcome, self._size(chain) if outcome.rule is None else 0)

    def _size(self, chain: Chain) -> int:
        """Return the number of policies that decide in a chain."""
        if id(chain) not in self._sizes:
            policies = {rule.origin.policy for rule in chain.rules(observed=False)} - {None}
            self._sizes[id(chain)] = len(policies)
        return self._sizes[id(chain)]

    def _residual(self, caller: CallerCell, *, http: bool) -> Residual:
        """Return a function from a predicate to its residual for a caller's requests."""

        def settle(atom: Is | Computed) -> Predicate:
            if isinstance(atom, Computed):
                return atom
            attribute, matcher = atom.attribute, atom.matcher
            if is_answer(attribute):
                return NEVER  # an asked authorizer ends the proxy's part
            if attribute in self._vantage.facts:
                return ALWAYS if atom.accepts(self._vantage.facts[attribute]) else NEVER
            if attribute in CALLER_ATTRIBUTES:
                return self._callers.settle(atom, caller)
            if attribute == PORT:
                return ALWAYS if matcher.contains(self._port) else NEVER
            if http and attribute == METHOD and isinstance(matcher, Present):
                return ALWAYS
            return NEVER if isinstance(matcher, OneOf) and not matcher.values else atom

        return lambda predicate: rewrite(predicate, settle)

    def _observed(self, chain: Chain, residual: Residual) -> Node:
        """Return the effect of the FIRST matching rule in audit mode."""
        tests: list[tuple[Predicate, Node]] = []
        for rule, would in chain.audited:
            if self.layer.audit is not None and would != "AUDIT":
                continue  # part of the would-be decision
            if any(obstacle(atom, self._vantage) is not None for atom in atoms(rule.when)):
                continue  # a policy that decides nothing closes nothing
            denies = would.upper() == "DENY"
            outcome = Outcome(not denies, rule=rule, refusal=Refusal.FORBIDDEN if denies else None)
            verdict = replace(verdict_of(outcome, 0), would=_MARKS.get(would.upper(), ""))
            tests.append((residual(rule.when), verdict))
        return choice(tests, NO_AUDIT)


def _policies(layer: Layer) -> Iterable[PolicyRef]:
    rules = (rule for chain in layer.chains for rule in chain.rules(observed=True))
    return (rule.origin.policy for rule in rules if rule.origin.policy is not None)
