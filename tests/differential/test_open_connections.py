"""An open connection survives a change of policies if, and only if, its caller may still connect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from os import getpid

import pytest

from eastgate.local.machine.connection import CallConnection
from tests.differential.asking import Ask, Caller, Http
from tests.differential.bench import RAW, Bench
from tests.differential.world import SETTINGS, Manifest

_REVOKED_SECONDS = 3.0  # Envoy drains for one second
_DECLARED = {"a/x", "a/y", "b/x"}  # others may have to reconnect when policies start or stop naming them
_ACCOUNTS = ["a/x", "a/y", "b/x", "b/y", "a/nobody-declares-it", "elsewhere/x"]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(f"connections-{getpid()}") as bench:
        yield bench


def _allowed(*accounts: str, level: str = "NETWORK") -> list[Manifest]:
    spec = {
        "targetRefs": [{"kind": "Pod", "selector": {}}],
        "action": "ALLOW",
        "enforcementLevel": level,
        "rules": [{"authorizationSource": {"serviceAccounts": [account]}} for account in accounts],
    }
    version = "gateway.networking.x-k8s.io/v1alpha2"
    metadata = {"name": level.lower(), "namespace": "a"}
    return [{"apiVersion": version, "kind": "AuthorizationPolicy", "metadata": metadata, "spec": spec}]


def _ask(account: str, http: Http | None = None) -> Ask:
    namespace, name = account.split("/")
    return Ask(Caller(f"spiffe://td/ns/{namespace}/sa/{name}", "127.0.0.2"), "a/p0", 80, http)


async def _open(bench: Bench, ask: Ask) -> CallConnection:
    tls = await bench.context(ask.caller)
    return await CallConnection.open(bench.target(ask), tls=tls, source_address=ask.caller.address)


async def _echoes(connection: CallConnection) -> bool:
    await connection.send(RAW)
    return (await connection.raw(5, len(RAW))).body == RAW


@pytest.mark.parametrize(
    "after",
    [["a/*"], ["a/x", "b/*"], ["b/y"], ["a/*", "b/*", "elsewhere/*"], ["elsewhere/*", "a/nobody-declares-it"]],
    ids=" ".join,
)
def test_bytes_flow_for_callers_that_may_still_connect(bench: Bench, after: list[str]) -> None:
    bench.enforce(_allowed("a/*", "b/*", "elsewhere/*"), SETTINGS)

    async def connect() -> dict[str, CallConnection]:
        opened = {account: await _open(bench, _ask(account)) for account in _ACCOUNTS}
        assert all([await _echoes(connection) for connection in opened.values()])
        return opened

    opened = bench.run(connect())
    authority = bench.enforce(_allowed(*after), SETTINGS)

    async def look() -> dict[str, bool]:
        gone = {account for account in _ACCOUNTS if not authority.decide(_ask(account).question()).allowed}
        await asyncio.gather(*(opened[account].peer_closed(_REVOKED_SECONDS) for account in gone))
        open_still = {account: opened[account].closed_at is None for account in _ACCOUNTS}
        assert all([await _echoes(opened[account]) for account, still in open_still.items() if still])
        for connection in opened.values():
            await connection.close()
        return open_still

    found = bench.run(look())
    allowed = {account for account in _ACCOUNTS if authority.decide(_ask(account).question()).allowed}
    still = {account for account in _ACCOUNTS if found[account]}
    assert still <= allowed
    assert allowed & _DECLARED <= still


def test_requests_on_an_open_connection_are_decided_by_the_current_policies(bench: Bench) -> None:
    http = Http(target="/")

    async def status(connection: CallConnection) -> int:
        await connection.send(http.to_bytes())
        return (await connection.response()).status

    ask = _ask("a/x", http)
    bench.enforce(_allowed("a/x", level="APPLICATION"), SETTINGS)
    connection = bench.run(_open(bench, ask))
    for accounts in (["a/x"], ["a/y"], ["a/*"], ["b/*"], ["b/*", "a/x"]):
        authority = bench.enforce(_allowed(*accounts, level="APPLICATION"), SETTINGS)
        assert bench.run(status(connection)) == authority.decide(ask.question()).status
    bench.run(connection.close())
