"""The effective table as text and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from textwrap import wrap

from eastgate.authority.reasons import DEAD_ENDS
from eastgate.authority.trace_json import origin_to_json
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import World
from eastgate.ir import ALWAYS, Origin, Site, conjuncts
from eastgate.ir.symbolic.simplify import either
from eastgate.ir.symbolic.trees import Entry
from eastgate.reach.callers import CallerEntry
from eastgate.reach.endings import Branch, Ending
from eastgate.reach.network import ISOLATION
from eastgate.reach.table import Cell, EffectiveDestination, EffectiveTable, Row
from eastgate.reports.columns import Line, Lines, columns
from eastgate.reports.conditions import TWO_LINES, condition_text
from eastgate.reports.effective.pods import PodRow, pod_rows
from eastgate.reports.effective.words import callers_text, messages_text, ports_text

_MAX_CALLERS = 6  # in one row
_MAX_ROWS = 40
_MAX_CONDITIONS = 12  # in one row
_VERDICT_CHARS = 60  # width of a verdict with its conditions
_CALLERS_CHARS = 44  # width of the callers of a row, by pods
_MESSAGES_CHARS = 36  # width of the messages of a row


def table_text(
    table: EffectiveTable,
    *,
    title: str = "PORT",
    whole: bool = False,
    world: World | None = None,
    isolation: str | None = None,
) -> list[Line]:
    """Render the table, shortened for reading; `whole`: all of it.

    `world`: if only network policies decide, name callers by the pods of this world. `isolation` names the network
    policies that isolate the destination.
    """
    by_pod = pod_rows(table, world) if world is not None and not whole else None
    if by_pod is not None:
        return _by_pod(by_pod, table, title, _Reasons(levels=False, isolation=isolation))
    reasons = _Reasons(levels=_has_levels(table), isolation=None if whole else isolation)
    most = len(table.rows) if whole else _MAX_ROWS
    headers = ["FROM", title, "MESSAGE", "VERDICT", "BY"]
    denied = [] if whole or not _has_network(table) else [row for row in table.rows if _is_default(row.cell)]
    denied = denied if 1 < len(denied) < len(table.rows) else []
    listed = [row for row in table.rows if row not in denied]
    alike = groupby(listed[:most], key=lambda row: row.callers)
    body = _blocks([(callers, list(rows)) for callers, rows in alike], table, reasons, whole=whole)
    body += [_anything_else(denied, reasons)] if denied else []
    if not whole and _has_network(table):
        reasons.locate_once(row[-1] for row in body)
    drop = set() if len(table.messages) > 1 else {2}
    if not any(destination_text(row.destinations, table) for row in table.rows):
        drop.add(1)
    kept = [column for column in range(len(headers)) if column not in drop]
    lines = columns([headers[p] for p in kept], [[row[p] for p in kept] for row in body])
    if len(listed) > most:
        lines.append(f"... and {len(listed) - most} more")
    return lines


def _has_network(table: EffectiveTable) -> bool:
    layers = (layer for each in table.destinations for point in each.points for layer in point.layers)
    return any(layer.at.site is Site.NETWORK and any(layer.atoms(observed=False)) for layer in layers)


def _is_default(cell: Cell) -> bool:
    """Return whether all requests are denied, and no policy denies them."""
    origins = (branch.end.origin for branch in cell.branches)
    return cell.verdict == "deny" and all(origin is None or origin.policy is None for origin in origins)


def _anything_else(denied: Sequence[Row], reasons: _Reasons) -> list[Lines]:
    """Render all requests that no rule allows as one row."""
    by = list(dict.fromkeys(reasons.text(branch) for row in denied for branch in row.cell.branches))
    return [["anything else"], [], [], ["deny"], _bounded(by, whole=False, most=2)]


def _by_pod(rows: Sequence[PodRow], table: EffectiveTable, title: str, reasons: _Reasons) -> list[Line]:
    body: list[list[Lines]] = []
    for row in rows[:_MAX_ROWS]:
        verdict = "allow" if row.allowed else "deny"
        by = list(dict.fromkeys(map(reasons.text, row.branches)))
        body.append(
            [
                [
                    line
                    for text in _bounded(list(row.callers), whole=False, most=_MAX_CALLERS)
                    for line in _wrapped(text, _CALLERS_CHARS)
                ],
                [destination_text(row.destinations, table) if row.destinations else "any" if len(rows) == 1 else ""],
                _wrapped(f"{verdict} if {row.condition}" if row.condition else verdict, _VERDICT_CHARS),
                _bounded(by, whole=False, most=2),
            ]
        )
    lines = columns(["FROM", title, "VERDICT", "BY"], body)
    return lines if len(rows) <= _MAX_ROWS else [*lines, f"... and {len(rows) - _MAX_ROWS} more"]


def _blocks(
    groups: Sequence[tuple[Sequence[CallerEntry], list[Row]]], table: EffectiveTable, reasons: _Reasons, *, whole: bool
) -> list[list[Lines]]:
    """Render the rows of each group of callers. Groups with equal verdicts are merged, unless the table is `whole`."""
    blocks: dict[object, tuple[list[CallerEntry], list[Lines]]] = {}
    for number, (callers, rows) in enumerate(groups):
        block = _block(rows, table, reasons, whole=whole)
        key = number if whole else tuple(_exact_key(row, reasons) for row in rows)
        blocks.setdefault(key, ([], block))[0].extend(callers)
    body: list[list[Lines]] = []
    for callers, block in blocks.values():
        entries = sorted(callers, key=lambda entry: entry.order)
        texts = callers_text(entries, table.callers, by_namespace=not whole)
        body.append([_bounded(texts, whole=whole, most=_MAX_CALLERS), *block])
    return body


def _exact_key(row: Row, reasons: _Reasons) -> object:
    """Return a key that rows with equal verdicts and conditions share, whatever their callers."""
    branches = _merged(row.cell.branches, reasons)
    texts = [(each.end.allowed, condition_text(each.when, most=None), reasons.text(each)) for each in branches]
    to = tuple((each.name, each.ports, each.others) for each in row.destinations)
    return to, tuple(map(str, row.messages)), row.cell.too_many, row.cell.refusing, tuple(texts)


def _block(rows: list[Row], table: EffectiveTable, reasons: _Reasons, *, whole: bool) -> list[Lines]:
    """Render the rows of the same callers, without the callers."""
    block: list[Lines] = [[], [], [], []]
    before = None
    for row in rows:
        to = destination_text(row.destinations, table)
        message_lines = _wrapped(
            messages_text(row.messages, alone=len(row.messages) == len(table.messages)), _MESSAGES_CHARS
        )
        cells = [[to if to != before else ""], message_lines, *_outcomes(row.cell, reasons, whole=whole)]
        height = max(len(cell) for cell in cells)
        for column, cell in zip(block, cells, strict=True):
            column += [*cell, *[""] * (height - len(cell))]
        before = to
    return block


def _has_levels(table: EffectiveTable) -> bool:
    layers = (layer for each in table.destinations for point in each.points for layer in point.layers)
    return len({layer.name for layer in layers}) > 1


def _bounded(entries: list[str], *, whole: bool, most: int) -> list[str]:
    return entries if whole or len(entries) <= most else [*entries[:most], f"... and {len(entries) - most} more"]


def destination_text(destinations: Sequence[EffectiveDestination], table: EffectiveTable) -> str:
    """Return a short text for the destinations of one row."""
    names = [destination.name for destination in destinations if destination.name]
    if names:
        return ", ".join(names)
    ports = [port for destination in destinations for port in destination.ports]
    others = any(destination.others for destination in destinations)
    if not ports and not others:
        return ""
    return ports_text(ports, others=others, alone=len(destinations) == len(table.destinations))


def _outcomes(cell: Cell, reasons: _Reasons, *, whole: bool) -> tuple[Lines, Lines]:
    """Return the verdicts of a row, each with its rule. Equal ones are shown once."""
    if cell.too_many:
        return ["depends"], ["more conditions than can be listed: ask `eastgate check`"]
    by: Lines = []
    verdicts: Lines = []
    if cell.verdict != "if":
        verdicts.append(cell.verdict)
        origins = list(dict.fromkeys(map(reasons.text, cell.branches)))
        by += _bounded(origins, whole=whole, most=3)
    else:
        _conditions(cell, verdicts, by, reasons, whole=whole)
    if cell.refusing:
        by += [""] * (len(verdicts) - len(by))
        by.append(f"refused at {', '.join(_bounded(list(cell.refusing), whole=whole, most=_MAX_CALLERS))}")
    return verdicts, by


def _conditions(cell: Cell, verdicts: Lines, by: Lines, reasons: _Reasons, *, whole: bool) -> None:
    branches = list(cell.branches) if whole else _merged(cell.branches, reasons)
    shown = branches
    if len(shown) > _MAX_CONDITIONS and not whole:
        shown = [*shown[: _MAX_CONDITIONS - 1], shown[-1]]
    for index, branch in enumerate(shown):
        if index == len(shown) - 1 and len(shown) < len(branches):
            verdicts.append(f"... and {len(branches) - len(shown)} more")
        by += [""] * (len(verdicts) - len(by))
        verdicts += _wrapped(_verdict(branch, first=index == 0, exact=whole), _VERDICT_CHARS)
        by.append(reasons.text(branch))


def _merged(branches: Sequence[Branch], reasons: _Reasons) -> list[Branch]:
    """Merge the branches of one rule, if only branches with the same verdict are between them.

    Leave out allowed requests that a wider branch also allows. Merge the last branches, which no rule allows, into one.
    """
    merged: list[Branch] = []
    for _, run in groupby(branches, key=lambda branch: branch.end.allowed):
        kept: list[Branch] = []
        for branch in run:
            text = reasons.text(branch)
            before = next((each for each in kept if reasons.text(each) == text), None)
            when = branch.when if before is None else either((before.when, branch.when))
            if before is None or len(condition_text(when, most=None)) > TWO_LINES:
                kept.append(branch)
            elif when == ALWAYS:
                kept = [*(each for each in kept if each is not before), branch]
            else:
                kept[kept.index(before)] = Entry(when, branch.end)
        merged += _without_narrower(kept)
    rest = next((number for number in range(len(merged)) if all(map(_is_unallowed, merged[number:]))), None)
    return merged if rest is None or rest > len(merged) - 2 else [*merged[:rest], Entry(ALWAYS, Ending(False))]


def _without_narrower(run: list[Branch]) -> list[Branch]:
    asked = [frozenset(conjuncts(branch.when)) for branch in run]
    return [
        branch
        for branch, mine in zip(run, asked, strict=True)
        if not branch.end.allowed or branch.when == ALWAYS or not any(other < mine for other in asked)
    ]


def _is_unallowed(branch: Branch) -> bool:
    """Return whether requests are denied only because no rule allows them."""
    origin = branch.end.origin
    return not branch.end.allowed and branch.end.stage not in DEAD_ENDS and (origin is None or origin.policy is None)


def _wrapped(text: str, width: int) -> Lines:
    return wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _verdict(branch: Branch, *, first: bool, exact: bool) -> str:
    verdict = "allow" if branch.end.allowed else "deny"
    if branch.when == ALWAYS:
        return verdict if first else f"{verdict} otherwise"
    return f"{verdict} if {condition_text(branch.when, exact=exact)}"


class _Reasons:
    """The texts of deciding rules, for one table. `levels`: if no rule decides, the text names the layer."""

    def __init__(self, *, levels: bool, isolation: str | None) -> None:
        self._levels = levels
        self._isolation = isolation
        self._without_location: dict[str, str] = {}

    def text(self, branch: Branch) -> str:
        """Return the deciding rule and its location."""
        origin = branch.end.origin
        if origin is not None and origin.derived == ISOLATION and self._isolation is not None:
            return self._isolation
        text = by_text(branch, levels=self._levels)
        if origin is not None:
            self._without_location[text] = str(origin)
        return text

    def locate_once(self, cells: Iterable[Lines]) -> None:
        """Remove the location from each text that has already been printed above."""
        seen: set[str] = set()
        for cell in cells:
            for number, text in enumerate(cell):
                cell[number] = self._without_location.get(text, text) if text in seen else text
                seen.add(text)


def by_text(branch: Branch, *, levels: bool = False) -> str:
    """Return the deciding rule and its span; `levels`: name the layer if no rule decides."""
    if branch.end.origin is not None:
        line = span_text(branch.end.origin.span)
        return f"{branch.end.origin}  {line}" if line else str(branch.end.origin)
    if branch.end.allowed:
        return "nothing is in the way"
    level = f" at {branch.end.layer}" if levels and branch.end.layer else ""
    return DEAD_ENDS.get(branch.end.stage, f"no rule allows it{level}")


def span_text(span: Span | None) -> str:
    """Return file and line; an empty text without a span."""
    return span.location if span is not None else ""


# Plain data


def table_to_json(table: EffectiveTable) -> list[dict[str, object]]:
    """Return every row, without limits."""
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
        "if": None if branch.when == ALWAYS else condition_text(branch.when, most=None),
        "verdict": "allow" if branch.end.allowed else "deny",
        **origin_to_json(branch.end.origin or _NOBODY),
        "layer": branch.end.layer,
        "stage": branch.end.stage,
        "status": branch.end.status,
        "by": by_text(branch),
    }
