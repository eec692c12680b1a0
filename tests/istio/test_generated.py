"""Generated policies and requests: Istio answers all of them, and Eastgate agrees.

ISTIO_SEED and ISTIO_TABLES (of 40 requests each) choose others. A difference is printed as a table.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from eastgate.dialects import reads
from tests.istio.drawn_policies import CONDITIONS, OPERATION_FIELDS, SOURCE_FIELDS
from tests.istio.generated import differences_of_eastgate, draw_tables
from tests.istio.oracle import Answers, Oracle

SEED = int(os.environ.get("ISTIO_SEED") or 1)
TABLES = int(os.environ.get("ISTIO_TABLES", "100"))
SHOWN = 5


@pytest.fixture(scope="module")
def answered(oracle: Oracle) -> list[Answers]:
    print(f"\nISTIO_SEED={SEED} ISTIO_TABLES={TABLES}")
    return list(oracle.answer(draw_tables(SEED, TABLES)))


@pytest.mark.istio
def test_istio_accepts_the_policies_and_answers_every_request(answered: list[Answers]) -> None:
    assert {answers.table.name: answers.rejections for answers in answered if answers.rejections} == {}
    unanswered = [answer.detail for answers in answered for answer in answers.cases if answer.verdict is None]
    assert unanswered == []
    counts = Counter(
        (answer.verdict, answer.status, answer.by[0].partition("/")[0])
        for answers in answered
        for answer in answers.cases
    )
    print("".join(f"\n{number:6} {' '.join(map(str, what))}" for what, number in counts.most_common()))


@pytest.mark.istio
def test_every_way_to_decide_is_met(answered: list[Answers]) -> None:
    ways = {
        (answer.verdict, answer.by[0].partition("/")[0])
        for answers in answered
        for answer in answers.cases
        if answer.status in (0, 200, 401, 403)
    }
    assert ways >= {
        ("allow", "none"),
        ("allow", "AuthorizationPolicy"),
        ("deny", "none"),
        ("deny", "AuthorizationPolicy"),
        ("deny", "RequestAuthentication"),
        ("deny", "PeerAuthentication"),
    }


@pytest.mark.istio
def test_eastgate_decides_alike(answered: list[Answers], tmp_path: Path) -> None:
    if not reads("security.istio.io/v1", "AuthorizationPolicy"):
        pytest.skip("Eastgate does not read Istio's policies yet")
    differences = [each for answers in answered for each in differences_of_eastgate(answers, tmp_path)]
    assert differences == [], f"{len(differences)} differences\n" + "\n".join(differences[:SHOWN])


def test_a_seed_draws_the_same_again() -> None:
    assert list(draw_tables(7, 5)) == list(draw_tables(7, 5))
    assert list(draw_tables(7, 1)) != list(draw_tables(8, 1))


def test_every_field_and_condition_is_drawn() -> None:
    text = repr([table.objects for table in draw_tables(1, 150)])
    fields = [*SOURCE_FIELDS, *OPERATION_FIELDS]
    negated = [f"not{field[0].upper()}{field[1:]}" for field in fields]
    assert [name for name in (*fields, *negated, *CONDITIONS) if f"'{name}'" not in text] == []
    assert [word for word in ("CUSTOM", "AUDIT", "DENY", "istio.io/dry-run", "targetRefs") if word not in text] == []
