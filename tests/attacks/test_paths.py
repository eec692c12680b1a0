"""No spelling of a path bypasses a policy, at any placement, in any version of HTTP."""

from __future__ import annotations

import pytest

from tests.attacks.paths import PCHARS, SECRET, inside, outside, pchar_spellings, sneaked, spellings
from tests.attacks.placements import HOST, Attacked
from tests.attacks.policies import ALL_BUT_SECRET, ONLY_API, all_but
from tests.attacks.trying import Reading, compare
from tests.differential.asking import HTTP_1_1, HTTP_2, Http
from tests.differential.world import Manifest

_POLICIES = [
    pytest.param(ONLY_API, outside("/api/"), id="only /api/"),
    pytest.param(ALL_BUT_SECRET, inside("/secret/"), id="all but /secret/"),
]


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
@pytest.mark.parametrize(("policies", "reading"), _POLICIES)
def test_no_spelling_leads_round_a_policy(
    attacked: Attacked, policies: list[Manifest], reading: Reading, version: str
) -> None:
    attacked.enforce(policies)
    paths = [path for _, path in spellings()] + list(sneaked(7, 60))
    tries = [Http(target=path, host=HOST, version=version) for path in dict.fromkeys(paths)]
    assert not list(compare(attacked, tries, reading))
    served = Http(target="/api/served", host=HOST, version=version)
    refused = Http(target=SECRET, host=HOST, version=version)
    assert [verdict.status for verdict in attacked.verdicts([served, refused])] == [200, 403]


@pytest.mark.parametrize(("pattern", "path"), PCHARS, ids=[pattern for pattern, _ in PCHARS])
def test_a_character_and_its_encoding_are_the_same(attacked: Attacked, pattern: str, path: str) -> None:
    attacked.enforce(all_but(pattern))
    for version in (HTTP_1_1, HTTP_2):
        tries = [Http(target=one, host=HOST, version=version) for one in pchar_spellings(path)]
        statuses = {http.target: verdict.status for http, verdict in zip(tries, attacked.verdicts(tries), strict=True)}
        assert set(statuses.values()) <= {400, 403}, statuses
        assert all(attacked.denial(http) for http in tries)
