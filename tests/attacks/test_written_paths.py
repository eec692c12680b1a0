"""Spellings of a path that a proxy and an application may read differently, with the expected answers."""

from __future__ import annotations

import pytest

from tests.attacks.paths import DOTS_WITH_PARAMETERS, NO_PATHS, ODD, REFUSED, TABLE, inside, outside
from tests.attacks.placements import HOST, Attacked
from tests.attacks.policies import ONLY_API, all_but
from tests.attacks.trying import Reading, compare
from tests.differential.asking import Http
from tests.differential.world import Manifest

_BUT_PRIVATE = all_but("/api/private", "/api/private/*")
_POLICIES = [
    pytest.param(ONLY_API, outside("/api/"), id="only"),
    pytest.param(_BUT_PRIVATE, inside("/api/private/"), id="all but"),
]


def _tries(paths: list[str]) -> list[Http]:
    return [Http(target=path, host=HOST) for path in paths]


def _statuses(attacked: Attacked, paths: list[str]) -> dict[str, int]:
    return {path: one.status for path, one in zip(paths, attacked.verdicts(_tries(paths)), strict=True)}


@pytest.mark.parametrize(("policies", "column"), [(ONLY_API, 1), (_BUT_PRIVATE, 2)], ids=["only", "all but"])
def test_each_way_to_write_a_path_has_its_answer(attacked: Attacked, policies: list[Manifest], column: int) -> None:
    attacked.enforce(policies)
    assert _statuses(attacked, [row[0] for row in TABLE]) == {row[0]: row[column] for row in TABLE}


@pytest.mark.parametrize(("policies", "reading"), _POLICIES)
def test_proxy_and_engine_agree_on_every_path(attacked: Attacked, policies: list[Manifest], reading: Reading) -> None:
    attacked.enforce(policies)
    paths = [*(row[0] for row in TABLE), *ODD, *DOTS_WITH_PARAMETERS, *REFUSED]
    assert not list(compare(attacked, _tries(paths), reading))


def test_what_is_no_path_gets_nowhere(attacked: Attacked) -> None:
    attacked.enforce(_BUT_PRIVATE)
    assert set(_statuses(attacked, NO_PATHS).values()) <= {0, 400, 404}


def test_dot_segments_with_parameters_that_a_proxy_leaves_are_refused(attacked: Attacked) -> None:
    """Some servers, mainly of servlets, cut off parameters before dot segments: `/api/..;/admin` is /admin there."""
    attacked.enforce(ONLY_API)
    assert _statuses(attacked, REFUSED) == dict.fromkeys(REFUSED, 400)
