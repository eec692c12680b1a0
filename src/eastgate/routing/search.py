"""Which candidates some completion of a request chooses.

The candidates are tried in order. Where one depends on something that is not known, each kind of it is assumed in turn
and the search goes on from there: so a rule that another always wins over is not taken for possible. What has been
assumed and no later candidate looks at is forgotten, which keeps the search short; and should it become long all the
same, it gives way to a simpler answer that may name more rules than can be chosen, but never fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eastgate.policy import Known
from eastgate.policy.attributes import Attribute
from eastgate.routing.candidates import Candidate
from eastgate.routing.conditions import Assumed, Condition, attribute_of, judge, kinds

__all__ = ["Effort", "reachable"]


@dataclass(slots=True)
class Effort:
    """How many candidates may still be looked at."""

    left: int = 100_000


def reachable(
    candidates: Sequence[Candidate], known: Mapping[Attribute, Known], effort: Effort
) -> list[Candidate | None]:
    """The candidates that may be chosen; None is among them where it may be that none is."""
    found: dict[int, None] = {}
    end = len(candidates)
    last = _last_mention(candidates)
    seen = set()
    open_ends: list[tuple[int, Assumed]] = [(0, {})]
    while open_ends:
        start, assumed = open_ends.pop()
        state = start, frozenset(item for item in assumed.items() if last[attribute_of(item[0])] >= start)
        if state in seen:
            continue
        seen.add(state)
        for position in range(start, end):
            held = judge(candidates[position].conditions, known, assumed)
            effort.left -= 1
            if held is True:
                found[position] = None
                break
            if held is not False:
                options = kinds(held, _relevant(candidates, position, known, assumed))
                effort.left -= end - position
                open_ends += [(position, {**assumed, held: kind}) for kind in options]
                break
        else:
            found[end] = None
        if effort.left < 0 and open_ends:
            return list(_not_excluded(candidates, known))
    return [candidates[position] if position < end else None for position in sorted(found)]


def _relevant(
    candidates: Sequence[Candidate], start: int, known: Mapping[Attribute, Known], assumed: Assumed
) -> Iterator[Condition]:
    """The conditions that may still matter."""
    for candidate in candidates[start:]:
        held = judge(candidate.conditions, known, assumed)
        if held is not False:
            yield from candidate.conditions
        if held is True:
            return


def _last_mention(candidates: Sequence[Candidate]) -> dict[Attribute, int]:
    return {one.attribute: position for position, candidate in enumerate(candidates) for one in candidate.conditions}


def _not_excluded(candidates: Sequence[Candidate], known: Mapping[Attribute, Known]) -> Iterator[Candidate | None]:
    """Every candidate that is not sure to fail, up to one that is sure to hold."""
    for candidate in candidates:
        held = judge(candidate.conditions, known, {})
        if held is not False:
            yield candidate
        if held is True:
            return
    yield None
