"""While routes and policies change, a server gets only requests that the old or the new ones route to it."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from eastgate.local.machine.connection import CallConnection, Target
from eastgate.local.machine.http1 import Malformed
from tests.attacks.agents import AGENTS_WORLD, AgentBench, access_policy, request, route, to_backend, tool, tool_message
from tests.differential.bench import authority_of
from tests.differential.world import SETTINGS, Manifest
from tests.replacing import enforce_instead

_CHANGES, _CALLERS, _BETWEEN = 30, 8, 0.05
_HOST = "race.example"


def _to(*backends: tuple[str, int]) -> Manifest:
    return route("race", *(to_backend(name, weight) for name, weight in backends), host=_HOST, to=("gw",))


_EACH_ITS_OWN = [
    access_policy("at-maths", "XBackend:maths", ("narrow", tool("add"))),
    access_policy("at-files", "XBackend:files", ("narrow", tool("sub"))),
]
_OTHER_CALLER_ONLY = [access_policy("at-gw", "Gateway:gw", ("other", None))]
_ALL_BUT_RM = [
    access_policy("at-gw", "Gateway:gw", ("narrow", None)),
    access_policy("not-at-gw", "Gateway:gw", ("narrow", tool("rm")), action="Deny"),
]


@pytest.fixture(scope="module")
def changing(agents: AgentBench) -> Iterator[AgentBench]:
    yield agents
    agents.enforce(())


def _hammer(bench: AgentBench, worlds: Sequence[Sequence[Manifest]], tools: Sequence[str]) -> Counter[tuple[str, str]]:
    """Change between these worlds while clients call the tools. Return the calls that arrived, by server."""
    bench.clear()
    asyncio.run(_call_meanwhile(bench, worlds, tools))
    arrived = Counter((each.server, json.loads(each.body)["params"]["name"]) for each in bench.arrived if each.body)
    bench.clear()
    return arrived


async def _call_meanwhile(bench: AgentBench, worlds: Sequence[Sequence[Manifest]], tools: Sequence[str]) -> None:
    site = bench.mesh.gateways["gateway:a/gw"]
    target = Target(site.address, site.ports[8080])
    tls = bench.run(bench.mesh.certificates.context("spiffe://td/ns/a/sa/narrow"))
    over = asyncio.Event()
    callers = [_call(target, tls, tools[number % len(tools)], over) for number in range(_CALLERS)]
    calling = asyncio.gather(*callers)
    try:
        await asyncio.to_thread(_change, bench, worlds)
    finally:
        over.set()
        await calling


def _change(bench: AgentBench, worlds: Sequence[Sequence[Manifest]]) -> None:
    for number in range(_CHANGES):
        bench.run(enforce_instead(bench.mesh, authority_of([*AGENTS_WORLD, *worlds[number % len(worlds)]], SETTINGS)))
        time.sleep(_BETWEEN)


async def _call(target: Target, tls: ssl.SSLContext, name: str, over: asyncio.Event) -> None:
    while not over.is_set():
        try:
            async with await CallConnection.open(target, tls=tls) as connection:
                is_open = True
                while is_open and not over.is_set():
                    await connection.send(request(tool_message(name), host=_HOST))
                    is_open = (await connection.response(10)).header("connection") != "close"
        except (OSError, EOFError, Malformed):
            await asyncio.sleep(0)


def test_a_request_goes_where_its_decision_was_about(changing: AgentBench) -> None:
    arrived = _hammer(
        changing,
        [[_to(("maths", 1)), *_EACH_ITS_OWN], [_to(("files", 1)), *_EACH_ITS_OWN]],
        ["add", "sub"],
    )
    assert set(arrived) == {("maths", "add"), ("files", "sub")}


def test_of_weighted_backends_each_is_decided_by_its_own_policies(changing: AgentBench) -> None:
    arrived = _hammer(
        changing,
        [[_to(("maths", 1), ("files", 1)), *_EACH_ITS_OWN], [_to(("files", 3), ("maths", 1)), *_EACH_ITS_OWN]],
        ["add", "sub"],
    )
    assert set(arrived) == {("maths", "add"), ("files", "sub")}


def test_rules_about_tools_hold_from_the_moment_that_they_come(changing: AgentBench) -> None:
    """Before the rules, the gateway did not read messages, and denied the caller."""
    arrived = _hammer(
        changing, [[_to(("maths", 1)), *_OTHER_CALLER_ONLY], [_to(("maths", 1)), *_ALL_BUT_RM]], ["rm", "add"]
    )
    assert set(arrived) == {("maths", "add")}
