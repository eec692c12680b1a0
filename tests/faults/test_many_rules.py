"""A proxy accepts any number of rules on a port, and decides by all of them."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network

import pytest

from eastgate.control import planning
from eastgate.control.events import NotEnforced
from eastgate.envoy.plan import plan_port
from eastgate.ir import (
    AllowAny,
    And,
    Chain,
    Computed,
    InNetwork,
    Is,
    Layer,
    Not,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Prefix,
    Refusal,
    Rule,
    SelectorCase,
    Site,
)
from eastgate.ir.attributes import ADDRESS, HOST, IDENTITY, METHOD, PATH, header, query
from eastgate.local.machine.connection import HttpRequest
from tests.faults.linkerd import from_networks, header_routes, server
from tests.faults.meshes import Running, running
from tests.faults.worlds import allow, deny, sa, world
from tests.local.machine.calling import call
from tests.patience import PATIENCE

_HERE = "127.0.0.0/8"
_MANY = 10_000
_MANY_PER_KIND = 1_112  # of nine kinds


def _networks(number: int) -> list[str]:
    return [f"10.{one >> 8 & 255}.{one & 255}.0/24" for one in range(number)]


async def _status(mesh: Running, request: HttpRequest | bytes | None = None, source: str = "127.0.0.2") -> int:
    """Return the status for an anonymous caller with another address than the workload's."""
    asked = HttpRequest() if request is None else request
    return (await call(mesh.target(), source_address=source, request=asked, timeout=PATIENCE, enough=1)).status


@pytest.mark.parametrize(("protocol", "number"), [("unknown", 30), ("opaque", 80), ("unknown", 300), ("opaque", 300)])
async def test_networks(protocol: str, number: int) -> None:
    base = [*world(), server(protocol)]
    async with running(*base, *from_networks(*_networks(number), _HERE)) as mesh:
        assert await _status(mesh) == 200
        assert await _status(mesh, b"\0") != 0
        await mesh.change(*base, *from_networks(*_networks(number)))
        assert await _status(mesh) in (0, 403)
        assert await _status(mesh, b"\0") == 0
        assert not mesh.events_of(NotEnforced)


@pytest.mark.parametrize("number", [10, 300])
async def test_header_matches_with_a_catch_all(number: int) -> None:
    values = [f"team{one}" for one in range(number)]
    last = {"group": "policy.linkerd.io", "kind": "HTTPRoute", "name": f"r{(number - 1) // 8 * 8}"}
    base = [*world(), server("HTTP/1"), *header_routes(*values), *from_networks(_HERE, target=last)]
    async with running(*base) as mesh:
        assert await _status(mesh, _with(values[-1])) == 200
        assert await _status(mesh, _with(values[0])) == 403
        assert not mesh.events_of(NotEnforced)


def _with(team: str) -> HttpRequest:
    return HttpRequest(headers=(("host", "a"), ("x-team", team)))


async def test_a_denial_beside_many_paths_and_accounts() -> None:
    many = [allow(f"a{number}", "alice", paths=[f"/p{number}/*"]) for number in range(300)]
    others = [allow("all", *(f"s{number}" for number in range(300)), "alice")]
    async with running(*world(), *many, *others) as mesh:
        assert (await mesh.get("alice", "/p299/x"), await mesh.get("alice", "/p7/x")) == (200, 200)
        await mesh.change(*world(), *many, *others, deny("no", "alice", paths=["/p7/*"]))
        assert (await mesh.get("alice", "/p299/x"), await mesh.get("alice", "/p7/x")) == (200, 403)
        assert not mesh.events_of(NotEnforced)


# Ten thousand rules of all kinds, directly in the IR: reading as many manifests is not tested here


def _network(number: int, last: int, length: int = 32) -> InNetwork:
    return InNetwork((ip_network(f"127.{100 + (number >> 8)}.{number & 255}.{last}/{length}"),))


def _pattern(number: int) -> Predicate:
    written = f"/pattern{number}/[a-z]+"
    return Computed(written, frozenset({PATH}), lambda _: False, pattern=(PATH, written))


_KINDS: dict[str, Callable[[int], Predicate]] = {
    "network": lambda number: Is(ADDRESS, _network(number, 1)),
    "exception": lambda number: And((Is(ADDRESS, _network(number, 0, 24)), Not(Is(ADDRESS, _network(number, 9))))),
    "header": lambda number: Is(header("x-team"), OneOf(frozenset({f"v{number}"}))),
    "query": lambda number: Is(query("team"), OneOf(frozenset({f"v{number}"}))),
    "path": lambda number: Is(PATH, OneOf(frozenset({f"/path{number}/x"}))),
    "prefix": lambda number: Is(PATH, Prefix(f"/prefix{number}/")),
    "pattern": _pattern,
    "method": lambda number: Is(METHOD, OneOf(frozenset({"PATCH" if number == _MANY_PER_KIND - 1 else f"M{number}"}))),
    "host": lambda number: Is(HOST, OneOf(frozenset({f"host{number}.example"}))),
}


async def _statuses(mesh: Running, number: int) -> dict[str, int]:
    """Return the status of a call for each kind of rule. The call matches only the rule with this number."""
    host = ("host", "a")
    at = f"127.{100 + (number >> 8)}.{number & 255}"
    return {
        "network": await _status(mesh, source=f"{at}.1"),
        "exception": await _status(mesh, source=f"{at}.8"),
        "header": await _status(mesh, HttpRequest(headers=(host, ("x-team", f"v{number}")))),
        "query": await _status(mesh, HttpRequest(path=f"/?team=v{number}")),
        "path": await _status(mesh, HttpRequest(path=f"/path{number}/x")),
        "prefix": await _status(mesh, HttpRequest(path=f"/prefix{number}/x")),
        "pattern": await _status(mesh, HttpRequest(path=f"/pattern{number}/x")),
        "method": await _status(mesh, HttpRequest("PATCH" if number == _MANY_PER_KIND - 1 else "PUT")),
        "host": await _status(mesh, HttpRequest(headers=(("host", f"host{number}.example"),))),
    }


def _layer(rules: tuple[Rule, ...], shape: str) -> Layer:
    """Return a layer with all rules in one stage, or each behind its own case, like routes."""
    if shape == "rules":
        return Layer(Placement(Site.WORKLOAD, "application"), Chain((AllowAny("allow", rules, Refusal.FORBIDDEN),)))
    nothing = Chain((AllowAny("none", (), Refusal.NOT_FOUND),))
    here = Rule(Is(ADDRESS, InNetwork((ip_network(_HERE),))), Origin(PolicyRef("Kind", "n", "here"), 0))
    chain = Chain((AllowAny("allow", (here,), Refusal.FORBIDDEN),))
    return Layer(Placement(Site.WORKLOAD, "inbound"), nothing, tuple(SelectorCase(rule.when, chain) for rule in rules))


def _enforce(monkeypatch: pytest.MonkeyPatch, tests: list[Predicate], shape: str) -> None:
    """Enforce these rules instead of the policies in the manifests."""
    assert len(tests) >= _MANY
    rules = [Rule(when, Origin(PolicyRef("Kind", "n", f"p{place}"), 0)) for place, when in enumerate(tests)]
    layer = _layer(tuple(rules), shape)
    monkeypatch.setattr(
        planning, "plan_port", lambda _, port, settings, known: plan_port([layer], port, settings, known)
    )


@pytest.mark.parametrize(("shape", "refused"), [("rules", 403), ("cases", 404)])
async def test_ten_thousand(shape: str, refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _enforce(monkeypatch, [kind(number) for number in range(_MANY_PER_KIND) for kind in _KINDS.values()], shape)
    async with running(*world()) as mesh:
        assert not mesh.events_of(NotEnforced)
        assert await _statuses(mesh, _MANY_PER_KIND - 1) == dict.fromkeys(_KINDS, 200)
        assert await _statuses(mesh, _MANY_PER_KIND) == dict.fromkeys(_KINDS, refused)
        assert await _status(mesh, b"\0") == 0


async def test_ten_thousand_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    _enforce(monkeypatch, [Is(IDENTITY, OneOf(frozenset({sa(f"v{number}")}))) for number in range(_MANY)], "rules")
    async with running(*world()) as mesh:
        assert not mesh.events_of(NotEnforced)
        assert (await mesh.call(f"v{_MANY - 1}", timeout=PATIENCE)).status == 200
        assert (await mesh.call(f"v{_MANY}", timeout=PATIENCE)).status == 403
