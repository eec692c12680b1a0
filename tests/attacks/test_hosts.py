"""No spelling of a host bypasses a route of that host, at any placement, in any version of HTTP."""

from __future__ import annotations

import pytest

from tests.attacks.hosts import odd, reads_admin, repeated, spellings
from tests.attacks.placements import Attacked
from tests.attacks.policies import linkerd_route, linkerd_server
from tests.attacks.trying import compare
from tests.differential.asking import HTTP_1_1, HTTP_2, Http

_EVERYTHING = {"path": {"type": "PathPrefix", "value": "/"}}
ALL_BUT_ADMIN = [
    *linkerd_server(),
    *linkerd_route("admin", _EVERYTHING, hostnames=["admin.example"], allowed=False),
    *linkerd_route("rest", _EVERYTHING, allowed=True),
]
ONLY_OTHERS = [
    *linkerd_server(),
    *linkerd_route("others", _EVERYTHING, hostnames=["other", "*.others"], allowed=True),
]


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
@pytest.mark.parametrize("policies", [ALL_BUT_ADMIN, ONLY_OTHERS], ids=["all but admin", "only others"])
def test_engine_and_proxy_read_the_same_host(
    attacked_by_host: Attacked, policies: list[dict[str, object]], version: str
) -> None:
    attacked_by_host.enforce(policies)
    written = dict.fromkeys([host for host, _ in spellings()] + list(odd(11, 60)))
    tries = [Http(host=host, version=version) for host in written]
    assert not list(compare(attacked_by_host, tries, reads_admin))
    served = Http(host="other", version=version)
    assert [verdict.status for verdict in attacked_by_host.verdicts([served])] == [200]


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
def test_what_is_no_host_is_refused_before_any_policy(attacked_by_host: Attacked, version: str) -> None:
    attacked_by_host.enforce(ALL_BUT_ADMIN)
    tries = [Http(host=host, version=version) for host, is_none in spellings() if is_none]
    verdicts = attacked_by_host.verdicts(tries)
    statuses = {http.host: verdict.status for http, verdict in zip(tries, verdicts, strict=True)}
    assert {host: status for host, status in statuses.items() if status not in (0, 400)} == {}


def test_one_of_several_hosts_is_never_hidden_behind_another(attacked_by_host: Attacked) -> None:
    for policies in (ALL_BUT_ADMIN, ONLY_OTHERS):
        attacked_by_host.enforce(policies)
        assert not list(compare(attacked_by_host, repeated(), reads_admin))
