"""Conditions under which a question is allowed, for all requests that it may mean.

A question without a method may mean bytes or any HTTP request, if its port may carry HTTP. The conditions come from the
symbolic evaluation that `eastgate graph` uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from eastgate.authority.authority import Authority, decider_of
from eastgate.authority.decisions import Decision
from eastgate.authority.outcomes import INVALID_TOKEN, OTHERWISE, WITHOUT_TOKEN, Depends
from eastgate.authority.point_programs import PointPrograms
from eastgate.authority.questions import Arrival, EntryPoint, Question, UnknownLabelsError
from eastgate.authority.questions.connecting import workload_at
from eastgate.cluster import World
from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    Computed,
    Is,
    Known,
    Not,
    OneOf,
    Or,
    Predicate,
    Request,
    TokenDeriving,
    all_of,
    any_of,
    atoms,
    conjuncts,
    mentions,
    rewrite,
)
from eastgate.ir.attributes import (
    APPLICATION,
    HOST,
    IDENTITY,
    MCP_METHOD,
    MCP_TOOL,
    PORT,
    SERVICE,
    Attribute,
    AttributeKind,
)
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.ir.symbolic.cells import TooManyEntries, in_sequence
from eastgate.ir.symbolic.partial import ArmIndex, Facts, residual
from eastgate.ir.symbolic.simplify import both, straightened
from eastgate.ir.symbolic.stages import answer_attribute
from eastgate.ir.symbolic.trees import Entry
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reach.endings import OPEN, Branch, EnforcementPoint, fold, list_points
from eastgate.reach.possible import possible_requests
from eastgate.reports.conditions import VALID_TOKEN, condition_text, readable, some_claim
from eastgate.reports.graph.conditions import allowed_when, explain_branches
from eastgate.reports.rephrasing import options, spellings

_MAX_ARRIVALS, _MAX_ATOMS = 64, 80  # limits of one symbolic evaluation
_MAX_WITNESS_ATOMS = 30  # of a condition for which a witness is searched
_MAX_EXAMPLES = 8  # conditions for which an example is searched
_MAX_CONDITION_CHARS = 160  # if the conditions are longer, an example is shown instead
_IS_HTTP, _IS_BYTES = (Is(APPLICATION, OneOf(frozenset({name}))) for name in ("http", "bytes"))

_RAW_PROTOCOLS = frozenset({"tcp", "tls", "https", "udp", "mongo", "mysql", "redis"})
"""Names of protocols that proxies pass on as bytes."""


def widen(arrival: Arrival, at: PointPrograms, *, question: Question, world: World) -> Request:
    """Remove the protocol from a request, if its port may carry HTTP and the question names no HTTP attribute."""
    request = arrival.request
    if arrival.entry.hides_http:
        return request
    values = request.values
    only_bytes = not question.is_http and _speaks_only_bytes(arrival, world)
    if not question.is_http and not only_bytes and APPLICATION in values:
        values = {attribute: value for attribute, value in values.items() if attribute is not APPLICATION}
    possible = possible_requests(at.layers, only_bytes=only_bytes)
    conditions = [each for each in (request.within, possible) if each is not None and each != ALWAYS]
    return Request(values, request.answers, request.assumed, all_of(conditions) if conditions else None)


def hides_http(decision: Decision, authority: Authority) -> bool:
    """Return whether a question leads to a port that proxies read as bytes."""
    arrivals = decider_of(authority).arrivals(decision.question, with_network=True)
    return any(_speaks_only_bytes(arrival, authority.world) for arrival, _ in arrivals)


def _speaks_only_bytes(arrival: Arrival, world: World) -> bool:
    """Return whether the names of the Service ports declare a protocol that proxies do not parse as HTTP."""
    values = arrival.request.values
    port, workload = values.get(PORT), workload_at(arrival.points, world)
    if not isinstance(port, int) or workload is None:
        return False
    service = values.get(SERVICE)
    keys = [service] if isinstance(service, str) else world.services_of(workload.key)
    leading = [
        declared.app_protocol or declared.name
        for key in keys
        if key in world.services
        for declared in world.services[key].ports
        if port in world.target_ports(world.services[key], declared.port, workload)
    ]
    names = leading or [declared.name for declared in workload.ports if declared.number == port]
    return bool(names) and all((name or "").lower().partition("-")[0] in _RAW_PROTOCOLS for name in names)


class AllowedRequests:
    """All requests that a question may mean, divided into allowed and denied ones."""

    def __init__(self, question: Question, authority: Authority) -> None:
        self._question = question
        self._authority = authority
        self._possible: Predicate = ALWAYS
        self._branches: tuple[Branch, ...] = ()
        self._guards: Sequence[Predicate] = ()
        self._reads_tokens = False
        self._issuers: dict[str, None] = {}
        try:
            self._evaluate()
        except (TooManyEntries, UnknownLabelsError):
            self._branches = ()

    def _evaluate(self) -> None:
        index = ArmIndex(CallerCells(self._authority.settings))
        arrivals = decider_of(self._authority).arrivals(self._question, with_network=True)
        if len(arrivals) > _MAX_ARRIVALS or not all(_is_plain(arrival, at) for arrival, at in arrivals):
            return
        lists: dict[tuple[Branch, ...], None] = {}
        possible: dict[Predicate, None] = {}
        guards = [_guard(arrival.entry) for arrival, _ in arrivals]
        routed = [guard for guard in guards if guard is not None]
        self._guards = routed
        for (arrival, at), guard in zip(arrivals, guards, strict=True):
            widened = widen(arrival, at, question=self._question, world=self._authority.world)
            facts = Facts({**widened.values, **_answers(at, widened)})
            point = EnforcementPoint((arrival.where,), at.layers)
            branches = list_points((point,), facts, index)[1]
            taken = guard if guard is not None or not routed else Not(any_of(routed))
            if taken is not None and (asked := residual(taken, facts)) != ALWAYS:
                guarded = [Entry(both((asked, branch.when)), branch.end) for branch in branches]
                branches = [*(each for each in guarded if each.when != NEVER), Entry(ALWAYS, OPEN)]
            lists[tuple(branches)] = None
            if widened.within is not None:
                possible[residual(widened.within, facts)] = None
            self._reads_tokens = self._reads_tokens or any(map(_is_token, at.looked_at))
            deriving = (each for each in at.derivations if isinstance(each, TokenDeriving))
            self._issuers |= dict.fromkeys(issuer for each in deriving for issuer in each.issuers)
        if len({atom for branches in lists for branch in branches for atom in atoms(branch.when)}) > _MAX_ATOMS:
            raise TooManyEntries
        self._possible = all_of(possible)
        self._branches = fold(in_sequence(list(lists), OPEN))

    def allowed_questions(self) -> Iterator[Question]:
        """Yield a question for each condition on which requests are allowed."""
        conditions = _alternatives(self.condition) if self._branches else self._guards
        for part in conditions[:_MAX_EXAMPLES]:
            try:
                found = self._witness(part)
            except GaveUp:
                found = None
            if found is not None:
                values = {name: value for name, value in found.values.items() if name is not IDENTITY}
                for filled in spellings(self._question, values):
                    yield from self._with_tokens(filled)

    def _with_tokens(self, question: Question) -> Iterator[Question]:
        """Yield the question without a token and with a token of each issuer, if it names none and rules read
        tokens.
        """
        token_parts = (self._question.claims, self._question.token, self._question.headers)
        if not self._reads_tokens or self._question.no_token or any(part is not None for part in token_parts):
            yield question
            return
        yield replace(question, claims=None, no_token=True)
        for issuer in self._issuers:
            yield replace(question, claims={"sub": "someone", **(question.claims or {}), "iss": issuer}, no_token=False)

    @property
    def condition(self) -> Predicate:
        """Return the condition on which requests are allowed."""
        return straightened(allowed_when(self._branches))

    @property
    def _denied(self) -> Predicate:
        opposite = [Entry(each.when, replace(each.end, allowed=not each.end.allowed)) for each in self._branches]
        return straightened(allowed_when(opposite))

    def depends(self, allowed: Question) -> Depends | None:
        """Return the allowed or the denied conditions, whichever text is shorter; None without any."""
        if not self._branches:
            return None
        allowed_parts = map(_beside_token, _alternatives(self.condition))
        is_shorter = _negations(self._denied) < sum(map(_negations, allowed_parts))
        by_denials = self._branches[-1].end.allowed or is_shorter
        parts = [
            part for part in _alternatives(self._denied if by_denials else self.condition) if self._is_possible(part)
        ]
        if not parts:
            return None
        looked_at = [attribute for part in parts for attribute in mentions(part)]
        about = [part for part in parts if not _asks_of_token(part)] if by_denials else [*map(_beside_token, parts)]
        texts = tuple(dict.fromkeys(map(_text, about)))
        if any(attribute in (MCP_METHOD, MCP_TOOL) for attribute in looked_at):
            by_denials, texts = False, (explain_branches(self._branches) or OTHERWISE,)
        if len(", ".join(texts[:3])) > _MAX_CONDITION_CHARS:
            return None
        refused = (INVALID_TOKEN,) if any(map(_is_token, looked_at)) else ()
        allow: tuple[str, ...] = (OTHERWISE,) if texts else (WITHOUT_TOKEN,)
        deny: tuple[str, ...] = (*texts, *refused)
        if not by_denials:
            allow, deny = texts, (OTHERWISE, *refused)
        return Depends(allow, deny, tuple(allowed.arguments), is_condition=True, options=options(looked_at))

    def _witness(self, part: Predicate) -> Request | None:
        """Return a request that meets a condition, or None if no request does. Raises GaveUp."""
        wanted = both((part, self._possible))
        if len(set(atoms(wanted))) > _MAX_WITNESS_ATOMS:
            raise GaveUp
        return None if wanted == NEVER else witness(wanted)

    def _is_possible(self, part: Predicate) -> bool:
        try:
            return self._witness(part) is not None
        except GaveUp:
            return True


def _negations(predicate: Predicate) -> int:
    match predicate:
        case Not(Is()):
            return 1
        case Not(part):
            return 1 + _negations(part)
        case And(parts) | Or(parts):
            return sum(map(_negations, parts))
        case _:
            return 0


def _is_token(attribute: Attribute) -> bool:
    return attribute.kind is AttributeKind.TOKEN


def _asks_of_token(part: Predicate) -> bool:
    """Return whether a condition depends only on the token, apart from the protocol."""
    rest = [conjunct for conjunct in conjuncts(part) if not any(map(_is_token, mentions(conjunct)))]
    return len(rest) < len(conjuncts(part)) and all(mentions(conjunct) == {APPLICATION} for conjunct in rest)


def _beside_token(part: Predicate) -> Predicate:
    return all_of(conjunct for conjunct in conjuncts(part) if not any(map(_is_token, mentions(conjunct))))


def _text(part: Predicate) -> str:
    """Render a condition. Its requirements on the token come last."""
    part = rewrite(part, _as_host)
    if part in (_IS_BYTES, Not(_IS_HTTP)):
        return "bytes"
    parts = conjuncts(readable(part))
    tokens = [conjunct for conjunct in parts if mentions(conjunct) and all(map(_is_of_token, mentions(conjunct)))]
    rest = [conjunct for conjunct in parts if conjunct not in tokens]
    held = [conjunct for conjunct in tokens if not isinstance(conjunct, Not)]
    texts = [condition_text(all_of(rest))] if rest or not tokens else []
    texts += [f"with {_token_text(held)}"] if held else []
    denied = [each.part for each in tokens if isinstance(each, Not)]  # the refusal of tokens is rendered separately
    texts += [WITHOUT_TOKEN if each == VALID_TOKEN else f"without {_token_text(conjuncts(each))}" for each in denied]
    return " ".join(texts)


def _is_of_token(attribute: Attribute) -> bool:
    return attribute.kind is AttributeKind.CLAIM or attribute == VALID_TOKEN.attribute


def _token_text(parts: Sequence[Predicate]) -> str:
    """Render the requirements on the claims of a token. A token that has a claim with a value is valid."""
    named = [f"claim {part.attribute.key}={_values(part)}" for part in parts if _is_listed(part)]
    others = [part for part in parts if not _is_listed(part) and not (named and _is_principal(part))]
    return " and ".join([*named, *map(_part_text, others)])


def _is_principal(part: Predicate) -> bool:
    return part == VALID_TOKEN or some_claim(part) in ("iss", "sub")


def _part_text(part: Predicate) -> str:
    key = some_claim(part)
    text = f"claim {key}" if key is not None else condition_text(part)
    return f"({text})" if isinstance(part, Or) else text


def _as_host(atom: Is | Computed) -> Predicate:
    """Return a condition on the host in the form that people read, whichever header a proxy compares."""
    return Is(HOST, atom.matcher) if isinstance(atom, Is) and atom.attribute.kind is AttributeKind.AUTHORITY else atom


def _is_listed(conjunct: Predicate) -> TypeGuard[Is]:
    return isinstance(conjunct, Is) and isinstance(conjunct.matcher, OneOf)


def _values(atom: Is) -> str:
    return ",".join(sorted(map(str, atom.matcher.values))) if isinstance(atom.matcher, OneOf) else str(atom.matcher)


def _is_plain(arrival: Arrival, at: PointPrograms) -> bool:
    """Return whether rules alone decide: the request is well-formed, and no authorizer is asked."""
    request = arrival.request
    is_refused = request.bad_host or request.refused_path or request.respelled_path
    hides = arrival.entry.hides_http and at.looks_at_http
    return not (is_refused or hides or at.authorizers or IDENTITY not in request.values)


def _guard(entry: EntryPoint) -> Predicate | None:
    return entry.guard() if entry.guard is not None else None


def _answers(at: PointPrograms, request: Request) -> dict[Attribute, Known]:
    """Return the answers of external authorizers as attributes.

    An authorizer that gave no answer has the value None.
    """
    values: dict[Attribute, Known] = {}
    for ask in (ask for layer in at.layers for ask in layer.asks):
        answer = request.answers.get(ask.authorizer)
        verdict = None if answer is None else "allow" if ask.consents(answer) else "deny"
        values[answer_attribute(ask.authorizer)] = verdict
    return values


def _alternatives(predicate: Predicate) -> Sequence[Predicate]:
    """Return the alternatives of a condition. Requirements on HTTP or on the token are repeated in each of them."""
    if isinstance(predicate, Or):
        return predicate.parts
    parts = conjuncts(predicate)
    chosen = [part for part in parts if isinstance(part, Or) and len(mentions(part)) > 1]
    rest = [part for part in parts if part not in chosen]
    if len(chosen) != 1 or not all(
        mentions(part) <= {APPLICATION} or any(map(_is_token, mentions(part))) for part in rest
    ):
        return (predicate,)
    return [each for option in chosen[0].parts if (each := both((*rest, option))) != NEVER]
