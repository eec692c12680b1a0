"""No spelling of a header bypasses a route that matches it, at any placement, in any version of HTTP."""

from __future__ import annotations

import pytest

from tests.attacks.headers import CONNECTIONS, FORGED, reads_admin, spellings, written
from tests.attacks.paths import outside
from tests.attacks.placements import HOST, Attacked
from tests.attacks.policies import ONLY_API, linkerd_route, linkerd_server
from tests.attacks.trying import Try, attack, compare
from tests.differential.asking import HTTP_1_0, HTTP_1_1, HTTP_2, Http

_EVERYTHING = {"path": {"type": "PathPrefix", "value": "/"}}
ALL_BUT_ADMIN = [
    *linkerd_server(),
    *linkerd_route("admin", {"headers": [{"name": "x-role", "value": "admin"}]}, allowed=False),
    *linkerd_route("rest", _EVERYTHING, allowed=True),
]
ONLY_USERS = [
    *linkerd_server(),
    *linkerd_route("users", {"headers": [{"name": "x-role", "value": "user"}]}, allowed=True),
]


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
@pytest.mark.parametrize("policies", [ALL_BUT_ADMIN, ONLY_USERS], ids=["all but admin", "only users"])
def test_engine_and_proxy_read_the_same_headers(
    attacked: Attacked, policies: list[dict[str, object]], version: str
) -> None:
    attacked.enforce(policies)
    tries = [Http(host=HOST, headers=headers, version=version) for headers in dict.fromkeys(spellings())]
    reading = reads_admin if policies is ALL_BUT_ADMIN else lambda _: None
    assert not list(compare(attacked, tries, reading))


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
def test_no_forged_header_leads_round_a_policy(attacked: Attacked, version: str) -> None:
    attacked.enforce(ONLY_API)
    sets = [*((one,) for one in FORGED), tuple(FORGED)]
    for path, status in (("/api/x", 200), ("/secret", 403)):
        tries = [Http(target=path, host=HOST, headers=headers, version=version) for headers in sets]
        assert not list(compare(attacked, tries, outside("/api/")))
        assert {verdict.status for verdict in attacked.verdicts(tries)} == {status}


def test_no_line_hides_a_header(attacked: Attacked) -> None:
    attacked.enforce(ALL_BUT_ADMIN)
    lines = [Try(repr(line), (b"GET / HTTP/1.1\r\nhost: a\r\n" + line + b"\r\n\r\n",)) for line in written()]
    assert not attack(attacked, lines, reads_admin)


@pytest.mark.parametrize("version", [HTTP_1_0, HTTP_1_1])
def test_headers_about_the_connection_lose_no_answer(attacked: Attacked, version: str) -> None:
    attacked.enforce(ALL_BUT_ADMIN)
    chosen = dict.fromkeys(CONNECTIONS)
    tries = [Http(host=HOST, headers=headers, version=version) for headers in chosen]
    assert not list(compare(attacked, tries, reads_admin))
