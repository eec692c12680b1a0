"""A partly built authorization JSON has the same values as the whole one."""

from __future__ import annotations

from itertools import combinations

import pytest

from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson, authorization_json_of
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.gjson import select
from eastgate.dialects.kuadrant.authorino.model import Credentials, Where
from eastgate.dialects.kuadrant.authorino.paths import lead, touched
from eastgate.ir.attributes import UNKNOWN

LOCATIONS = (Credentials(Where.AUTHORIZATION_HEADER, "Bearer"),)
KNOWN = RequestFacts(
    time=0.0,
    host="toys.example",
    method="GET",
    path="/a?b=c",
    scheme="http",
    headers={"authorization": "Bearer secret", "x-a": "1"},
)
SELECTORS = (
    "auth",
    "auth.identity",
    "auth.identity.group",
    "auth.identity.nobody",
    "auth.identity.groups.#",
    "auth.*.group",
    "auth|identity|group",
    "auth.metadata.more.secret",
    "auth.authorization",
    "auth.@this",
    "auth:identity",
    "auth\\.identity",
    "request.method",
    "request.headers.authorization",
    "context.request.http.scheme",
    "{auth.identity.group,request.method}",
    "[auth.identity.group,request.path]",
    "@this.auth.identity.group",
    "*.identity.group",
    "",
)


def learned(request: RequestFacts = KNOWN) -> AuthorizationJson:
    document = authorization_json_of(request, LOCATIONS)
    document.add_finding("identity", None, {"group": "staff", "groups": ["a", "b"], "n": 2**60}, {"group": "staff"})
    document.add_finding("metadata", "more", {"secret": "s"}, {"secret": "***"})
    document.add_finding("authorization", "first", True, True)
    document.add_unknown("metadata", "other", "the result of other")
    return document


@pytest.mark.parametrize("request_facts", [KNOWN, RequestFacts(time=0.0, headers=UNKNOWN, path=UNKNOWN)])
@pytest.mark.parametrize("selector", SELECTORS)
def test_a_selector_sees_the_same_in_the_part_as_in_the_whole(selector: str, request_facts: RequestFacts) -> None:
    document, mentions = learned(request_facts), (lead(selector),)
    assert select(document.plain_for(mentions), selector) == select(document.plain, selector)
    assert document.unknown_to(mentions) == touched(mentions, document.unknown)
    assert document.hidden_from(mentions) == touched(mentions, document.hidden)


def test_several_selectors_see_the_same() -> None:
    document = learned()
    for pair in combinations(SELECTORS, 2):
        mentions = tuple(map(lead, pair))
        part = document.plain_for(mentions)
        for selector in pair:
            assert select(part, selector) == select(document.plain, selector)
        assert document.unknown_to(mentions) == touched(mentions, document.unknown)


def test_the_twins_differ_where_a_credential_is() -> None:
    document = learned()
    plain, masked = document.plain, document.masked
    assert (plain["auth"], masked["auth"]) == (
        {
            "identity": {"group": "staff", "groups": ["a", "b"], "n": float(2**60)},
            "metadata": {"more": {"secret": "s"}},
            "authorization": {"first": True},
        },
        {
            "identity": {"group": "staff"},
            "metadata": {"more": {"secret": "***"}},
            "authorization": {"first": True},
        },
    )
    assert "Bearer secret" in str(plain)
    assert "Bearer secret" not in str(masked)
    assert {path for path in document.hidden if path[0] == "auth"} == {
        ("auth", "identity"),
        ("auth", "metadata", "more", "secret"),
    }


def test_what_is_learned_again_is_not_hidden_any_more_and_a_copy_learns_on_its_own() -> None:
    document = learned()
    copy = document.copied()
    copy.add_finding("identity", None, {"group": "visitors"}, {"group": "visitors"})
    assert ("auth", "identity") not in copy.hidden
    assert ("auth", "identity") in document.hidden
    assert select(copy.plain, "auth.identity.group").text == select(copy.masked, "auth.identity.group").text
    assert select(document.plain, "auth.identity.group").text == "staff"
    document.add_finding("metadata", "other", 1, 1)
    assert document.unknown_to((("auth", "metadata", "other"),)) is None
    assert copy.unknown_to((("auth", "metadata", "other"),)) == "the result of other"
