"""What a person sees of a mesh on a terminal: its state, the latest calls, and what went wrong above them."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import PurePath
from types import TracebackType

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eastgate.mesh.deciders import Decider
from eastgate.mesh.events import Broken, Decided, Enforced, Event, Noted, NotEnforced, PartlyEnforced
from eastgate.mesh.mesh import LocalMesh
from eastgate.mesh.records import Observed
from eastgate.mesh.telling import Repeats, Teller, described, milliseconds
from eastgate.printable import printable

__all__ = ["LiveView", "workload_table"]

_KEPT = 200
_AROUND = 7  # lines of header, titles and footer
_PAUSE = 0.1  # seconds between pictures


class LiveView:
    """A display that follows the events. What must not scroll out of sight unread is printed above it."""

    def __init__(self, mesh: LocalMesh, teller: Teller, console: Console, *, verbose: bool = False) -> None:
        self._mesh = mesh
        self._teller = teller
        self._console = console
        self._verbose = verbose
        self._repeats = Repeats()
        self._calls: deque[tuple[Observed, Decider]] = deque(maxlen=_KEPT)
        self._allowed = self._denied = 0
        self._changes = 0
        self._last = Text("nothing has changed yet", style="dim")
        self._soon: asyncio.TimerHandle | None = None
        self._live = Live(self, console=console, auto_refresh=False)  # what it shows belongs to the event loop

    def __enter__(self) -> LiveView:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._soon is not None:
            self._soon.cancel()
        self._live.stop()

    def tell(self, event: Event) -> None:
        """Show it."""
        color = not self._console.no_color
        match event:
            case Decided(seen):
                if not self._repeats.is_one(seen):
                    self._calls.append((seen, self._teller.decider(seen)))
                    self._allowed += seen.allowed
                    self._denied += not seen.allowed
            case Enforced(took):
                self._changes += 1
                self._last = Text(f"enforced in {milliseconds(took)}", style="green")
                self._print(Text(self._teller.line(event), style="dim"))
            case PartlyEnforced(closed=closed):
                self._changes += 1
                lacking = f"{len(closed)} ports are closed" if closed else "a proxy has not accepted all of it"
                self._last = Text(f"PARTLY enforced: {lacking}", style="bold red")
                self._print(Text(self._teller.line(event), style="bold red"))
            case Broken():
                self._last = Text("broken: kept the last good policy", style="bold red")
                self._print(Text.from_ansi(self._teller.line(event, color=color)))
            case NotEnforced():
                where = f"{event.workload} port {event.port}"
                self._last = Text(printable(f"not enforced at {where}"), style="bold red")
                self._print(Text(self._teller.line(event), style="bold red"))
            case Noted(_, trouble) if trouble or self._verbose:
                self._print(Text(self._teller.line(event), style="yellow" if trouble else "dim"))
            case _:
                pass
        if self._soon is None:  # many events, one new picture
            self._soon = asyncio.get_running_loop().call_later(_PAUSE, self._refresh)

    def _refresh(self) -> None:
        self._soon = None
        self._live.refresh()

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.height
        yield Group(self._header(), self._table(max(1, height - _AROUND)), self._footer())

    def _header(self) -> Text:
        mesh = self._mesh
        rest = f"  {len(mesh.sites)} workloads, {len(mesh.authority.policies)} policies, revision {self._changes}  "
        return Text.assemble((mesh.options.name, "bold"), rest, self._last, no_wrap=True, overflow="ellipsis")

    def _table(self, rows: int) -> Table:
        table = Table(box=None, pad_edge=False, expand=True)
        table.add_column("time", no_wrap=True, style="dim")
        table.add_column("from", no_wrap=True, ratio=2, overflow="ellipsis")
        table.add_column("to", no_wrap=True, ratio=2, overflow="ellipsis")
        table.add_column("request", no_wrap=True, ratio=2, overflow="ellipsis")
        table.add_column("verdict", no_wrap=True)
        table.add_column("status", no_wrap=True, justify="right")
        table.add_column("decided by", no_wrap=True, ratio=5, overflow="ellipsis")
        for seen, decider in list(self._calls)[-rows:]:
            by = decider.text.partition("/")[2] if decider.policy else decider.text
            place = f"  {PurePath(decider.file).name}:{decider.line}" if decider.file else ""
            verdict = Text("allow", style="green") if seen.allowed else Text("deny", style="bold red")
            table.add_row(
                _cell(seen.time[11:19]),
                _cell(self._teller.caller(seen)),
                _cell(f"{seen.workload}:{seen.port}"),
                _cell(described(seen)),
                verdict,
                str(seen.status) if seen.status else "",
                Text.assemble(printable(by), (printable(place), "dim")),
            )
        return table

    def _footer(self) -> Text:
        return Text.assemble(
            (f"{self._allowed} allowed", "green"), "  ", (f"{self._denied} denied", "red"), ("  Ctrl-C stops", "dim")
        )


def _cell(value: str) -> Text:
    """A value as it is: rich reads markup in a plain string, and lets escape sequences through."""
    return Text(printable(value))


def workload_table(rows: list[tuple[str, str, str, str, str]]) -> Table:
    """Who is there: key, addresses, application, identity, number of policies."""
    table = Table(box=None, pad_edge=False)
    for title in ("workload", "address", "application", "identity", "policies"):
        table.add_column(title, overflow="fold", justify="right" if title == "policies" else "left")
    for row in rows:
        table.add_row(*map(_cell, row))
    return table
