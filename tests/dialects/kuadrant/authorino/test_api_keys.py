"""API keys are looked up by label in the scheme's namespace, and never shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastgate.cluster import Secret, Selector
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services, Unavailable
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from tests.dialects.kuadrant.authorino.schemes import api_keys, holding, request, rule, scheme, secret, trail

ALICE = secret("alice", "k3y-of-alice", username="the-hidden-name")


def asked(key: str, *secrets: Secret, conditions: tuple[str, ...] = ()) -> Judgement:
    rules = [rule(condition, f"rule {at}") for at, condition in enumerate(conditions)]
    guarded = scheme(*rules, identities=[api_keys()])
    return evaluate(guarded, request(headers={"authorization": f"APIKEY {key}"}), holding(*secrets))


@pytest.mark.parametrize(
    ("held", "key", "accepted"),
    [
        (ALICE, "k3y-of-alice", True),
        (ALICE, "k3y-of-alicE", False),
        (ALICE, "the-hidden-name", False),
        (replace(ALICE, labels={"app": "other"}), "k3y-of-alice", False),
        (replace(ALICE, namespace="other"), "k3y-of-alice", False),
        (secret("empty", ""), " ", False),
        (secret("none", None), "None", False),
        (secret("wide", "schlüssel-ключ"), "schlüssel-ключ", True),
        (secret("long", "k" * 5000), "k" * 5000, True),
    ],
)
def test_a_key_is_good_if_a_selected_secret_holds_it(held: Secret, key: str, accepted: bool) -> None:
    assert asked(key, held).allowed is accepted


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("auth.identity.metadata.name eq alice", True),
        ("auth.identity.metadata.annotations.owner eq alice", True),
        ("auth.identity.metadata.labels.app eq shop", True),
        ("auth.identity.metadata.namespace eq shop", True),
        ("auth.identity.data.username.@base64:decode eq the-hidden-name", True),
        ("auth.identity.data.api_key.@base64:decode eq k3y-of-alice", True),
        ("auth.identity.type eq Opaque", True),
    ],
)
def test_the_identity_is_the_secret(condition: str, holds: bool) -> None:
    found = asked("k3y-of-alice", ALICE, conditions=(condition,))
    assert found.allowed is holds
    shown = repr(replace(found, steps=()))
    assert "k3y-of-alice" not in shown
    assert "the-hidden-name" not in shown
    assert "dGhlLWhpZGRlbi1uYW1l" not in shown  # the same in Base64


def test_of_two_secrets_with_one_key_the_first_by_name_counts() -> None:
    found = asked("same-key", secret("zoe", "same-key"), secret("adam", "same-key"))
    assert found.document["auth"]["identity"]["metadata"]["name"] == "adam"  # type: ignore[index]


def test_secrets_that_cannot_be_read_deny() -> None:
    def failing(namespace: str | None, selector: Selector) -> list[Secret]:
        raise Unavailable("the API server is away")

    found = evaluate(
        scheme(identities=[api_keys()]), request(headers={"authorization": "APIKEY x"}), Services(secrets=failing)
    )
    assert (found.allowed, trail(found)) == (False, [("keys", "error")])
    assert "the API server is away" in found.steps[0].reason
