"""Questions and decisions of the public API: ends equal their texts, and a decision keeps all its properties."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import FrozenInstanceError
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eastgate
from eastgate import (
    ANONYMOUS,
    Address,
    AuthConfig,
    Backend,
    CertificateName,
    Decision,
    Gateway,
    Host,
    Pod,
    Question,
    QuestionError,
    Route,
    Service,
    ServiceAccount,
    SpiffeId,
    Verdict,
)
from eastgate.authority.questions.values import path_values
from eastgate.cluster.ends import Destination, Source, parse_destination, parse_source
from eastgate.ir import Refusal, Reply
from eastgate.ir.attributes import PATH, SENT_PATH, TARGET, URL_PATH
from eastgate.ir.paths import comparable_path, handed_path, is_respelled, sent_path
from eastgate.reports.explain import explain

ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "shop"
KEPT = ("shop", "toystore", "kuadrant", "authorino", "bookinfo", "boutique", "linkerd", "agents")


# Questions

ENDS = [
    (ServiceAccount("shop", "web"), "sa:shop/web"),
    (Pod("shop", "cart"), "pod:shop/cart"),
    (SpiffeId("spiffe://td/x"), "spiffe://td/x"),
    (CertificateName("a.example"), "id:a.example"),
    (Address("10.0.0.1"), "ip:10.0.0.1"),
    (ANONYMOUS, "anonymous"),
]
DESTINATIONS = [
    (Pod("shop", "cart"), "pod:shop/cart"),
    (Service("shop", "cart"), "service:shop/cart"),
    (Gateway("shop", "g"), "gateway:shop/g"),
    (Route("shop", "r"), "route:shop/r"),
    (Backend("shop", "b"), "backend:shop/b"),
    (AuthConfig("shop", "a"), "authconfig:shop/a"),
    (Host("a.example:80"), "host:a.example:80"),
]


@pytest.mark.parametrize(("end", "words"), ENDS)
def test_sources_are_read_from_words(end: Source, words: str) -> None:
    assert parse_source(words) == end
    assert str(end) == words
    assert type(pickle.loads(pickle.dumps(end))) is type(end)  # noqa: S301 - our own


@pytest.mark.parametrize(("end", "words"), DESTINATIONS)
def test_destinations_are_read_from_words(end: Destination, words: str) -> None:
    assert parse_destination(words) == end
    assert str(end) == words


def test_a_question_of_texts_has_each_part_in_its_field_and_is_frozen() -> None:
    parts: dict[str, Any] = {name: f"a {name}" for name in inspect.signature(Question).parameters}
    question = Question.of(**{**parts, "source": "sa:shop/web", "destination": "pod:cart"}, namespace="shop")
    assert question == Question(
        **{**parts, "source": ServiceAccount("shop", "web"), "destination": Pod("shop", "cart")}
    )
    assert Question.of("sa:shop/web", "pod:shop/cart") == Question(ServiceAccount("shop", "web"), Pod("shop", "cart"))
    with pytest.raises(FrozenInstanceError):
        question.port = 80  # type: ignore[misc]


def test_a_name_that_is_none_is_refused_in_either_form() -> None:
    authority = eastgate.load(SHOP / "manifests")
    for source in ("sa:Shop/web", ServiceAccount("Shop", "web"), ServiceAccount("shop/x", "web")):
        with pytest.raises(QuestionError):
            authority.decide(Question.of(source, Pod("shop", "cart"), port=8080))


@given(st.text("/a-_~.%2F5?#;A@é", max_size=8).map("/".__add__))
def test_a_path_that_is_plain_is_read_as_any_other(path: str) -> None:
    values = path_values(path)
    assert values[PATH] == comparable_path(path)
    assert values[SENT_PATH] == sent_path(path)
    assert values[URL_PATH] == handed_path(path)
    assert str(values[TARGET]).startswith(handed_path(path))
    assert len(values) == 4 or is_respelled(handed_path(path)) or "?" in path


# Decisions


@pytest.fixture(scope="module")
def authority() -> eastgate.Authority:
    return eastgate.load(SHOP / "manifests")


ALLOWED = Question.of(ServiceAccount("shop", "web"), Pod("shop", "cart"), port=8080)
DENIED = Question.of(ANONYMOUS, Pod("shop", "cart"), port=8080)


def test_verdicts_and_refusals_are_enums_that_compare_as_before(authority: eastgate.Authority) -> None:
    allowed, denied = authority.decide(ALLOWED), authority.decide(DENIED)
    assert allowed.verdict == "allow"
    assert allowed.verdict is Verdict.ALLOW
    assert allowed.refusal is None
    assert denied.verdict is Verdict.DENY
    assert denied.refusal is Refusal.CLOSED
    assert denied.refusal == denied.status == 0
    assert [str(refusal) for refusal in (denied.refusal, Refusal.FORBIDDEN)] == ["closed", "403"]
    assert json.loads(json.dumps({"verdict": denied.verdict, "refusal": denied.refusal})) == {
        "verdict": "deny",
        "refusal": 0,
    }
    assert [str(reply) for reply in Reply] == ["allow", "deny", "error"]


def test_a_default_has_a_location_and_no_span(authority: eastgate.Authority) -> None:
    denied = authority.decide(DENIED)
    assert denied.span is None
    assert denied.location == "a default"
    assert authority.decide(ALLOWED).location.endswith("policies.yaml:11")


def properties_of(decision: Decision) -> object:
    return {**decision.to_json(), "question": str(decision.question)}


def test_prepared_and_bulk_answers_are_those_of_single_questions(authority: eastgate.Authority) -> None:
    questions = [
        ALLOWED,
        DENIED,
        Question.of("sa:shop/web", "service:shop/cart"),
        Question.of("sa:shop/web", "pod:shop/payments", port=8443, method="GET", path="/x"),
        Question.of("pod:shop/web", "pod:shop/cart"),
    ]
    single = [properties_of(authority.decide(question)) for question in questions]
    prepared = [authority.prepare(question) for question in questions]
    for _ in range(2):
        assert [properties_of(question.decide()) for question in prepared] == single
    bulk = authority.decide_all([*questions, *prepared])
    assert [properties_of(answer) for answer in bulk if isinstance(answer, Decision)] == [*single, *single]


def test_a_bulk_call_has_an_error_in_the_place_of_an_undecided_answer(authority: eastgate.Authority) -> None:
    first, second, third = authority.decide_all([ALLOWED, Question.of("sa:shop/web", "pod:shop/nobody"), DENIED])
    assert isinstance(first, Decision)
    assert isinstance(second, QuestionError)
    assert isinstance(third, Decision)


def test_a_reason_needs_no_trace_where_everything_is_known(
    authority: eastgate.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was decided again")

    decisions = authority.decide(ALLOWED), authority.decide(DENIED)
    monkeypatch.setattr("eastgate.authority.decisions.trace", refuse)
    assert [decision.reason for decision in decisions] == [
        "AuthorizationPolicy/shop/cart-from-web rule 0 allows it",
        "no rule allows it at shop/cart",
    ]


# Pickles and copies


def all_properties(decision: Decision) -> dict[str, object]:
    return {
        "json": json.dumps(decision.to_json()),
        "explanation": explain(decision, verbose=True),
        "refusal": (decision.refusal, decision.status, str(decision.ruling)),
        "stated": decision.stated(),
        "unknown": decision.unknown,
        "points": decision.points,
    }


@pytest.mark.parametrize("example", KEPT)
def test_a_pickled_or_copied_decision_has_the_same_properties(example: str) -> None:
    decisions = [result.decision for result in eastgate.test(ROOT / "examples" / example).results]
    checked = [decision for decision in decisions if decision is not None][:: 1 + len(decisions) // 40]
    assert checked
    for decision in checked:
        properties = all_properties(decision)
        once = pickle.loads(pickle.dumps(decision))  # noqa: S301 - our own
        for kept in (once, pickle.loads(pickle.dumps(once)), copy.deepcopy(decision), copy.copy(decision)):  # noqa: S301
            assert isinstance(kept, Decision)
            assert bool(kept) is bool(decision)
            assert all_properties(kept) == properties


def test_a_pickled_decision_is_as_things_were() -> None:
    authority = eastgate.load(SHOP / "manifests")
    kept = copy.deepcopy(decision := authority.decide(ALLOWED))
    before = decision.enforcement
    authority.update(remove=["Deployment/shop/web", "AuthorizationPolicy/shop/cart-from-web"])
    assert (kept.policy, kept.enforcement) == ("AuthorizationPolicy/shop/cart-from-web", before)


def check_there(port: int) -> Decision:
    return eastgate.load(SHOP / "manifests").check("sa:shop/web", "pod:shop/cart", port=port)


@pytest.mark.real
def test_processes_return_decisions() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert [bool(decision) for decision in pool.map(check_there, (8080, 9090))] == [True, False]
