"""The reference evaluator: the definition of the IR, in the simplest possible code.

It is slow on purpose and shares no code with the compiled engine, so that tests can compare the two on generated input.
It tries every value that could make a difference for an unknown attribute.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product

from eastgate.ir import (
    AccountsOf,
    AllowAny,
    And,
    Answer,
    AnyAccount,
    Ask,
    AskAll,
    Between,
    Chain,
    Computed,
    Deny,
    Effect,
    FirstMatch,
    InNetwork,
    Is,
    Known,
    Labelled,
    Layer,
    Matcher,
    Not,
    Observe,
    OneOf,
    Or,
    Outcome,
    Predicate,
    Prefix,
    Present,
    Refusal,
    Request,
    Ruling,
    Stage,
    Suffix,
    UnaskedRefusal,
    Value,
    atoms,
    mentions,
    rules_of,
)
from eastgate.ir.addresses import parse_network
from eastgate.ir.attributes import (
    ADDRESSES,
    APPLICATION,
    BAD_HOST,
    HANDED_PATH,
    PATH,
    PATHS,
    PORT,
    TRANSPORT,
    VICINITY,
    Attribute,
)
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.ir.paths import is_sensitive


def decide(layers: Sequence[Layer], request: Request) -> Outcome:
    """Decide a request. ALL layers must allow, in every completion, and the first denial decides."""
    accepted = Outcome(allowed=True)
    unbounded = Request(request.values, request.answers, request.assumed)
    for layer in layers:
        completions = list(_completions(layer, request)) or _completions(layer, unbounded)
        outcomes = [_layer(layer, completion) for completion in completions]
        denied = [outcome for outcome in outcomes if not outcome.allowed]
        if denied:
            return denied[0]
        if outcomes[0].rule is not None:
            accepted = outcomes[0]
    return accepted


def _layer(layer: Layer, request: Request) -> Outcome:
    if BAD_HOST in request.values and _reads_http(layer, request.values.get(PORT)):
        return Outcome(False, layer.name, UnaskedRefusal.HOST, None, Refusal.BAD_REQUEST)
    path = request.values.get(PATH)
    ambiguous = isinstance(path, str) and _is_ambiguous(path)
    respelled = not ambiguous and HANDED_PATH in request.values
    refused = Outcome(False, layer.name, None if ambiguous else UnaskedRefusal.SPELLING, None, Refusal.BAD_REQUEST)
    chain = layer.otherwise
    for case in layer.cases:
        anything = (ambiguous or respelled) and not case.synthetic
        possible = _truths_for_any_path(case.when, request, ambiguous) if anything else {holds(case.when, request)}
        if possible == {True, False}:
            return refused
        if possible == {True}:
            chain = case.chain
            break
    looked_at = [rule.when for rule in chain.rules(observed=False)]
    if ambiguous and any(PATHS & mentions(predicate) for predicate in looked_at):
        return refused
    if respelled and any(is_sensitive(atom) for predicate in looked_at for atom in atoms(predicate)):
        return refused
    return _chain(layer.name, chain, request)


def _is_ambiguous(path: str) -> bool:
    """Return whether a path has an encoded separator, or a dot segment with parameters."""
    return re.search(r"%2f|%5c|%00|/\.\.?(;|%3b)", path.lower()) is not None


def _reads_http(layer: Layer, port: Known) -> bool:
    """Return whether a layer needs HTTP at a port, or answers with an HTTP status."""
    chains = []
    for case in layer.cases:
        on_port = _on_port(case.when, port)
        if on_port != {False}:
            chains.append(case.chain)
            if on_port == {True}:
                break
            if any(attribute.needs_http for attribute in mentions(case.when)):
                return True
    else:
        chains.append(layer.otherwise)
    stages = [stage for chain in chains for stage in chain.stages]
    rules = [rule for stage in stages for rule in rules_of(stage)]
    return any(not isinstance(stage, Observe) and stage.refusal is not Refusal.CLOSED for stage in stages) or any(
        attribute.needs_http for rule in rules for attribute in mentions(rule.when)
    )


def _on_port(predicate: Predicate, port: Known) -> set[bool]:
    """Return the possible results of a predicate at a port, for any values of the other attributes."""
    match predicate:
        case And(parts) | Or(parts):
            each = [_on_port(part, port) for part in parts]
            decisive = isinstance(predicate, Or)
            if {decisive} in each:
                return {decisive}
            return {not decisive} if all(held == {not decisive} for held in each) else {True, False}
        case Not(part):
            return {not held for held in _on_port(part, port)}
        case Is(attribute, matcher) if attribute == PORT:
            return {isinstance(port, int) and _matches(matcher, port)}
        case _:
            return {True, False}


def _truths_for_any_path(predicate: Predicate, request: Request, ambiguous: bool) -> set[bool]:
    """Return the possible results if comparisons of the path may have any result; unless `ambiguous`, only patterns."""
    match predicate:
        case And(parts) | Or(parts):
            each = [_truths_for_any_path(part, request, ambiguous) for part in parts]
            decisive = isinstance(predicate, Or)
            if {decisive} in each:
                return {decisive}
            return {not decisive} | ({decisive} if any(decisive in held for held in each) else set())
        case Not(part):
            return {not held for held in _truths_for_any_path(part, request, ambiguous)}
        case _:
            either = bool(PATHS & mentions(predicate)) if ambiguous else is_sensitive(predicate)
            return {True, False} if either else {holds(predicate, request)}


def _chain(layer: str, chain: Chain, request: Request) -> Outcome:
    accepted = Outcome(allowed=True)
    for stage in chain.stages:
        outcome, ends = _stage(layer, stage, request)
        if not outcome.allowed:
            return outcome
        if outcome.rule is not None:
            accepted = outcome
        if ends:
            return accepted
    return accepted


def _stage(layer: str, stage: Stage, request: Request) -> tuple[Outcome, bool]:
    """Return the outcome of one stage, and whether it ends the chain."""
    go_on = Outcome(allowed=True)
    match stage:
        case Observe():
            return go_on, False
        case Deny(name, rules, refusal):
            rule = next((rule for rule in rules if holds(rule.when, request)), None)
            return (go_on, False) if rule is None else (Outcome(False, layer, name, rule, refusal), True)
        case AllowAny(name, rules, refusal):
            rule = next((rule for rule in rules if holds(rule.when, request)), None)
            return Outcome(rule is not None, layer, name, rule, None if rule else refusal), rule is None
        case AskAll(name, asks, refusal):
            asked = [ask for ask in asks if holds(ask.rule.when, request)]
            refused = next((ask for ask in asked if not _consents(ask, request.answers.get(ask.authorizer))), None)
            if refused is not None:
                answer = request.answers.get(refused.authorizer)
                status = answer.status if isinstance(answer, Ruling) else refusal
                return Outcome(False, layer, name, refused.rule, status), True
            return (Outcome(True, layer, name, asked[-1].rule) if asked else go_on), False
        case FirstMatch(name, steps, otherwise, refusal):
            step = next((step for step in steps if holds(step.rule.when, request)), None)
            effect, rule = (step.effect, step.rule) if step else (otherwise, None)
            if effect is Effect.PASS:
                return go_on, False
            if effect is Effect.DENY:
                return Outcome(False, layer, name, rule, refusal), True
            return Outcome(True, layer, name, rule), True


def _consents(ask: Ask, answer: Answer | None) -> bool:
    if answer == "error":
        return ask.fail_open
    return answer == "allow" or (isinstance(answer, Ruling) and answer.allowed)


def holds(predicate: Predicate, request: Request) -> bool:
    """Return whether the predicate holds for a request. Every attribute that it reads must be known or absent."""
    match predicate:
        case And(parts):
            return all(holds(part, request) for part in parts)
        case Or(parts):
            return any(holds(part, request) for part in parts)
        case Not(part):
            return not holds(part, request)
        case Computed():
            assumed = request.assumed.get(predicate)
            return predicate.holds(request.values) if assumed is None else assumed
        case Is(attribute, matcher, joined):
            assumed = request.assumed.get(predicate)
            if assumed is not None:
                return assumed
            value = request.values[attribute]
            if isinstance(value, tuple):  # a repeated attribute
                return any(_matches(matcher, text) for text in ([",".join(value)] if joined else value))
            return value is not None and _matches(matcher, value)


def _matches(matcher: Matcher, value: Value) -> bool:
    match matcher:
        case OneOf(values):
            return any(type(value) is type(v) and value == v for v in values)
        case Prefix(text):
            return str(value)[: len(text)] == text
        case Suffix(text):
            return text == "" or str(value)[-len(text) :] == text
        case AccountsOf(trust_domain, namespace):
            stem, name = str(value)[: str(value).rfind("/") + 1], str(value).split("/")[-1]
            is_name = re.fullmatch("[A-Za-z0-9._-]+", name) is not None and name not in (".", "..")
            return stem == f"spiffe://{trust_domain}/ns/{namespace}/sa/" and is_name and len(str(value)) <= 2048
        case AnyAccount(trust_domain):
            namespace = str(value).removeprefix(f"spiffe://{trust_domain}/ns/").split("/")[0]
            is_name = re.fullmatch("[A-Za-z0-9._-]+", namespace) is not None and namespace not in (".", "..")
            return is_name and _matches(AccountsOf(trust_domain, namespace), value)
        case InNetwork(networks):
            at = parse_network(value)
            return any(at.subnet_of(n) for n in networks if n.version == at.version)  # type: ignore[arg-type]
        case Present():
            return True
        case Between(first, last):
            return isinstance(value, int) and value in range(first, last + 1)
        case Labelled(selector):
            return _selects(selector, str(value))


def _selects(selector: Selector, text: str) -> bool:
    labels = dict(term.split("=", 1) for term in text.split(",")) if text else {}
    wanted = all(labels.get(key) == value for key, value in selector.match_labels)
    return wanted and all(_meets(requirement, labels) for requirement in selector.expressions)


def _meets(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    held = requirement.key in labels and (not requirement.values or labels[requirement.key] in requirement.values)
    return held == (requirement.operator in (Operator.IN, Operator.EXISTS))


def _completions(layer: Layer, request: Request) -> Iterator[Request]:
    """Yield the request with each unknown attribute set to every value that could matter, if it meets `within`."""
    within = And(()) if request.within is None else request.within
    unknown = sorted((layer.looks_at | mentions(within)) - request.values.keys())
    compared = [*layer.atoms(observed=False), *atoms(within)]
    asked = [atom for atom in compared if isinstance(atom, Is)]
    several = {a for a in unknown if a.is_repeatable and any(atom.attribute == a and not atom.joined for atom in asked)}
    domains = []
    for attribute in unknown:
        matchers = [atom.matcher for atom in asked if atom.attribute == attribute]
        domains.append(_repeated_values(attribute, matchers) if attribute in several else _domain(attribute, matchers))
    computed = dict.fromkeys(atom for atom in compared if isinstance(atom, Computed))
    tests: list[Is | Computed] = [test for test in computed if not test.attributes <= request.values.keys()]
    tests += dict.fromkeys(atom for atom in asked if atom.joined and atom.attribute in several)
    for values in product(*domains):
        # A test on an unknown attribute may have either result.
        for outcomes in product((False, True), repeat=len(tests)):
            completed = {**request.values, **dict(zip(unknown, values, strict=True))}
            completion = Request(completed, request.answers, dict(zip(tests, outcomes, strict=True)))
            if holds(within, completion):
                yield completion


_ENUMERATED: Mapping[Attribute, tuple[Known, ...]] = {
    APPLICATION: ("http", "bytes"),
    TRANSPORT: ("TCP", "UDP", "SCTP"),
    VICINITY: (None, "itself", "node"),
}


def _labels(matchers: list[Matcher]) -> list[Known]:
    """Return the empty set of labels, and every combination of values that a selector compares."""
    values: dict[str, set[str]] = {}
    for selector in (m.selector for m in matchers if isinstance(m, Labelled)):
        for key, value in selector.match_labels:
            values.setdefault(key, set()).add(value)
        for requirement in selector.expressions:
            values.setdefault(requirement.key, set()).update(requirement.values)
    terms = [["", *(f"{key}={value}" for value in sorted({*named, "\x00"}))] for key, named in sorted(values.items())]
    return [None, *(",".join(filter(None, chosen)) for chosen in product(*terms))]


def _domain(attribute: Attribute, matchers: list[Matcher]) -> list[Known]:
    if attribute in _ENUMERATED:
        return list(_ENUMERATED[attribute])
    if any(isinstance(m, Labelled) for m in matchers):
        return _labels(matchers)
    if attribute == PORT:
        used = {v for m in matchers if isinstance(m, OneOf) for v in m.values if isinstance(v, int)}
        ranges = [m for m in matchers if isinstance(m, Between)]
        used |= {n for m in ranges for n in (m.first - 1, m.first, m.last, m.last + 1) if 0 < n < 65536}
        free = next((n for n in range(1, 65536) if n not in used), None)
        return [*([free] if free else []), *sorted(used)]
    if any(isinstance(m, InNetwork) for m in matchers):
        addresses = _addresses([m for m in matchers if isinstance(m, InNetwork)])
        return [*([None] if attribute not in ADDRESSES else []), *addresses]
    exact = {str(v) for m in matchers if isinstance(m, OneOf) for v in m.values}
    starts = {m.text for m in matchers if isinstance(m, Prefix)} | {""}
    starts |= {m.prefix for m in matchers if isinstance(m, AccountsOf)}
    ends = {m.text for m in matchers if isinstance(m, Suffix)} | {""}
    account = "_" * (1 + max(map(len, exact), default=0))  # a valid name that no account has
    middles = ("", "\x00", "\x00/\x00", account)
    mixed = {start + middle + end for start in starts for middle in middles for end in ends}
    texts = sorted(exact | mixed)
    if attribute in PATHS:  # a path that is always refused shows nothing about a policy
        texts = [text for text in texts if not _is_ambiguous(text)]
    return [None, "\x00", *texts]


def _repeated_values(attribute: Attribute, matchers: list[Matcher]) -> list[Known]:
    """Return None, and every set of the values that a matcher distinguishes."""
    told_apart = {}
    for value in _domain(attribute, matchers):
        if isinstance(value, str):
            told_apart[tuple(_matches(matcher, value) for matcher in matchers)] = value
    sizes = range(1, len(told_apart) + 1)
    return [None, *(values for size in sizes for values in combinations(told_apart.values(), size))]


def _addresses(matchers: Iterable[InNetwork]) -> list[str]:
    """Return every edge of every network: first, last, and the neighbours outside. Other callers never use loopback."""
    edges = {"0.0.0.0", "::", "128.0.0.0", "::2"}  # noqa: S104 - addresses as data
    for network in (n for m in matchers for n in m.networks):
        first, last = int(network.network_address), int(network.broadcast_address)
        limit = 2**network.max_prefixlen
        kind = type(network.network_address)
        edges |= {str(kind(n)) for n in (first - 1, first, last, last + 1) if 0 <= n < limit}
    return sorted(address for address in edges if not address.startswith("127.") and address != "::1")
