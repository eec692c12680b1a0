"""A brute-force evaluator for partly known requests. It tries every value of a tiny world.

The engine and the reference evaluator both read the rules to choose the values that they try for an unknown attribute.
This evaluator chooses nothing: the worlds are so small that it tries all of their values, and it decides each complete
request by the words of `ir/rules.py`. It shares no code with the other two.

The worlds are closed: if a rule of `layers` below can distinguish two values, the world contains both kinds. Rules name
`a` and `b`, prefixes of at most two letters and suffixes of at most one. Values also have the letter `c`, which
represents all other letters. They have up to three letters, so that every prefix and suffix can be combined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from itertools import combinations, product

from hypothesis import strategies as st

from eastgate.ir import (
    AccountsOf,
    AllowAny,
    And,
    Ask,
    AskAll,
    Chain,
    Computed,
    Deny,
    Effect,
    FirstMatch,
    InNetwork,
    Is,
    Known,
    Layer,
    Matcher,
    Not,
    Observe,
    OneOf,
    Or,
    Origin,
    PolicyRef,
    Predicate,
    Prefix,
    Present,
    Request,
    Rule,
    SelectorCase,
    Stage,
    Step,
    Suffix,
    Value,
    atoms,
    mentions,
)
from eastgate.ir.attributes import ADDRESS, HOST, IDENTITY, METHOD, PATH, PORT, Attribute, header

__all__ = ["WORLD", "allows", "atoms_about", "completions", "holds", "layers", "questions"]

HEADER = header("x-team")

TEXTS = ["".join(letters) for length in range(4) for letters in product("abc", repeat=length)]
"""All texts of up to three letters: 40."""

SEGMENTS = ["a", "b", "c"]
PATHS = ["/", *(f"/{a}" for a in SEGMENTS), *(f"/{a}/{b}" for a in SEGMENTS for b in SEGMENTS), "/ac", "/bc", "/ab"]
IDENTITIES = [
    *(f"spiffe://{t}/ns/{n}/sa/{s}" for t, n, s in product("abc", "abc", "abc")),
    *(f"spiffe://{t}/{rest}" for t, rest in product("abc", ["c", "ns/a", "ns/a/sa/", "ns/a/sa/a/c"])),
]
ADDRESSES = [*(f"10.0.0.{n}" for n in range(10)), "10.0.1.0", "192.168.0.1", "fd00::1", "fd00::2", "fe80::1"]
NETWORKS = ["10.0.0.0/29", "10.0.0.4/30", "10.0.0.4/31", "10.0.0.5/32", "10.0.0.0/8", "fd00::/64", "fd00::1/128"]

# Values of a header: rules have at most three tests of it, so three values can meet all of them.
_HEADER_TEXTS = ["", "a", "b", "c", "ab", "ac", "ca", "cb"]
HEADERS: list[Known] = [None, *_HEADER_TEXTS, *combinations(_HEADER_TEXTS, 2), *combinations(_HEADER_TEXTS, 3)]

WORLD: Mapping[Attribute, Sequence[Known]] = {
    IDENTITY: [None, *IDENTITIES],
    PORT: [1, 2, 3],  # there is always a port
    ADDRESS: ADDRESSES,  # and an address
    METHOD: [None, *TEXTS],
    HOST: [None, *TEXTS],
    PATH: [None, *PATHS],
    HEADER: HEADERS,
}
"""All values of each attribute, with None for an absent one."""


# Decisions on complete requests


def allows(layers: Sequence[Layer], values: Mapping[Attribute, Known], answers: Mapping[str, str]) -> bool:
    """Decide a request without unknown attributes."""
    return all(_chain_allows(_chosen(layer, values), values, answers) for layer in layers)


def _chosen(layer: Layer, values: Mapping[Attribute, Known]) -> Chain:
    for case in layer.cases:
        if holds(case.when, values):
            return case.chain
    return layer.otherwise


def _chain_allows(chain: Chain, values: Mapping[Attribute, Known], answers: Mapping[str, str]) -> bool:
    for stage in chain.stages:
        effect = _effect(stage, values, answers)
        if effect is not Effect.PASS:
            return effect is Effect.ACCEPT
    return True


def _effect(stage: Stage, values: Mapping[Attribute, Known], answers: Mapping[str, str]) -> Effect:
    """Return the effect of a stage: it ends the chain, or passes the request on."""
    if isinstance(stage, Observe):
        return Effect.PASS
    if isinstance(stage, Deny):
        return Effect.DENY if any(holds(rule.when, values) for rule in stage.rules) else Effect.PASS
    if isinstance(stage, AllowAny):
        return Effect.PASS if any(holds(rule.when, values) for rule in stage.rules) else Effect.DENY
    if isinstance(stage, AskAll):
        asked = [ask.authorizer for ask in stage.asks if holds(ask.rule.when, values)]
        return Effect.PASS if all(answers.get(name) == "allow" for name in asked) else Effect.DENY
    return next((step.effect for step in stage.steps if holds(step.rule.when, values)), stage.otherwise)


def holds(predicate: Predicate, values: Mapping[Attribute, Known]) -> bool:
    """Return whether a predicate holds for a request without unknown attributes."""
    if isinstance(predicate, And):
        return all(holds(part, values) for part in predicate.parts)
    if isinstance(predicate, Or):
        return any(holds(part, values) for part in predicate.parts)
    if isinstance(predicate, Not):
        return not holds(predicate.part, values)
    if isinstance(predicate, Computed):
        return predicate.holds(values)
    value = values[predicate.attribute]
    if value is None:
        return False
    each = value if isinstance(value, tuple) else (value,)
    if predicate.joined:
        each = (",".join(map(str, each)),) if len(each) > 1 else each
    return any(_is_in(one, predicate.matcher) for one in each)


def _is_in(value: Value, matcher: Matcher) -> bool:
    text = str(value)
    if isinstance(matcher, OneOf):
        return any(value == other for other in matcher.values)
    if isinstance(matcher, Prefix):
        return text.find(matcher.text) == 0
    if isinstance(matcher, Suffix):
        return text[len(text) - len(matcher.text) :] == matcher.text and len(text) >= len(matcher.text)
    if isinstance(matcher, AccountsOf):
        parts = text.split("/")
        wanted = ["spiffe:", "", matcher.trust_domain, "ns", matcher.namespace, "sa"]
        return parts[:-1] == wanted and parts[-1] != ""
    if isinstance(matcher, InNetwork):
        bits = _bits(text)
        return any(bits.startswith(_bits(str(n.network_address))[: 1 + n.prefixlen]) for n in matcher.networks)
    return True


def _bits(address: str) -> str:
    """Return an address as bits, after one letter for its family."""
    number = ip_address(address)
    return f"{'f' if number.version == 4 else 's'}{int(number):0{number.max_prefixlen}b}"


def completions(layers: Sequence[Layer], request: Request) -> Iterator[Mapping[Attribute, Known]]:
    """Yield the request with every value of the world for each unknown attribute that a rule mentions."""
    unknown = sorted(_mentioned(layers) - request.values.keys())
    for values in product(*(WORLD[attribute] for attribute in unknown)):
        yield {**request.values, **dict(zip(unknown, values, strict=True))}


def _mentioned(layers: Sequence[Layer]) -> set[Attribute]:
    return {attribute for predicate in _predicates(layers) for attribute in mentions(predicate)}


def _predicates(layers: Sequence[Layer]) -> Iterator[Predicate]:
    for layer in layers:
        yield from (case.when for case in layer.cases)
        for chain in layer.chains:
            for stage in chain.stages:
                if isinstance(stage, FirstMatch):
                    yield from (step.rule.when for step in stage.steps)
                elif isinstance(stage, AskAll):
                    yield from (ask.rule.when for ask in stage.asks)
                else:
                    yield from (rule.when for rule in stage.rules)


# Generated layers, and requests with unknown attributes


def _one_of(values: Sequence[Value]) -> st.SearchStrategy[Matcher]:
    return st.frozensets(st.sampled_from(list(values)), max_size=3).map(OneOf)


_SHORT = [text for text in TEXTS if len(text) <= 2 and "c" not in text]
_text: st.SearchStrategy[Matcher] = (
    _one_of(_SHORT)
    | st.builds(Prefix, st.sampled_from(_SHORT))
    | st.builds(Suffix, st.sampled_from(["", "a", "b"]))
    | st.just(Present())
)
_team: st.SearchStrategy[Matcher] = (
    _one_of(["a", "b", ""]) | st.builds(Prefix, st.sampled_from(["", "a"])) | st.builds(Suffix, st.just("b"))
)
_identity: st.SearchStrategy[Matcher] = (
    _one_of([one for one in IDENTITIES if "c" not in one])
    | st.builds(AccountsOf, st.sampled_from("ab"), st.sampled_from("ab"))
    | st.builds(Prefix, st.sampled_from(["spiffe://a/", "spiffe://b/"]))
    | st.just(Present())
)
_network: st.SearchStrategy[Matcher] = st.lists(st.sampled_from(NETWORKS), max_size=2).map(
    lambda networks: InNetwork(tuple(map(ip_network, networks)))
)


def atoms_about(attribute: Attribute) -> st.SearchStrategy[Predicate]:
    """Draw tests of one attribute: a port, a method, a host or the header."""
    matcher = _one_of([1, 2]) if attribute == PORT else _team if attribute == HEADER else _text
    return st.builds(Is, st.just(attribute), matcher)


def _below(segment: str) -> Predicate:
    """Draw a test of a path that has these segments or begins with them, like a prefix of whole segments."""
    return Or((Is(PATH, OneOf(frozenset({segment}))), Is(PATH, Prefix(f"{segment}/"))))


_path: st.SearchStrategy[Predicate] = (
    st.builds(Is, st.just(PATH), _one_of(["/", "/a", "/b", "/a/b"]))
    | st.sampled_from(["/a", "/b", "/a/b"]).map(_below)
    | st.builds(Is, st.just(PATH), st.sampled_from([Prefix("/"), Prefix("/a/"), Present()]))
)
_atom: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Is, st.just(IDENTITY), _identity),
    st.builds(Is, st.just(PORT), _one_of([1, 2])),
    st.builds(Is, st.just(ADDRESS), _network),
    st.builds(Is, st.sampled_from([METHOD, HOST]), _text),
    _path,
    st.builds(Is, st.just(HEADER), _team),
)


def _combined(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.builds(And, parts) | st.builds(Or, parts) | st.builds(Not, inner)


_predicate = st.recursive(_atom, _combined, max_leaves=4)
_rule = st.builds(Rule, _predicate, st.integers(0, 999).map(lambda n: Origin(PolicyRef("P", "ns", f"p{n}"), 0)))
_rules = st.lists(_rule, min_size=1, max_size=3).map(tuple)
_effects = st.sampled_from(Effect)
_stage: st.SearchStrategy[Stage] = st.one_of(
    st.builds(Deny, st.just("deny"), _rules),
    st.builds(AllowAny, st.just("allow"), _rules),
    st.builds(FirstMatch, st.just("tier"), st.lists(st.builds(Step, _rule, _effects), max_size=3).map(tuple), _effects),
    st.builds(Observe, st.just("audit"), _rules),
    st.builds(AskAll, st.just("ask"), st.lists(st.builds(Ask, _rule, st.sampled_from("xy")), max_size=2).map(tuple)),
)
_chain = st.builds(Chain, st.lists(_stage, min_size=1, max_size=3).map(tuple))
_layer = st.builds(
    Layer, st.just("l"), _chain, st.lists(st.builds(SelectorCase, _predicate, _chain), max_size=2).map(tuple)
)

layers = st.lists(_layer, min_size=1, max_size=2).filter(lambda made: _tests(made) > 0 and _tests(made, HEADER) <= 3)
"""Draw layers that distinguish only values of the world."""


def _tests(made: Sequence[Layer], attribute: Attribute | None = None) -> int:
    tested = [atom.attribute for predicate in _predicates(made) for atom in atoms(predicate) if isinstance(atom, Is)]
    return len(tested) if attribute is None else tested.count(attribute)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Sequence[Layer], Request]:
    """Draw layers, and a request in which one or two of their attributes are unknown."""
    made = draw(layers)
    unknown = draw(st.sets(st.sampled_from(sorted(_mentioned(made))), min_size=1, max_size=2))
    known = {attribute: draw(st.sampled_from(WORLD[attribute])) for attribute in WORLD if attribute not in unknown}
    answers = draw(st.dictionaries(st.sampled_from("xy"), st.sampled_from(["allow", "deny", "error"])))
    return made, Request(known, answers)
