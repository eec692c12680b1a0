"""Tables, indexes of searches and tables that are too large give the same answers for many rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastgate.engine import reference, search, table
from eastgate.engine.compiled import compile_layers
from eastgate.ir import (
    AllowAny,
    And,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Or,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Prefix,
    Request,
    Rule,
    Step,
    Suffix,
)
from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT
from tests.engine.strategies import IDENTITIES, METHODS, PATHS, PORTS, accounts_of, one_of, path_atom, port_atom

anything = st.just(And(()))
caller = st.builds(Is, st.just(IDENTITY), one_of(IDENTITIES) | accounts_of)
callers = anything | caller | st.lists(caller, max_size=2).map(lambda parts: Or(tuple(parts)))
on_network = st.tuples(callers, anything | port_atom).map(And)
path = path_atom | st.builds(Is, st.just(PATH), st.sampled_from([Prefix(""), Suffix("")]))
paths = path | st.lists(path, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts)))
method = st.builds(Is, st.just(METHOD), one_of(METHODS))
either = st.tuples(path, method).map(Or)
on_http = st.tuples(callers, anything | port_atom, anything | paths | either, anything | method).map(And)


def rules(predicate: st.SearchStrategy[And]) -> st.SearchStrategy[tuple[Rule, ...]]:
    return st.lists(predicate, min_size=3, max_size=12).map(lambda found: tuple(_rules(found)))


def _rules(predicates: Iterable[Predicate]) -> Iterator[Rule]:
    for number, predicate in enumerate(predicates):
        yield Rule(predicate, Origin(PolicyRef("P", "ns", f"p{number}"), number))


@st.composite
def workload_layer(draw: st.DrawFn, predicate: st.SearchStrategy[And], effects: list[Effect]) -> Layer:
    """A chain like one of a GEP-3779 workload: an ordered tier, denials, permissions."""
    steps = tuple(Step(rule, draw(st.sampled_from(effects))) for rule in draw(rules(predicate)))
    denials, permissions = Deny("deny", draw(rules(predicate))), AllowAny("allow", draw(rules(predicate)))
    first = draw(st.booleans())
    return Layer(
        Placement(None, "workload"), Chain((*((FirstMatch("admin", steps),) if first else ()), denials, permissions))
    )


def check(layer: Layer, *, http: bool) -> None:
    """Every request with a different combination of the attributes that rules read."""
    program = compile_layers([layer])
    identities = [*(IDENTITIES[:5] if http else IDENTITIES), "spiffe://td/ns/b/sa/", None]
    network = product(identities, [80, 1] if http else [*PORTS, 1])
    for (identity, port), (where, how) in product(network, product(PATHS, METHODS[:2]) if http else [(None, None)]):
        request = Request({IDENTITY: identity, PORT: port, PATH: where, METHOD: how})
        assert program.outcome(program.decide(request)) == reference.decide([layer], request)


FINAL = [Effect.ACCEPT, Effect.DENY]
few = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(max_examples=300, deadline=None)
@given(workload_layer(on_network, FINAL))
def test_rules_on_callers_and_ports_become_one_table(layer: Layer) -> None:
    assert isinstance(compile_layers([layer]).finder, table.VerdictTable)
    check(layer, http=False)


@settings(max_examples=100, deadline=None)
@given(workload_layer(on_network, list(Effect)))
def test_a_tier_that_passes_is_a_table_of_its_own(layer: Layer) -> None:
    check(layer, http=False)


@few
@given(layer=workload_layer(on_network, FINAL))
def test_rules_that_find_no_room_in_a_table_are_searched(monkeypatch: pytest.MonkeyPatch, layer: Layer) -> None:
    monkeypatch.setattr(table, "_BASE_RANKS", -1_000_000)
    check(layer, http=False)


@few
@given(workload_layer(on_http, list(Effect)))
def test_rules_on_paths_are_searched(layer: Layer) -> None:
    check(layer, http=True)


@few
@given(layer=workload_layer(on_http, FINAL))
def test_every_list_may_have_an_index(monkeypatch: pytest.MonkeyPatch, layer: Layer) -> None:
    monkeypatch.setattr(search, "_MAX_UNINDEXED_RULES", 0)
    check(layer, http=True)


@few
@given(layer=workload_layer(on_http, FINAL), copies=st.sampled_from([-1, 0, 1, 2]))
def test_rules_for_many_that_are_not_copied_to_the_few_are_searched_after_theirs(
    monkeypatch: pytest.MonkeyPatch, layer: Layer, copies: int
) -> None:
    monkeypatch.setattr(search, "_MAX_COPIES_PER_CLAUSE", copies)
    check(layer, http=True)


_TEXTS = ["", "/", "/a", "/a/", "/a/b", "/a/bc", "/ab", "b", "bc", "/b"]
_nested = st.builds(
    Is, st.just(PATH), st.builds(Prefix, st.sampled_from(_TEXTS)) | st.builds(Suffix, st.sampled_from(_TEXTS))
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_nested, min_size=5, max_size=15))
def test_prefixes_and_suffixes_that_continue_others_are_found(predicates: list[Is]) -> None:
    layer = Layer(Placement(None, "workload"), Chain((AllowAny("allow", tuple(_rules(predicates))),)))
    program = compile_layers([layer])
    for text in [*_TEXTS[1:], "/a/b/c", "/x", "/xbc", None]:
        request = Request({IDENTITY: None, PORT: 80, PATH: text, METHOD: "GET"})
        assert program.outcome(program.decide(request)) == reference.decide([layer], request)
