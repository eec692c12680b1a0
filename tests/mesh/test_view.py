"""What a person sees on a terminal."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from eastgate.authority import load
from eastgate.diagnostics import Code, Diagnostic
from eastgate.mesh.events import Broken, Changes, Decided, Enforced, Event, Noted, NotEnforced, PartlyEnforced
from eastgate.mesh.mesh import LocalMesh, MeshOptions
from eastgate.mesh.records import observe
from eastgate.mesh.telling import Teller
from eastgate.mesh.view import LiveView
from tests.mesh.running import SHOP

AUTHORITY = load(SHOP)
LOG = Path(__file__).with_name("shop.log")
BROKEN = Broken((Diagnostic(Code("EG0000", "", ""), "`x` is wrong", None, "write `y`"),))


def shown(*events: Event, verbose: bool = False, height: int = 40) -> str:
    """The screen after these events."""
    mesh = SimpleNamespace(
        sites=dict.fromkeys("abc"),
        authority=AUTHORITY,
        options=MeshOptions(name="shop"),
    )
    console = Console(file=io.StringIO(), width=150, height=height, force_terminal=True, no_color=True)

    async def follow() -> None:
        view = LiveView(cast(LocalMesh, mesh), Teller(lambda: AUTHORITY), console, verbose=verbose)
        with view:
            for event in events:
                view.tell(event)

    asyncio.run(follow())
    return cast(io.StringIO, console.file).getvalue()


def decided() -> list[Event]:
    found = (observe(json.loads(line)) for line in LOG.read_text().splitlines())
    return [Decided(one) for one in found if one is not None]


def test_calls_are_listed_and_counted() -> None:
    text = shown(*decided())
    assert "3 workloads, 9 policies, revision 0" in text
    assert "3 allowed" in text
    assert "6 denied" in text
    assert "DELETE /v1/charges/7" in text
    assert "shop/cart-from-web rule 0" in text
    assert "policies.yaml:11" in text


def test_the_latest_calls_stay_in_sight() -> None:
    text = shown(*decided(), height=10)
    last = text.rpartition("revision 0")[2]
    assert "/v1%2fcharges" in last
    assert "DELETE" not in last
    assert "3 allowed" in last


@pytest.mark.parametrize(
    ("events", "header"),
    [
        ([], "nothing has changed yet"),
        ([Enforced(21.6, ())], "enforced in 22 ms"),
        ([BROKEN], "broken: kept the last good policy"),
        ([BROKEN, Enforced(21.6, ())], "enforced in 22 ms"),
        ([PartlyEnforced(1, (), Changes(), ("a port 80", "b port 80"), ())], "PARTLY enforced: 2 ports are closed"),
        ([PartlyEnforced(1, (), Changes(), (), ("a",))], "PARTLY enforced: a proxy has not accepted all of it"),
        ([NotEnforced("a", 80, ("p",), "no")], "not enforced at a port 80"),
    ],
)
def test_the_last_change_is_in_the_header(events: list[Event], header: str) -> None:
    last = shown(*events).rpartition("policies, revision")[2]
    assert header in last.replace("\x1b[0m", "").replace("\x1b[1m", "")


def test_what_is_wrong_is_printed_in_full() -> None:
    text = shown(BROKEN, NotEnforced("shop/cart", 80, ("p",), "Envoy says no"), Noted("it crashed", trouble=True))
    assert "`x` is wrong" in text
    assert "help: write `y`" in text
    assert "NOT ENFORCED: Envoy says no" in text
    assert "it crashed" in text


def test_the_envoys_own_lines_are_for_who_wants_them() -> None:
    assert "hello" not in shown(Noted("envoy of a: hello"))
    assert "hello" in shown(Noted("envoy of a: hello"), verbose=True)
