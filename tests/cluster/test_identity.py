"""Valid and invalid SPIFFE IDs in a policy (ruling 7)."""

from __future__ import annotations

import pytest

from eastgate.cluster import service_account_id, spiffe_problem, trust_domain_problem

_LONGEST = "spiffe://td/" + "x" * (2048 - len("spiffe://td/"))


def test_a_service_account_has_this_identity() -> None:
    identity = service_account_id("cluster.local", "default", "productpage")
    assert identity == "spiffe://cluster.local/ns/default/sa/productpage"
    assert spiffe_problem(identity) is None


@pytest.mark.parametrize(
    "text",
    [
        "spiffe://td/a",
        "spiffe://cluster.local/ns/default/sa/productpage",
        "spiffe://a_b-c.9/A.B_c-9",
        "spiffe://td/...",
        "spiffe://td/.a",
        "spiffe://td/a/b/c/d",
        _LONGEST,
    ],
)
def test_full_spiffe_ids_are_accepted(text: str) -> None:
    assert spiffe_problem(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "start with spiffe://"),
        ("td/a", "start with spiffe://"),
        ("SPIFFE://td/a", "start with spiffe://"),
        ("spiffe:/td/a", "start with spiffe://"),
        ("https://td/a", "start with spiffe://"),
        (" spiffe://td/a", "start with spiffe://"),
        ("spiffe://", "trust domain is empty"),
        ("spiffe:///a", "trust domain is empty"),
        ("spiffe://td", "a path is missing"),
        ("spiffe://td/", "a path is missing"),
        ("spiffe://TD/a", "'TD' may hold only lower-case"),
        ("spiffe://td:8443/a", "'td:8443' may hold only"),
        ("spiffe://user@td/a", "'user@td' may hold only"),
        ("spiffe://*/a", "'*' may hold only"),
        ("spiffe://td/a/", "ends with a slash"),
        ("spiffe://td//a", "empty path segment"),
        ("spiffe://td/a//b", "empty path segment"),
        ("spiffe://td/./a", "'.' path segment"),
        ("spiffe://td/a/../b", "'..' path segment"),
        ("spiffe://td/a/..", "'..' path segment"),
        ("spiffe://td/a?b=c", "query"),
        ("spiffe://td/a?", "query"),
        ("spiffe://td/a#b", "fragment"),
        ("spiffe://td/a%2fb", "'a%2fb' may hold only"),
        ("spiffe://td/a b", "'a b' may hold only"),
        ("spiffe://td/*", "'*' may hold only"),
        ("spiffe://td/ns/default/sa/*", "'*' may hold only"),
        ("spiffe://td/ä", "may hold only"),
        ("spiffe://td/a\n", "may hold only"),
        (_LONGEST + "x", "longer than 2048 bytes"),
        ("spiffe://td/" + "ä" * 1100, "longer than 2048 bytes"),
        ("spiffe://td/\ud800", "may hold only"),
    ],
)
def test_any_other_text_has_a_problem(text: str, message: str) -> None:
    assert message in (spiffe_problem(text) or "")


@pytest.mark.parametrize(
    ("text", "good"), [("cluster.local", True), ("a_b-1", True), ("", False), ("A", False), ("a/b", False)]
)
def test_trust_domains(text: str, good: bool) -> None:
    assert (trust_domain_problem(text) is None) is good
