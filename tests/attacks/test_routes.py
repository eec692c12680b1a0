"""No spelling of a host or path bypasses a guarded route of a gateway, or the rules that name them."""

from __future__ import annotations

import pytest

from tests.attacks import hosts, paths
from tests.attacks.auth_policies import NO_CALLER, auth_policy, gateway_route
from tests.attacks.placements import HOST, Attacked
from tests.attacks.trying import Reading, compare
from tests.differential.asking import HTTP_1_1, HTTP_2, Http
from tests.differential.world import Manifest

_CLOSED: Manifest = {"identity": [NO_CALLER]}
_REST_CLOSED = auth_policy("HTTPRoute:all", {"*": _CLOSED}, name="rest")


def _path(kind: str, value: str) -> Manifest:
    return {"path": {"type": kind, "value": value}}


_HOSTS = {
    "a route of the host is closed": [
        gateway_route("admin", hostnames=[hosts.ADMIN]),
        auth_policy("HTTPRoute:admin", {hosts.ADMIN: _CLOSED}),
    ],
    "a rule about the host is closed": [
        auth_policy("Gateway:gw", {hosts.ADMIN: _CLOSED}, [{"hosts": [hosts.ADMIN]}]),
    ],
    "only routes of other hosts are open": [gateway_route("others", hostnames=["other", "*.others"]), _REST_CLOSED],
}
_INSIDE, _OUTSIDE = paths.inside("/secret/"), paths.outside("/api/")
_PATHS: dict[str, tuple[list[Manifest], Reading]] = {
    "a route of the path is closed": (
        [gateway_route("secret", _path("PathPrefix", "/secret")), auth_policy("HTTPRoute:secret", {"*": _CLOSED})],
        _INSIDE,
    ),
    "a rule about the path is closed": (
        [auth_policy("Gateway:gw", {"*": _CLOSED}, [{"paths": ["/secret", "/secret/*"]}])],
        _INSIDE,
    ),
    "only a route of another path is open": (
        [gateway_route("api", _path("PathPrefix", "/api/")), _REST_CLOSED],
        _OUTSIDE,
    ),
}


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
@pytest.mark.parametrize("name", _HOSTS)
def test_no_spelling_of_a_host_leads_round_its_route(attacked_gateway: Attacked, name: str, version: str) -> None:
    attacked_gateway.enforce(_HOSTS[name])
    written = dict.fromkeys([host for host, _ in hosts.spellings()] + list(hosts.odd(13, 60)))
    tries = [Http(host=host, version=version) for host in written]
    assert not list(compare(attacked_gateway, [*tries, *_repeated(version)], hosts.reads_admin))
    asked = [Http(host=host, version=version) for host in ("other", hosts.ADMIN)]
    assert [verdict.status for verdict in attacked_gateway.verdicts(asked)] == [200, 401]


def _repeated(version: str) -> list[Http]:
    return [http for http in hosts.repeated() if http.version == version]


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
@pytest.mark.parametrize("name", _PATHS)
def test_no_spelling_of_a_path_leads_round_its_route(attacked_gateway: Attacked, name: str, version: str) -> None:
    policies, reading = _PATHS[name]
    attacked_gateway.enforce(policies)
    written = [path for _, path in paths.spellings()] + list(paths.sneaked(17, 60))
    written += [*paths.ODD, *paths.DOTS_WITH_PARAMETERS, *paths.REFUSED]
    tries = [Http(target=path, host=HOST, version=version) for path in dict.fromkeys(written)]
    assert not list(compare(attacked_gateway, tries, reading))
    asked = [Http(target=path, host=HOST, version=version) for path in ("/api/served", paths.SECRET)]
    assert [verdict.status for verdict in attacked_gateway.verdicts(asked)] == [200, 401]


def test_an_encoded_slash_passes_where_no_route_is_guarded(attacked_gateway: Attacked) -> None:
    attacked_gateway.enforce([gateway_route("secret", _path("PathPrefix", "/secret"))])
    asked = [Http(target=path, host=HOST) for path in ("/api/..%2fsecret", "/a%5cb", "/secret/%2e%2e;/x")]
    assert [verdict.status for verdict in attacked_gateway.verdicts(asked)] == [200, 200, 200]
