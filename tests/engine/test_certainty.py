"""If an allow is proved without a search, the search also finds it."""

from __future__ import annotations

from hypothesis import given, settings

from eastgate.engine import reference
from eastgate.ir import (
    AllowAny,
    And,
    Chain,
    Is,
    Layer,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Refusal,
    Request,
    Rule,
    SelectorCase,
    Suffix,
)
from eastgate.ir.attributes import HOST, IDENTITY, METHOD, PATH, PORT, header
from eastgate.ir.symbolic.completions import complete
from eastgate.ir.symbolic.judging import prove_allow
from tests.engine import strategies


@settings(max_examples=800, deadline=None)
@given(strategies.layer, strategies.any_request())
def test_a_proof_is_correct(layer: Layer, request: Request) -> None:
    proven = prove_allow(layer, request)
    if proven is not None:
        assert proven.allowed
        assert reference.decide([layer], request).allowed


def _one(text: str) -> OneOf:
    return OneOf(frozenset({text}))


def _allowing(*identities: str) -> Chain:
    origin = Origin(PolicyRef("Kind", "n", "p"), 0)
    rules = tuple(Rule(Is(IDENTITY, _one(identity)), origin) for identity in identities)
    return Chain((AllowAny("allow", rules, Refusal.FORBIDDEN),))


def _routes(number: int, chain: Chain) -> tuple[SelectorCase, ...]:
    """Return routes that read so many attributes that a search cannot try every request."""

    def when(place: int) -> Predicate:
        looked_at = (Is(PATH, Suffix(f"{place}.x")), Is(METHOD, _one(f"M{place}")), Is(HOST, Suffix(f".h{place}")))
        return And((*looked_at, *(Is(header(f"k{one}"), _one(f"{place}")) for one in range(5))))

    return tuple(SelectorCase(when(place), chain) for place in range(number))


def test_many_routes_are_decided_where_each_allows() -> None:
    """The caller is allowed by every route that an unknown request may take."""
    layer = Layer(Placement(None, "inbound"), _allowing("a", "b"), _routes(80, _allowing("a")))
    assert complete(layer, Request({IDENTITY: "a", PORT: 80})).outcome.allowed
    assert not complete(layer, Request({IDENTITY: "b", PORT: 80})).outcome.allowed


def test_a_case_that_nothing_can_meet_does_not_refuse_an_encoded_slash() -> None:
    empty = And((Is(IDENTITY, OneOf(frozenset())), Is(PATH, OneOf(frozenset()))))
    layer = Layer(Placement(None, "inbound"), Chain(()), (SelectorCase(empty, Chain(())),))
    request = Request({PATH: "/a%2fb"})
    assert complete(layer, request).outcome.allowed
    assert reference.decide([layer], request).allowed
