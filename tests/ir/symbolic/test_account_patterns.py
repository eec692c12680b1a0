"""Regular expressions for identities have the same result for all accounts at once as for each one alone."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate.ir.symbolic.account_patterns import matches_all, names_in

NAMES = ["a", "b", "ab", "ns", "sa", "x-1", "y.z"]
_literal = st.sampled_from([re.escape(name) for name in NAMES])
_any = st.sampled_from([".*", ".+", "[^/]+", "[^/]*"])
_part = _literal | _any | st.tuples(_literal, _any).map("".join) | st.tuples(_any, _literal).map("".join)
patterns = st.one_of(
    _part.map(lambda part: f".*/ns/{part}/.*"),
    st.tuples(_part, _part).map(lambda parts: f"spiffe://.+/ns/{parts[0]}/(.+/|)sa/{parts[1]}(/.+)?"),
    st.tuples(_part, _part).map(lambda parts: f"spiffe://{parts[0]}/.*/sa/{parts[1]}"),
    _part.map(lambda part: f"spiffe://td/ns/{part}"),
    _part.map(lambda part: f".*{part}"),
)


@given(patterns, st.sampled_from(NAMES), st.frozensets(st.sampled_from(NAMES)))
def test_the_accounts_of_a_namespace(pattern: str, namespace: str, but: frozenset[str]) -> None:
    identities = [f"spiffe://td/ns/{namespace}/sa/{name}" for name in [*NAMES, "other", "q"] if name not in but]
    outcomes = {re.fullmatch(pattern, identity) is not None for identity in identities}
    settled = matches_all(pattern, (f"spiffe://td/ns/{namespace}/sa/", but))
    assert settled is None or outcomes == {settled}


@given(patterns, st.frozensets(st.sampled_from(NAMES)))
def test_the_accounts_of_other_namespaces(pattern: str, but: frozenset[str]) -> None:
    namespaces = [name for name in [*NAMES, "other", "q"] if name not in but]
    identities = [f"spiffe://td/ns/{each}/sa/{name}" for each, name in itertools.product(namespaces, [*NAMES, "other"])]
    outcomes = {re.fullmatch(pattern, identity) is not None for identity in identities}
    settled = matches_all(pattern, ("spiffe://td/ns/", but, "/sa/", frozenset()))
    assert settled is None or outcomes == {settled}


@pytest.mark.parametrize(
    ("pattern", "namespace", "but", "settled"),
    [
        (r".*/ns/shop/.*", "shop", [], True),
        (r".*/ns/shop/.*", "cart", [], False),
        (r"spiffe://td/ns/shop/sa/.*", "shop", [], True),
        (r"spiffe://.+/ns/shop/(.+/|)sa/web(/.+)?", "shop", [], None),
        (r"spiffe://.+/ns/shop/(.+/|)sa/web(/.+)?", "shop", ["web"], False),
        (r"(?i)spiffe://.*", "shop", [], None),
        (r"spiffe://(?=td).*", "shop", [], None),
    ],
)
def test_a_namespace(pattern: str, namespace: str, but: list[str], settled: bool | None) -> None:
    assert matches_all(pattern, (f"spiffe://td/ns/{namespace}/sa/", frozenset(but))) is settled


def test_names_in_expressions() -> None:
    assert names_in(r".*/ns/my\-shop/.*") == (("my-shop", None),)
    assert names_in(r"spiffe://.+/ns/shop/(.+/|)sa/web(/.+)?") == (("shop", "web"),)
    assert names_in(r".*/ns/.*/.*") == ()
