"""What rules cost a request: our trees beside lists of rules, and both beside no rules, all in one Envoy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from bench.enforcement.doors import NODE, bare, listed, ours, unruled
from bench.enforcement.envoys import OTHERS, UNDER_TEST, on_cores, until
from bench.enforcement.load import Load, Measured, request
from bench.enforcement.origin import Way
from bench.enforcement.plane import Plane
from bench.enforcement.rules import STRANGER, identity, path
from bench.report import Section, Target
from eastgate.xds.server.resources import Resource

__all__ = ["NONE", "OURS", "Throughput"]

NONE, OURS, LIST, BARE, BARE_LIST = "no policy", "Eastgate", "list", "one listener", "one listener, list"
"""Eastgate's chain of listeners: without rules, with its trees, with a list in their place. And TLS and HTTP in one
listener, as Istio's sidecars have them: without rules, and with a list that looks at the certificate."""
LAST, ANY, DENIED = "last", "any", "denied"

_FIRST_PORT = 8001
_SOME = 4  # callers, where it may be any rule that matches
_LEAST, _FASTER = 0.85, 100


@dataclass(slots=True)
class Case:
    """A door, what is asked there, and what came of it."""

    kind: str
    rules: int
    which: str
    port: int
    asked: list[tuple[str, bytes]]
    found: list[Measured] = field(default_factory=list)

    @property
    def status(self) -> int:
        return 403 if self.which == DENIED else 200


class Throughput:
    """All cases at all sizes."""

    def __init__(self, sizes: tuple[int, ...], rounds: int, seconds: float) -> None:
        self.sizes, self.rounds, self.seconds = sizes, rounds, seconds
        self.cases = list(_cases(sizes))

    async def run(self) -> Section:
        """Set up, measure in turns, tell."""
        async with Plane() as plane:
            await self._set_up(plane)
            with ExitStack() as stack, on_cores(OTHERS):
                loads = []
                for case in self.cases:
                    load = Load([(_socket(plane, case.port, who), one) for who, one in case.asked], case.status)
                    stack.callback(load.close)
                    loads.append(load)
                for number in range(self.rounds):
                    order = Random(number).sample(range(len(loads)), len(loads))
                    for place in order:
                        self.cases[place].found.append(loads[place].run(self.seconds, plane.envoys[NODE]))
        return self._section()

    async def _set_up(self, plane: Plane) -> None:
        address = plane.addresses([NODE])[NODE]
        resources = plane.secrets()
        doors = {case.port: case for case in self.cases}
        for port, case in doors.items():
            resources += _made(case, address, port)
        plane.store.put(NODE, resources)
        await plane.start([NODE], UNDER_TEST)
        ways = [
            Way(_socket(plane, port, who), address, port, plane.svid(who))
            for port, who in sorted({(case.port, who) for case in self.cases for who, _ in case.asked})
        ]
        plane.start_origin(ways, OTHERS)
        await plane.listening((address, port) for port in doors)
        until(lambda: all(way.socket.exists() for way in ways), "the origin does not listen")

    # What was found

    def _section(self) -> Section:
        section = Section(
            "Enforcement: requests",
            "Requests per second on open connections with mTLS, and CPU of the Envoy under test for each, one worker "
            "on a core of its own, which answers by itself (direct_response); medians of rounds in turns. Each rule "
            "has an identity, a path and two methods of its own. last: the last rule allows; any: one of four; "
            "denied: none does, 403. list: the same rules as Istio writes them, in the place of ours; one listener: "
            "TLS and HTTP in one listener, where a list looks at the certificate. of none: throughput as a part of "
            "that without rules in the same chain; added us: CPU that the rules add.",
            ("rules", "which", *(f"{kind} {unit}" for kind in (OURS, LIST, BARE_LIST)
                                 for unit in ("req/s", "of none", "us", "added us")), "times the list"),
        )  # fmt: skip
        for base in (NONE, BARE):
            one = self._case(base)
            section.notes.append(
                f"{base}, no rules: {one.rate:,.0f} requests/s, {one.cpu_us:.1f} us each"
                if one
                else f"{base} was not measured"
            )
        for rules in self.sizes:
            for which in (LAST, ANY, DENIED):
                section.rows.append(self._row(rules, which, section))
        most = self.sizes[-1]
        part, faster = self._part(OURS, most, LAST, NONE), self._times(most)
        section.targets = [
            Target(
                f"{most:,} rules leave at least {_LEAST} of the throughput without policies",
                f"{part:.2f}",
                part >= _LEAST,
            ),
            Target(f"at {most:,} rules at least {_FASTER} times a list's", f"{faster:.0f} times", faster >= _FASTER),
        ]
        return section

    def _row(self, rules: int, which: str, section: Section) -> list[str | float]:
        row: list[str | float] = [rules, which]
        for kind, base in ((OURS, NONE), (LIST, NONE), (BARE_LIST, BARE)):
            one, bare = self._case(kind, rules, which), self._case(base)
            if one is None or bare is None:
                row += ["-"] * 4
                continue
            part, added = self._part(kind, rules, which, base), one.cpu_us - bare.cpu_us
            row += [one.rate, part, one.cpu_us, added]
            section.points.append(
                {"enforced": kind, "rules": rules, "which": which, "rate": one.rate, "part": part,
                 "cpu_us": one.cpu_us, "added_us": added}
            )  # fmt: skip
        row.append(self._times(rules, which) if self._case(LIST, rules, which) else "-")
        return row

    def _case(self, kind: str, rules: int = 0, which: str = LAST) -> Measured | None:
        """The median round, by what it cost."""
        for case in self.cases:
            if (case.kind, case.rules, case.which) == (kind, rules, which):
                rate, cpu = median(one.rate for one in case.found), median(one.cpu_us for one in case.found)
                return Measured(1_000_000, 1_000_000 / rate, cpu)
        return None

    def _rates(self, kind: str, rules: int, which: str) -> list[float]:
        return [
            one.rate
            for case in self.cases
            if (case.kind, case.rules, case.which) == (kind, rules, which)
            for one in case.found
        ]

    def _part(self, kind: str, rules: int, which: str, base: str) -> float:
        """Of the throughput without rules, in the same round."""
        return median(a / b for a, b in zip(self._rates(kind, rules, which), self._rates(base, 0, LAST), strict=True))

    def _times(self, rules: int, which: str = LAST) -> float:
        ours, theirs = self._rates(OURS, rules, which), self._rates(LIST, rules, which)
        return median(a / b for a, b in zip(ours, theirs, strict=True))


def _cases(sizes: tuple[int, ...]) -> Iterator[Case]:
    port = _FIRST_PORT
    for kind in (NONE, BARE):
        yield Case(kind, 0, LAST, port, [(identity(0), request(path(0)))])
        port += 1
    for kind, questions in ((OURS, (LAST, ANY, DENIED)), (LIST, (LAST, DENIED)), (BARE_LIST, (LAST,))):
        for rules in sizes:
            for which in questions:
                yield Case(kind, rules, which, port, list(_asked(rules, which)))
            port += 1


def _asked(rules: int, which: str) -> Iterator[tuple[str, bytes]]:
    if which == DENIED:
        yield STRANGER, request(path(rules - 1))
    for number in {LAST: [rules - 1], ANY: Random(rules).sample(range(rules), _SOME), DENIED: []}[which]:
        yield identity(number), request(path(number))


def _made(case: Case, address: str, port: int) -> list[Resource]:
    match case.kind:
        case "Eastgate":
            return ours(address, port, case.rules)
        case "list":
            return listed(address, port, case.rules)
        case "no policy":
            return unruled(address, port)
        case _:
            return bare(address, port, case.rules)


def _socket(plane: Plane, port: int, who: str) -> Path:
    return plane.folder / f"{port}-{who.rpartition('/')[2]}"
