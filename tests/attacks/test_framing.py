"""In no form of a message does the application get a denied request, at any placement."""

from __future__ import annotations

from tests.attacks.framing import smuggled, tries, upgrades
from tests.attacks.paths import outside
from tests.attacks.placements import Attacked
from tests.attacks.policies import ONLY_API
from tests.attacks.trying import attack


def test_no_framing_gets_a_forbidden_request_through(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    assert not attack(attacked, [*tries(), *smuggled(3, 100)], outside("/api/"))
    assert any(arrived.target == "/api/x" for arrived in attacked.application.arrived)


def test_nothing_behind_an_upgrade_that_the_application_declines_gets_through(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    attacked.application.declines = True
    try:
        assert not attack(attacked, list(upgrades()), outside("/api/"))
    finally:
        attacked.application.declines = False
