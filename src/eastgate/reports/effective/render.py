"""The effective table as text and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from textwrap import wrap

from eastgate.api.decisions import DEAD_ENDS
from eastgate.api.trace_json import origin_to_json
from eastgate.diagnostics.spans import Span
from eastgate.ir import ALWAYS, Origin
from eastgate.reach.callers import CallerEntry
from eastgate.reach.endings import Branch
from eastgate.reach.table import Cell, EffectiveDestination, EffectiveTable, Row
from eastgate.reports.columns import Line, Lines, columns
from eastgate.reports.effective.words import callers_text, condition_text, messages_text, ports_text

__all__ = ["by_text", "destination_text", "span_text", "table_text", "table_to_json"]

_MOST_CALLERS = 6  # in one row
_MOST_ROWS = 40
_MOST_CONDITIONS = 12  # in one row
_WIDTH = 60  # of a verdict with its conditions
_MESSAGES = 36  # of the messages of a row


def table_text(table: EffectiveTable, *, title: str = "PORT", whole: bool = False) -> list[Line]:
    """Render the table, bounded to what a person reads; `whole`: all of it."""
    most = len(table.rows) if whole else _MOST_ROWS
    headers = ["FROM", title, "MESSAGE", "VERDICT", "BY"]
    alike = groupby(table.rows[:most], key=lambda row: row.callers)
    body = [_block(list(rows), table, whole=whole) for _, rows in alike]
    drop = set() if len(table.messages) > 1 else {2}
    if not any(destination_text(row.destinations, table) for row in table.rows):
        drop.add(1)
    kept = [column for column in range(len(headers)) if column not in drop]
    lines = columns([headers[p] for p in kept], [[row[p] for p in kept] for row in body])
    if len(table.rows) > most:
        lines.append(f"... and {len(table.rows) - most} more")
    return lines


def _block(rows: list[Row], table: EffectiveTable, *, whole: bool) -> list[Lines]:
    """Render the rows of the same callers, who are shown once."""
    block: list[Lines] = [_bounded(callers_text(rows[0].callers, table.callers), whole=whole, most=_MOST_CALLERS)]
    block += [[], [], [], []]
    before = None
    levels = (
        len(
            {layer.name for destination in table.destinations for point in destination.points for layer in point.layers}
        )
        > 1
    )
    for row in rows:
        to = destination_text(row.destinations, table)
        message_lines = _wrapped(messages_text(row.messages, alone=len(row.messages) == len(table.messages)), _MESSAGES)
        cells = [[to if to != before else ""], message_lines, *_outcomes(row.cell, whole=whole, levels=levels)]
        height = max(len(cell) for cell in cells)
        for column, cell in zip(block[1:], cells, strict=True):
            column += [*cell, *[""] * (height - len(cell))]
        before = to
    return block


def _bounded(entries: list[str], *, whole: bool, most: int) -> list[str]:
    return entries if whole or len(entries) <= most else [*entries[:most], f"... and {len(entries) - most} more"]


def destination_text(destinations: Sequence[EffectiveDestination], table: EffectiveTable) -> str:
    """Describe the destinations of one row in a few words."""
    names = [destination.name for destination in destinations if destination.name]
    if names:
        return ", ".join(names)
    ports = [port for destination in destinations for port in destination.ports]
    others = any(destination.others for destination in destinations)
    if not ports and not others:
        return ""
    return ports_text(ports, others=others, alone=len(destinations) == len(table.destinations))


def _outcomes(cell: Cell, *, whole: bool, levels: bool) -> tuple[Lines, Lines]:
    """Return the verdicts of a row, and beside each the rule that gives it. Equal ones are shown once."""
    if cell.too_many:
        return ["depends"], ["more conditions than can be listed: ask `eastgate check`"]
    by: Lines = []
    verdicts: Lines = []
    if cell.verdict != "if":
        verdicts.append(cell.verdict)
        origins = list(dict.fromkeys(by_text(branch, levels=levels) for branch in cell.branches))
        by += _bounded(origins, whole=whole, most=3)
    else:
        _conditions(cell, verdicts, by, whole=whole, levels=levels)
    if cell.refusing:
        by += [""] * (len(verdicts) - len(by))
        by.append(f"refused at {', '.join(_bounded(list(cell.refusing), whole=whole, most=_MOST_CALLERS))}")
    return verdicts, by


def _conditions(cell: Cell, verdicts: Lines, by: Lines, *, whole: bool, levels: bool) -> None:
    shown = list(cell.branches)
    if len(shown) > _MOST_CONDITIONS and not whole:
        shown = [*shown[: _MOST_CONDITIONS - 1], shown[-1]]
    for index, branch in enumerate(shown):
        if index == len(shown) - 1 and len(shown) < len(cell.branches):
            verdicts.append(f"... and {len(cell.branches) - len(shown)} more")
        by += [""] * (len(verdicts) - len(by))
        verdicts += _wrapped(_verdict(branch, first=index == 0), _WIDTH)
        by.append(by_text(branch, levels=levels))


def _wrapped(text: str, width: int) -> Lines:
    return wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _verdict(branch: Branch, *, first: bool) -> str:
    verdict = "allow" if branch.end.allowed else "deny"
    if branch.when == ALWAYS:
        return verdict if first else f"{verdict} otherwise"
    return f"{verdict} if {condition_text(branch.when)}"


def by_text(branch: Branch, *, levels: bool = False) -> str:
    """Describe the rule that decides and its span; `levels`: the layer, where no rule does."""
    if branch.end.origin is not None:
        line = span_text(branch.end.origin.span)
        return f"{branch.end.origin}  {line}" if line else str(branch.end.origin)
    if branch.end.allowed:
        return "nothing is in the way"
    level = f" at {branch.end.layer}" if levels and branch.end.layer else ""
    return DEAD_ENDS.get(branch.end.stage, f"no rule allows it{level}")


def span_text(span: Span | None) -> str:
    """Return file and line; nothing without a span."""
    return span.location if span is not None else ""


# Plain data


def table_to_json(table: EffectiveTable) -> list[dict[str, object]]:
    """Return every row, without bounds."""
    return [
        {
            "from": callers_text(row.callers, table.callers),
            "callers": [_caller(caller) for caller in row.callers],
            "to": destination_text(row.destinations, table),
            "ports": sorted(port for destination in row.destinations for port in destination.ports),
            "otherPorts": any(destination.others for destination in row.destinations),
            "messages": [str(message) for message in row.messages if not message.any],
            "verdict": row.cell.verdict,
            "branches": [_branch(branch) for branch in row.cell.branches],
            "refusedAt": list(row.cell.refusing),
        }
        for row in table.rows
    ]


def _caller(caller: CallerEntry) -> dict[str, object]:
    exact = caller.is_exact
    return {
        "kind": str(caller.kind),
        "name": caller.name or None,
        "identity": caller.identity if exact else None,
        "meshName": caller.mesh_name if exact else None,
    }


_NOBODY = Origin(None, 0)


def _branch(branch: Branch) -> dict[str, object]:
    return {
        "if": None if branch.when == ALWAYS else condition_text(branch.when),
        "verdict": "allow" if branch.end.allowed else "deny",
        **origin_to_json(branch.end.origin or _NOBODY),
        "layer": branch.end.layer,
        "stage": branch.end.stage,
        "status": branch.end.status,
        "by": by_text(branch),
    }
