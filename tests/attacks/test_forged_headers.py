"""Headers from a client never replace its identity, its address, or the target of its request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eastgate.local.machine.connection import CallConnection, HttpRequest
from tests.attacks.headers import FORGED
from tests.attacks.placements import HOST, Attacked, Placement
from tests.attacks.policies import ONLY_API, only_accounts
from tests.differential.asking import Http
from tests.differential.bench import Bench


async def _statuses(connection: CallConnection, requests: list[HttpRequest]) -> list[int]:
    statuses = []
    for request in requests:
        await connection.send(request)
        statuses.append((await connection.response()).status)
    return statuses


@pytest.mark.parametrize("folded", [str.lower, str.upper, str.title])
def test_no_forged_header_changes_a_verdict_or_the_log(
    attacked: Attacked, placement: Placement, bench: Bench, folded: Callable[[str], str]
) -> None:
    sets = [
        *(((folded(name), value),) for name, value in FORGED),
        tuple((folded(name), value) for name, value in FORGED),
    ]
    attacked.enforce(ONLY_API)

    async def ask(path: str, status: int) -> None:
        async with await attacked.open() as connection:
            bench.forget(connection)
            requests = [HttpRequest(path=path, headers=(("host", HOST), *headers)) for headers in sets]
            assert await _statuses(connection, requests) == [status] * len(sets)
            if placement.any_host:  # otherwise another proxy logs its own connection
                for seen in await bench.logged(connection, len(sets)):
                    assert (seen.peer, seen.method, seen.path, seen.status) == (peer, "GET", path, status)
                    assert seen.host == HOST

    peer = "none" if "plaintext" in placement.name else "spiffe://td/ns/a/sa/x"
    for path, status in (("/api/x", 200), ("/secret", 403)):
        attacked.run(ask(path, status))


@pytest.mark.parametrize("level", ["NETWORK", "APPLICATION"])
def test_no_header_gives_access_to_a_denied_caller(attacked: Attacked, placement: Placement, level: str) -> None:
    attacked.enforce(only_accounts("alice", level=level))
    forged = [Http(target="/api/x", host=HOST, headers=headers) for headers in (FORGED, *((each,) for each in FORGED))]
    verdicts = attacked.verdicts(forged)
    assert not [verdict for verdict in verdicts if verdict.arrived is not None]
    is_closed = level == "NETWORK" and placement.refuses_connections
    assert {verdict.status for verdict in verdicts} == {(503 if not placement.any_host else 0) if is_closed else 403}


def test_the_application_gets_no_forged_header_of_the_proxy(attacked: Attacked) -> None:
    attacked.enforce(ONLY_API)
    [verdict] = attacked.verdicts([Http(target="/api/x", host=HOST, headers=FORGED)])
    assert verdict.arrived is not None
    names = {name.lower() for name, _ in verdict.arrived.headers}
    assert not {name for name in names if name.startswith("x-envoy-")}
    assert "x-forwarded-client-cert" not in names


def test_a_path_in_a_forged_header_is_not_the_path_that_is_compared_or_logged(
    attacked: Attacked, placement: Placement, bench: Bench
) -> None:
    """Envoy's own attribute for the path prefers this header over the request."""
    attacked.enforce(ONLY_API)
    forged = (("/secret", "/api/x", 403), ("/api/x", "/secret", 200))

    async def ask() -> None:
        async with await attacked.open() as connection:
            bench.forget(connection)
            requests = [
                HttpRequest(path=path, headers=(("host", HOST), ("x-envoy-original-path", other)))
                for path, other, _ in forged
            ]
            assert await _statuses(connection, requests) == [status for *_, status in forged]
            if placement.any_host:
                logged = await bench.logged(connection, len(forged))
                assert [(each.path, each.status) for each in logged] == [(path, status) for path, _, status in forged]

    attacked.run(ask())
