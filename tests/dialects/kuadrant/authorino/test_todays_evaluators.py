"""Evaluators that only today's kinds have, without servers: Secrets of all namespaces, expressions, selected groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Review, Services
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    ApiKeys,
    Authorization,
    CelExpression,
    Credentials,
    Identity,
    LiteralValue,
    Plain,
    Selected,
    SubjectAccess,
    Value,
)
from tests.dialects.kuadrant.authorino.authorities import CLIENT, authority, issued
from tests.dialects.kuadrant.authorino.schemes import KEYS, holding, request, rule, scheme, secret

ELSEWHERE = replace(secret("carol", "carols-key"), namespace="elsewhere")
ROOT_ELSEWHERE = replace(secret("root", None, tls_crt=authority().pem), namespace="elsewhere")


@pytest.mark.parametrize("everywhere", [True, False])
def test_api_keys_of_all_namespaces(everywhere: bool) -> None:
    identity = Identity("keys", ApiKeys(KEYS, all_namespaces=everywhere), Credentials(key="APIKEY"))
    guarded = scheme(identities=[identity])
    judged = evaluate(guarded, request(headers={"authorization": "APIKEY carols-key"}), holding(ELSEWHERE))
    assert judged.allowed is everywhere


@pytest.mark.parametrize("everywhere", [True, False])
def test_authorities_of_all_namespaces(everywhere: bool) -> None:
    guarded = scheme(identities=[Identity("mtls", X509(KEYS, all_namespaces=everywhere))])
    pem = issued("alice", authority(), usages=[CLIENT]).pem
    assert evaluate(guarded, request(certificate=pem), holding(ROOT_ELSEWHERE)).allowed is everywhere


@pytest.mark.parametrize(
    ("expression", "headers", "allowed"),
    [
        ("{'sub': request.headers['x-user']}", {"x-user": "alice"}, True),
        ("{'sub': request.headers['x-user']}", {}, False),
        ("{'sub': request.headers['x-user']}", {"x-user": "bob"}, False),
        ("null", {}, False),
    ],
)
def test_a_plain_identity_may_be_computed(expression: str, headers: dict[str, str], allowed: bool) -> None:
    guarded = scheme(rule("auth.identity.sub eq alice"), identities=[Identity("plain", Plain(expression=expression))])
    judged = evaluate(guarded, request(headers=headers), Services())
    assert judged.allowed is allowed


def test_the_challenge_of_a_computed_identity_is_its_expression() -> None:
    judged = evaluate(scheme(identities=[Identity("p", Plain(expression="null"))]), request(), Services())
    assert (judged.status, judged.headers[0]) == (401, ("WWW-Authenticate", 'null realm="p"'))


class Reviewing:
    """Answers every question with yes, and records it."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, object]] = []

    def token(self, token: str, audiences: tuple[str, ...]) -> Review:
        raise NotImplementedError

    def access(self, spec: Mapping[str, object]) -> Review:
        self.asked.append(spec)
        return Review(granted=True)


def groups_asked_about(selected: Value | None, *, identity: str, groups: tuple[str, ...] = ()) -> object:
    reviewer = Reviewing()
    access = SubjectAccess(None, groups, selected_groups=selected)
    guarded = scheme(Authorization("rbac", access), identities=[Identity("plain", Plain(expression=identity))])
    judged = evaluate(guarded, request(), Services(reviewer=reviewer))
    assert judged.allowed is bool(reviewer.asked)
    return reviewer.asked[0].get("groups") if reviewer.asked else None


@pytest.mark.parametrize(
    ("groups", "identity", "expected"),
    [
        (Selected("auth.identity.groups"), "{'groups': ['a', 'b']}", ["a", "b"]),
        (CelExpression("auth.identity.groups"), "{'groups': ['a']}", ["a"]),
        (LiteralValue(["a"]), "{}", ["a"]),
        (LiteralValue('["a"]'), "{}", ["a"]),
        (Selected("auth.identity.groups"), "{'groups': []}", None),
        (Selected("auth.identity.groups"), "{}", None),
        (Selected("auth.identity.groups"), "{'groups': 'a'}", None),
        (Selected("auth.identity.groups"), "{'groups': [1]}", None),
        (Selected("auth.identity.groups"), f"{{'groups': '{'[' * 5000}'}}", None),
    ],
)
def test_groups_are_selected_from_the_document(groups: Value, identity: str, expected: object) -> None:
    assert groups_asked_about(groups, identity=identity) == expected


def test_selected_groups_stand_in_place_of_those_written_out() -> None:
    assert groups_asked_about(LiteralValue(["a"]), groups=("b",), identity="{}") == ["a"]
    assert groups_asked_about(None, groups=("b",), identity="{}") == ["b"]
