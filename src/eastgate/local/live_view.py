"""The live display of a mesh on a terminal: its state and the latest calls, with errors printed above them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import PurePath
from types import TracebackType

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from eastgate.authority.auditing import Would
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.control.access_log import Observation, Repeats, would_be
from eastgate.control.capturing import PortMode
from eastgate.control.deciders import DecidedBy
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
from eastgate.local.event_text import EventText, describe_call, describe_size, format_milliseconds
from eastgate.local.machine.rundir import DEFAULT_NAME
from eastgate.local.mesh import LocalMesh

_MAX_ROWS = 200  # rows
_FRAME_LINES = 4  # lines of header, titles and footer, and one for the cursor
_REFRESH_SECONDS = 0.1  # between two redraws
_MAX_NAME_WIDTH = 26  # maximal width of callers and workloads
_MIN_REQUEST_WIDTH = 22  # minimal width of the last request
_MIN_DECIDER_WIDTH = 30  # minimal width of its decider; without room, only `why` shows it
_GAP = 2


@dataclass(slots=True)
class _Edge:
    """The calls of one caller to one port."""

    number: int
    observation: Observation
    decider: DecidedBy
    allowed: int = 0
    denied: int = 0


class LiveView:
    """A display that follows the events. Important lines are printed above it, so that they stay visible."""

    def __init__(self, mesh: LocalMesh, event_text: EventText, console: Console, *, verbose: bool = False) -> None:
        self._mesh = mesh
        self._event_text = event_text
        self._console = console
        self._verbose = verbose
        self._repeats = Repeats()
        self._edges: dict[tuple[str, str], _Edge] = {}
        self._allowed = self._denied = self._audited = 0
        self._changes = 0
        self._last_call = Text("nothing has changed yet", style="dim")
        self._soon: asyncio.TimerHandle | None = None
        self._live = Live(self, console=console, auto_refresh=False)  # the display belongs to the event loop

    def __enter__(self) -> LiveView:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._soon is not None:
            self._soon.cancel()
        self._live.stop()

    def show(self, event: MeshEvent) -> None:
        color = not self._console.no_color
        match event:
            case Decided(observation, number):
                if not self._repeats.is_repeat(observation):
                    self._count(observation, number)
            case Enforced(took):
                self._changes += 1
                self._last_call = Text(f"enforced in {format_milliseconds(took)}", style="green")
                opened = any(now is PortMode.OPEN for _, now in event.modes.values())
                self._print(Text(self._event_text.line(event), style="yellow" if opened else "dim"))
            case Ready():
                self._print(Text(self._event_text.line(event), style="dim"))
            case PartlyEnforced(closed=closed):
                self._changes += 1
                lacking = f"{len(closed)} ports are closed" if closed else "a proxy has not accepted all of it"
                self._last_call = Text(f"PARTLY enforced: {lacking}", style="bold red")
                self._print(Text(self._event_text.line(event), style="bold red"))
            case BrokenChange():
                self._last_call = Text("broken: kept the last good policy", style="bold red")
                self._print(Text.from_ansi(self._event_text.line(event, color=color)), fold=False)
            case NotEnforced():
                where = f"{event.workload} port {event.port}"
                self._last_call = Text(printable(f"not enforced at {where}"), style="bold red")
                self._print(Text(self._event_text.line(event), style="bold red"))
            case Noted(_, trouble) if trouble or self._verbose:
                self._print(Text(self._event_text.line(event), style="yellow" if trouble else "dim"))
            case _:
                pass
        if self._soon is None:  # many events, one redraw
            self._soon = asyncio.get_running_loop().call_later(_REFRESH_SECONDS, self._refresh)

    def _refresh(self) -> None:
        self._soon = None
        self._live.refresh()

    def _print(self, text: Text, *, fold: bool = True) -> None:
        self._console.print(text, soft_wrap=not fold, highlight=False)

    def _count(self, observation: Observation, number: int) -> None:
        """Add a decision to its row. If there are too many rows, remove those without calls for longest."""
        key = (self._event_text.find_caller(observation), f"{observation.workload}:{observation.port}")
        edge = self._edges.get(key)
        if edge is None:
            if len(self._edges) >= _MAX_ROWS:
                del self._edges[min(self._edges, key=lambda row: self._edges[row].number)]
            edge = self._edges[key] = _Edge(number, observation, self._event_text.find_decider(observation))
        edge.number, edge.observation, edge.decider = number, observation, self._event_text.find_decider(observation)
        edge.allowed += observation.allowed
        edge.denied += not observation.allowed
        self._allowed += observation.allowed
        self._denied += not observation.allowed
        self._audited += any(each.changes and each.verdict is Would.DENY for each in would_be(observation))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.height
        yield Group(self._header(), self._table(max(1, height - _FRAME_LINES), options.max_width), self._footer())

    def _header(self) -> Text:
        mesh = self._mesh
        size = describe_size(len(mesh.sites), len(mesh.gateways), len(mesh.authority.policies))
        rest = f"  {size}, revision {self._changes}  "
        return Text.assemble((mesh.options.name, "bold"), rest, self._last_call, no_wrap=True, overflow="ellipsis")

    def _table(self, rows: int, width: int) -> Table | Text:
        """Return the rows with the latest calls, in the order of their first call."""
        if not self._edges:
            return Text("no calls yet", style="dim")
        latest = sorted(self._edges.items(), key=lambda row: row[1].number)[-rows:]
        shown = {key for key, _ in latest}
        edges = [(key, edge) for key, edge in self._edges.items() if key in shown]
        numbers = max(1, *(len(str(edge.number)) for _, edge in edges))
        callers = [caller.removeprefix("sa:") for (caller, _), _ in edges]
        lasts = [_last_call(edge.observation) for _, edge in edges]
        widths = _widths(width - numbers - len("allowdeny") - 3 * _GAP, callers, [to for (_, to), _ in edges], lasts)
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
        for title, justify, size in (
            ("#", "right", numbers),
            ("from", "left", widths[0]),
            ("to", "left", widths[1]),
            ("allow", "right", len("allow")),
            ("deny", "right", len("deny")),
            ("last", "left", widths[2]),
            ("decided by", "left", widths[3]),
        ):
            if size:
                table.add_column(title, justify=justify, width=size, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
        for caller, last, ((_, to), edge) in zip(callers, lasts, edges, strict=True):
            cells = [
                Text(str(edge.number), style="dim"),
                _cell(caller),
                _cell(to),
                Text(str(edge.allowed) if edge.allowed else "", style="green"),
                Text(str(edge.denied) if edge.denied else "", style="bold red"),
                Text(last, style="green" if edge.observation.allowed else "red"),
            ]
            table.add_row(*cells, *([_decided_by(edge.decider)] if widths[3] else []))
        return table

    def _footer(self) -> Text:
        return Text.assemble(
            (f"{self._allowed} allowed", "green"),
            "  ",
            (f"{self._denied} denied", "red"),
            (f"  {self._audited} would be denied (audit)" if self._audited else "", "yellow"),
            (f"  {self._why_hint()}  Ctrl-C stops", "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )

    def _why_hint(self) -> str:
        name = self._mesh.options.name
        number = max((edge.number for edge in self._edges.values()), default="N")
        mesh = "" if name == DEFAULT_NAME else f" --name {name}"
        return f"eastgate why{mesh} {number} explains #{number}"


def _widths(
    width: int, callers: Sequence[str], workloads: Sequence[str], lasts: Sequence[str]
) -> tuple[int, int, int, int]:
    """Return the widths of caller, workload, last request and decider, for their joint width; 0 leaves one out."""
    names = [max(map(len, column)) for column in (callers, workloads)]
    is_tight = sum(names) + _MIN_REQUEST_WIDTH + 2 * _GAP > width
    wanted = [min(longest, _MAX_NAME_WIDTH) if is_tight else longest for longest in names]
    least = max(0, width - _MIN_REQUEST_WIDTH - 2 * _GAP)
    if sum(wanted) > least:  # each gets at most its share, and the rest of the other
        half = least // 2
        first = min(wanted[0], max(half, least - wanted[1]))
        wanted = [max(8, first), max(8, min(wanted[1], least - first))]
    left = max(8, width - sum(wanted) - 2 * _GAP)
    if left < _MIN_REQUEST_WIDTH + _GAP + _MIN_DECIDER_WIDTH:
        return wanted[0], wanted[1], left, 0
    last = max(_MIN_REQUEST_WIDTH, min(max(map(len, lasts)), left - _GAP - _MIN_DECIDER_WIDTH))
    return wanted[0], wanted[1], last, left - _GAP - last


def _last_call(observation: Observation) -> str:
    """Describe the last call and its result."""
    denied = any(each.changes and each.verdict is Would.DENY for each in would_be(observation))
    audit = ", audit: would deny" if denied else ""
    if observation.level == "request":
        return printable(f"{observation.status} {describe_call(observation)}{audit}")
    if observation.level == "handshake":
        return "handshake failed"
    return f"let in{audit}" if observation.allowed else "closed"


def _decided_by(decider: DecidedBy) -> Text:
    by = decider.text.partition("/")[2] if decider.policy else decider.text
    position = f"  {PurePath(decider.file).name}:{decider.line}" if decider.file else ""
    return Text.assemble(printable(by), (printable(position), "dim"))


def _cell(value: str) -> Text:
    """Return a value as literal text: rich would interpret markup and escape sequences in a plain string."""
    return Text(printable(value))


def workload_table(rows: list[tuple[str, str, str, str, str]], width: int) -> Table:
    """Return a table of the workloads. Identities are shown only if there is room."""
    titles = ("workload", "address", "application", "identity", "policies")
    widths = [max(len(title), *(len(row[at]) for row in rows)) if rows else 0 for at, title in enumerate(titles)]
    narrow = sum(widths) + _GAP * (len(titles) - 1) > width
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for title in titles:
        if title != "identity" or not narrow:
            table.add_column(title, overflow="fold", justify="right" if title == "policies" else "left")
    for row in rows:
        table.add_row(
            *(_cell(value) for title, value in zip(titles, row, strict=True) if title != "identity" or not narrow)
        )
    return table
