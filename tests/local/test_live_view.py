"""The display on a terminal."""

from __future__ import annotations

import asyncio
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from eastgate import load
from eastgate.authority.changes import ChangedNames
from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.control.access_log import read_record
from eastgate.control.events import (
    BrokenChange,
    Decided,
    Enforced,
    MeshEvent,
    Noted,
    NotEnforced,
    PartlyEnforced,
    Ready,
)
from eastgate.local.event_text import EventText
from eastgate.local.live_view import LiveView
from eastgate.local.mesh import LocalMesh, MeshOptions
from tests.local.running import SHOP

AUTHORITY = load(SHOP)
LOG = Path(__file__).with_name("shop.log")
BROKEN = BrokenChange((Diagnostic(Code("EG0000", "", ""), "`x` is wrong", None, "write `y`"),))


def shown(*events: MeshEvent, verbose: bool = False, height: int = 40, width: int = 150) -> str:
    """The screen after these events."""
    mesh = SimpleNamespace(
        sites=dict.fromkeys("abc"),
        gateways={},
        authority=AUTHORITY,
        options=MeshOptions(name="shop"),
    )
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, no_color=True)

    async def follow() -> None:
        view = LiveView(cast(LocalMesh, mesh), EventText(lambda: AUTHORITY), console, verbose=verbose)
        with view:
            for event in events:
                view.show(event)

    asyncio.run(follow())
    return cast(io.StringIO, console.file).getvalue()


def decided() -> list[MeshEvent]:
    found = (read_record(json.loads(line)) for line in LOG.read_text().splitlines())
    return [Decided(one, number) for number, one in enumerate((one for one in found if one is not None), 1)]


def picture(text: str) -> list[str]:
    """The lines of the last redraw, without styles."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.rpartition("workloads, ")[2]).splitlines()


def test_calls_are_counted_by_edge() -> None:
    text = shown(*decided())
    assert "3 workloads, 9 policies, revision 0" in text
    _, titles, *rows, footer = picture(text)
    assert titles.split() == ["#", "from", "to", "allow", "deny", "last", "decided", "by"]
    edges = [tuple(row.split()[1:3]) for row in rows]
    assert len(edges) == len(set(edges)) == 7
    [payments] = [row for row in rows if "shop/payments:8443" in row and " shop/cart " in row]
    assert payments.split()[3:5] == ["1", "2"]
    assert "400 POST /v1%2fcharges" in payments
    [cart] = [row for row in rows if "shop/web " in row and "shop/cart:8080" in row]
    assert "let in" in cart
    assert "shop/cart-from-web rule 0  policies.yaml:11" in cart
    assert footer.startswith("3 allowed  6 denied  eastgate why --name shop ")


@pytest.mark.parametrize("width", [60, 80, 100, 150, 250])
def test_every_row_fits_the_terminal_and_has_a_number_for_why(width: int) -> None:
    _, _, *rows, footer = picture(shown(*decided(), width=width))
    assert all(len(row) <= width for row in [*rows, footer])
    numbers = [int(row.split()[0]) for row in rows]
    assert len(set(numbers)) == 7
    assert f"eastgate why --name shop {max(numbers)} explains" in footer
    if width >= 80:
        assert any("shop/cart    shop/payments:8443      1     2  400 POST /v1%2fcharges" in row for row in rows)


def test_the_latest_calls_stay_in_sight_in_their_order() -> None:
    many = [replace(one.observation, port=port) for one in decided() for port in (1, 2, 3) if isinstance(one, Decided)]
    events = [Decided(seen, number) for number, seen in enumerate(many, 1)]
    _, _, *rows, footer = picture(shown(*events, height=10))
    assert len(rows) == 6
    numbers = [int(row.split()[0]) for row in rows]
    assert max(numbers) == len(events)
    assert "15 allowed  18 denied" in footer


def test_it_begins_with_one_picture_below_what_is_printed() -> None:
    erased = "\r\x1b[2K" + "\x1b[1A\x1b[2K" * 2
    assert f"{erased}\x1b[2mready: 5 workloads, 9 policies, in 363 ms\x1b[0m\n" in shown(Ready(5, 9, 363.0))


@pytest.mark.parametrize(
    ("events", "header"),
    [
        ([], "nothing has changed yet"),
        ([Enforced(21.6, ())], "enforced in 22 ms"),
        ([BROKEN], "broken: kept the last good policy"),
        ([BROKEN, Enforced(21.6, ())], "enforced in 22 ms"),
        (
            [PartlyEnforced(1, (), ChangedNames(), ("a port 80", "b port 80"), ())],
            "PARTLY enforced: 2 ports are closed",
        ),
        ([PartlyEnforced(1, (), ChangedNames(), (), ("a",))], "PARTLY enforced: a proxy has not accepted all of it"),
        ([NotEnforced("a", 80, ("p",), "no")], "not enforced at a port 80"),
    ],
)
def test_the_last_change_is_in_the_header(events: list[MeshEvent], header: str) -> None:
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
