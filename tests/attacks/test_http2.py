"""With no HTTP/2 frames does the application get a denied request, at any placement."""

from __future__ import annotations

from tests.attacks.http2 import mixed, tries
from tests.attacks.paths import outside
from tests.attacks.placements import Attacked
from tests.attacks.policies import ONLY_API
from tests.attacks.trying import attack
from tests.differential.asking import HTTP_2, Http


def test_no_frames_get_a_forbidden_request_through(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    assert not attack(attacked, [*tries(), *mixed(5, 100)], outside("/api/"))
    served, refused = (Http(target=path, host="a", version=HTTP_2) for path in ("/api/x", "/secret"))
    assert [verdict.status for verdict in attacked.verdicts([served, refused])] == [200, 403]
