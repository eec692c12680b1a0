"""What tool rules cost a call of a tool: gateways with 10 to 10,000 of them beside some without, all in one Envoy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from bench.enforcement.envoys import OTHERS, UNDER_TEST, on_cores, until
from bench.enforcement.load import Load, Measured, accepts
from bench.enforcement.origin import Way
from bench.enforcement.plane import Plane
from bench.gateway.ports import NODE, ruled, unruled
from bench.gateway.tool_rules import AGENTS, SHAPES, TWO_LEVELS, agent, call
from bench.report import Section, Target
from eastgate.envoy.server.resources import XdsResource

__all__ = ["ALLOWED", "DENIED", "NONE", "UNREAD", "ToolCalls"]

NONE, UNREAD = "no rules", "no MCP policy"
ALLOWED, DENIED = "allowed", "denied"
_FIRST_PORT = 8001
_CONNECTIONS = 16  # the same everywhere: with fewer, each answer costs more
_MANY, _LEAST = 10_000, 0.9


@dataclass(slots=True)
class Case:
    """A port of the gateway, a call there, and what was measured. `kind` is a shape of rules, or says that none are."""

    kind: str
    rules: int
    which: str
    port: int
    caller: str
    request: bytes
    rounds: list[Measured] = field(default_factory=list)

    @property
    def socket(self) -> str:
        return f"{self.port}-{self.caller.rpartition('/')[2]}"


class ToolCalls:
    """All shapes at all sizes."""

    def __init__(self, sizes: tuple[int, ...], rounds: int, seconds: float, shapes: tuple[str, ...] = SHAPES) -> None:
        self.sizes, self.rounds, self.seconds, self.shapes = sizes, rounds, seconds, shapes
        self.cases = list(_cases(sizes, shapes))
        self._by_name = {(case.kind, case.rules, case.which): case for case in self.cases}

    async def run(self) -> Section:
        """Set up, and measure in turns."""
        async with Plane() as plane:
            await self._set_up(plane)
            with ExitStack() as stack, on_cores(OTHERS):
                loads = []
                for case in self.cases:  # a denied call is answered with an error of JSON-RPC
                    loads.append(Load([(plane.folder / case.socket, case.request)], 200, _CONNECTIONS))
                    stack.callback(loads[-1].close)
                for number in range(self.rounds):
                    for index in Random(number).sample(range(len(loads)), len(loads)):
                        self.cases[index].rounds.append(loads[index].run(self.seconds, plane.envoys[NODE]))
        return self._section()

    async def _set_up(self, plane: Plane) -> None:
        address = plane.addresses([NODE])[NODE]
        resources = plane.secrets()
        for case in {case.port: case for case in self.cases}.values():
            resources += _resources(case, address, plane.app)
        plane.store.put(NODE, resources)
        await plane.start([NODE], UNDER_TEST)
        ways = {case.socket: case for case in self.cases}
        sockets = {name: plane.folder / name for name in ways}
        plane.start_origin(
            [Way(sockets[name], address, case.port, plane.svid(case.caller)) for name, case in ways.items()], OTHERS
        )
        await plane.listening((address, case.port) for case in self.cases)
        until(lambda: all(map(accepts, sockets.values())), "the origin does not listen")

    # Results

    def _section(self) -> Section:
        section = Section(
            "Gateway: calls of tools",
            "MCP calls (tools/call) per second through a gateway, on 16 open connections with mTLS, and CPU us of its "
            "Envoy for each: one worker on a core of its own, before a server on a unix socket that answers at once. "
            "Medians of rounds in turns. The last rule allows; denied: a tool that no rule names. of none: part of "
            "what the same gateway does that reads and notes messages, with the same listeners, and has no rules that "
            "decide, in the same round, by calls and by CPU time. On a shared machine others take from the calls of "
            "one round and not of the next; the CPU time of a busy worker is what its calls follow from, so targets go "
            "by it. of no MCP policy: of a gateway at which no policy looks at messages, so that none is read.",
            (
                *("shape of the rules", "rules", "calls/s", "of none", "us", "of none (CPU)", "of no MCP policy (CPU)"),
                *("denied/s", "us"),
            ),
        )
        for shape in self.shapes:
            section.rows += [self._row(shape, rules, section) for rules in self.sizes]
        for kind in (NONE, UNREAD):
            rate, cpu = self._medians(kind, 0, ALLOWED)
            section.notes.append(f"{kind}: {rate:,.0f} calls/s, {cpu:.3g} us")
            section.points.append({"gateway": kind, "rules": 0, "rate": rate, "cpu_us": cpu})
        part = self._part_of_cpu((NONE, 0, ALLOWED), (UNREAD, 0, ALLOWED))
        section.notes.append(f"{NONE}: {part:.2f} of {UNREAD}; that is what it costs to read messages")
        if _MANY in self.sizes:
            section.targets = [self._target(shape) for shape in self.shapes]
        return section

    def _target(self, shape: str) -> Target:
        part = self._part_of_cpu((shape, _MANY, ALLOWED), (NONE, 0, ALLOWED))
        wanted = f"{_MANY:,} tool rules ({shape}) leave {_LEAST} of the calls without rules"
        return Target(wanted, f"{part:.2f}", part >= _LEAST)

    def _row(self, shape: str, rules: int, section: Section) -> list[str | float]:
        rate, cpu = self._medians(shape, rules, ALLOWED)
        refused, refused_cpu = self._medians(shape, rules, DENIED)
        none, unread, own = (NONE, 0, ALLOWED), (UNREAD, 0, ALLOWED), (shape, rules, ALLOWED)
        parts = (self._ratio(own, none), self._part_of_cpu(own, none), self._part_of_cpu(own, unread))
        section.points.append(
            {
                "gateway": shape, "rules": rules, "rate": rate, "cpu_us": cpu, "part": parts[0],
                "part_cpu": parts[1], "part_unread": parts[2], "denied": refused, "denied_cpu_us": refused_cpu,
            }
        )  # fmt: skip
        return [shape, rules, rate, parts[0], cpu, parts[1], parts[2], refused, refused_cpu]

    def _medians(self, kind: str, rules: int, which: str) -> tuple[float, float]:
        rounds = self._by_name[kind, rules, which].rounds
        return median(each.rate for each in rounds), median(each.cpu_us for each in rounds)

    def _ratio(self, case: tuple[str, int, str], other: tuple[str, int, str]) -> float:
        """Return the ratio of calls in the same round."""
        return median(a.rate / b.rate for a, b in self._pairs(case, other))

    def _part_of_cpu(self, case: tuple[str, int, str], other: tuple[str, int, str]) -> float:
        """Return the ratio of calls for the same CPU time in the same round."""
        return median(b.cpu_us / a.cpu_us for a, b in self._pairs(case, other))

    def _pairs(self, case: tuple[str, int, str], other: tuple[str, int, str]) -> Iterable[tuple[Measured, Measured]]:
        return zip(self._by_name[case].rounds, self._by_name[other].rounds, strict=True)


def _cases(sizes: tuple[int, ...], shapes: tuple[str, ...]) -> Iterator[Case]:
    yield Case(NONE, 0, ALLOWED, _FIRST_PORT, agent(AGENTS, 0), call(0))
    yield Case(UNREAD, 0, ALLOWED, _FIRST_PORT + 1, agent(AGENTS, 0), call(0))
    port = _FIRST_PORT + 2
    for shape in shapes:
        for rules in sizes:
            last = (rules // 2 if shape in TWO_LEVELS else rules) - 1
            yield Case(shape, rules, ALLOWED, port, agent(shape, last), call(last))
            yield Case(shape, rules, DENIED, port, agent(shape, last), call(rules + 1))
            port += 1


def _resources(case: Case, address: str, server: Path) -> list[XdsResource]:
    if case.kind == NONE:
        return unruled(address, case.port, server, AGENTS)
    return ruled(address, case.port, server, AGENTS if case.kind == UNREAD else case.kind, case.rules)
