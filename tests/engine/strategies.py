"""Generated layers and requests of every shape. Small alphabets, so that rules and requests often meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_network

from hypothesis import strategies as st

from eastgate.ir import (
    AccountsOf,
    AllowAny,
    And,
    Answer,
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
    Not,
    Observe,
    OneOf,
    Or,
    Origin,
    PolicyRef,
    Predicate,
    Prefix,
    Present,
    Refusal,
    Request,
    Rule,
    Ruling,
    SelectorCase,
    Stage,
    Step,
    Suffix,
    Value,
)
from eastgate.ir.attributes import (
    ADDRESS,
    HOST,
    IDENTITY,
    METHOD,
    PATH,
    PORT,
    SERVICE,
    Attribute,
    header,
    query,
)

IDENTITIES = [
    f"spiffe://{domain}/ns/{namespace}/sa/{name}"
    for domain in ("td", "evil")
    for namespace in ("a", "b")
    for name in ("x", "y")
] + ["spiffe://td/ns/a/sa/x/deeper", "spiffe://td/ns/a/sa/", "spiffe://td/workload", "spiffe://td/ns/a", "/sa/x"]
IDENTITIES += [f"spiffe://td/ns/a/sa/{name}" for name in ("*", "x?y=1", "x~", ".", "..", "...", "%78", "X_y", "é")]
PORTS = [80, 443, 9080]
PATHS = ["/", "/api", "/api/1", "/apix", "/img/x.png", "*", "/a%2fb", "/api/1.png"]
METHODS = ["GET", "POST", "get"]
HOSTS = ["a.example", "b.example"]
ADDRESSES = ["10.0.0.1", "10.0.0.200", "10.0.1.0", "192.168.0.1", "::1"]
SERVICES = ["a/web", "a/db"]
HEADER = header("X-Team")
QUERY = query("team")
NETWORKS = [ip_network(n) for n in ("10.0.0.0/24", "10.0.0.128/25", "10.0.0.0/8", "::/64")]

VALUES: dict[Attribute, list[str] | list[int]] = {
    IDENTITY: IDENTITIES,
    PORT: PORTS,
    PATH: PATHS,
    METHOD: METHODS,
    HOST: HOSTS,
    ADDRESS: ADDRESSES,
    SERVICE: SERVICES,
    HEADER: ["red", "blue", "red,blue"],
    QUERY: ["red", "green"],
}


def one_of(values: list[str] | list[int]) -> st.SearchStrategy[OneOf]:
    choices: list[Value] = [*values]
    return st.frozensets(st.sampled_from(choices), max_size=3).map(OneOf)


accounts_of = st.builds(AccountsOf, st.sampled_from(["td", "evil"]), st.sampled_from(["a", "b"]))

identity_atom = st.builds(
    Is,
    st.just(IDENTITY),
    one_of(IDENTITIES)
    | accounts_of
    | st.just(Present())
    | st.builds(Prefix, st.sampled_from(["spiffe://td/", "spiffe://td/ns/a/sa/", ""]))
    | st.builds(Suffix, st.sampled_from(["/sa/x", "x", "r"])),
)
port_atom = st.builds(Is, st.just(PORT), one_of(PORTS))
path_atom = st.builds(
    Is,
    st.just(PATH),
    one_of(PATHS)
    | st.builds(Prefix, st.sampled_from(["/api", "/api/", "/", ""]))
    | st.builds(Suffix, st.sampled_from([".png", "x.png", "1"])),
)
other_atom = st.sampled_from([METHOD, HOST, SERVICE]).flatmap(
    lambda attribute: st.builds(Is, st.just(attribute), one_of(VALUES[attribute]) | st.just(Present()))
)
repeatable_atom = st.builds(
    Is,
    st.sampled_from([HEADER, QUERY]),
    one_of(["red", "blue", "red,blue"])
    | st.just(Present())
    | st.builds(Prefix, st.sampled_from(["r", "red,", ""]))
    | st.builds(Suffix, st.sampled_from(["e", "d"])),
    st.sampled_from([False, False, False, True]),
)
address_atom = st.builds(
    Is, st.just(ADDRESS), st.lists(st.sampled_from(NETWORKS), max_size=2).map(lambda n: InNetwork(tuple(n)))
)


several = st.lists(st.sampled_from(["red", "blue", "", "red,blue"]), min_size=2, max_size=3).map(tuple)


def _is_long(attribute: Attribute) -> Callable[[Mapping[Attribute, Known]], bool]:
    return lambda values: len(values[attribute]) > 8  # type: ignore[arg-type] # an absent value is an error, as it should


def _computed(attribute: Attribute, on_error: bool, patterned: bool) -> Computed:
    pattern = (attribute, "(?s).{9,}") if patterned else None
    text = f"{'each' if patterned else 'all'} of {attribute} is long"
    return Computed(text, frozenset({attribute}), _is_long(attribute), on_error, pattern)


computed = st.builds(_computed, st.sampled_from([PATH, HEADER, QUERY, IDENTITY]), st.booleans(), st.booleans())
atom: st.SearchStrategy[Predicate] = (
    computed | identity_atom | port_atom | path_atom | other_atom | repeatable_atom | address_atom
)


def _wider(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.builds(And, parts) | st.builds(Or, parts) | st.builds(Not, inner)


usual_rule = st.tuples(
    st.one_of(
        st.just(And(())),
        st.builds(Is, st.just(IDENTITY), one_of(IDENTITIES)),
        st.builds(
            Or, st.lists(st.builds(Is, st.just(IDENTITY), one_of(IDENTITIES) | accounts_of), max_size=2).map(tuple)
        ),
    ),
    st.just(And(())) | port_atom,
    st.just(And(())) | path_atom,
).map(And)
predicate: st.SearchStrategy[Predicate] = usual_rule | st.recursive(atom, _wider, max_leaves=6)


@st.composite
def rule(draw: st.DrawFn) -> Rule:
    number = draw(st.integers(0, 10**6))
    return Rule(draw(predicate), Origin(PolicyRef("P", "ns", f"p{number}"), 0))


rules = st.lists(rule(), max_size=4).map(tuple)
refusal = st.sampled_from(Refusal)
stage: st.SearchStrategy[Stage] = st.one_of(
    st.builds(Deny, st.just("deny"), rules, refusal),
    st.builds(AllowAny, st.just("allow"), rules, refusal),
    st.builds(
        FirstMatch,
        st.just("tier"),
        st.lists(st.builds(Step, rule(), st.sampled_from(Effect)), max_size=4).map(tuple),
        st.sampled_from(Effect),
        refusal,
    ),
    st.builds(Observe, st.just("audit"), rules),
    st.builds(
        AskAll,
        st.just("ask"),
        st.lists(st.builds(Ask, rule(), st.sampled_from(["a1", "a2"])), max_size=2).map(tuple),
        refusal,
    ),
)
chain = st.builds(Chain, st.lists(stage, max_size=4).map(tuple))
layer = st.builds(
    Layer,
    st.sampled_from(["network", "application"]),
    chain,
    st.lists(st.builds(SelectorCase, predicate, chain), max_size=2).map(tuple),
)
layers = st.lists(layer, max_size=3)

answers: st.SearchStrategy[Mapping[str, Answer]] = st.dictionaries(
    st.sampled_from(["a1", "a2"]),
    st.sampled_from(["allow", "deny", "error", Ruling(True, 200, "yes"), Ruling(False, 401, "who?")]),
)


@st.composite
def known_request(draw: st.DrawFn) -> Request:
    values: dict[Attribute, Known] = {}
    for attribute, choices in VALUES.items():
        value: st.SearchStrategy[Known] = st.sampled_from([*choices, 8081 if attribute == PORT else None])
        values[attribute] = draw(value | several if attribute.is_repeatable else value)
    return Request(values, draw(answers))


@st.composite
def any_request(draw: st.DrawFn) -> Request:
    """Draw a request with up to three unknown attributes: more make the reference evaluator too slow."""
    request = draw(known_request())
    unknown = draw(st.sets(st.sampled_from(sorted(VALUES)), max_size=3))
    return Request({a: v for a, v in request.values.items() if a not in unknown}, request.answers)
