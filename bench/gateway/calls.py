"""The cost of tool rules for a call of a tool: gateways with 0 to 10,000 rules, all in one Envoy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from bench.enforcement.envoys import OTHERS, UNDER_TEST, on_cores, until
from bench.enforcement.load import Load, Measured, accepts
from bench.enforcement.origin import ClientSocket
from bench.enforcement.plane import Plane
from bench.gateway.ports import NODE, resources_without_rules, tool_rule_resources
from bench.gateway.tool_rules import AGENTS, SHAPES, TWO_LEVELS, agent, call
from bench.report import Section, Target
from eastgate.envoy.server.resources import XdsResource

__all__ = ["ALLOWED", "DENIED", "NO_MCP_POLICY", "NO_RULES", "ToolCalls"]

NO_RULES, NO_MCP_POLICY = "no rules", "no MCP policy"
ALLOWED, DENIED = "allowed", "denied"
_FIRST_PORT = 8001
_CONNECTIONS = 16  # the same for every case: with fewer connections each answer costs more
_TARGET_RULES, _MIN_PART = 10_000, 0.9


@dataclass(slots=True)
class Case:
    """A port of the gateway, a call, and the measured rounds. `kind` is a shape of rules, or one without rules."""

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
    """All shapes of rules at all sizes."""

    def __init__(self, sizes: tuple[int, ...], rounds: int, seconds: float, shapes: tuple[str, ...] = SHAPES) -> None:
        self.sizes, self.rounds, self.seconds, self.shapes = sizes, rounds, seconds, shapes
        self.cases = list(_cases(sizes, shapes))
        self._by_name = {(case.kind, case.rules, case.which): case for case in self.cases}

    async def run(self) -> Section:
        """Start the Envoys, measure the cases in turns, and return the table."""
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
        clients = {case.socket: case for case in self.cases}
        sockets = {name: plane.folder / name for name in clients}
        plane.start_origin(
            [
                ClientSocket(sockets[name], address, case.port, plane.svid(case.caller))
                for name, case in clients.items()
            ],
            OTHERS,
        )
        await plane.listening((address, case.port) for case in self.cases)
        until(lambda: all(map(accepts, sockets.values())), "the origin does not listen")

    # Results

    def _section(self) -> Section:
        section = Section(
            "Gateway: calls of tools",
            "MCP calls (tools/call) per second through a gateway, on 16 open connections with mTLS, and CPU us of its "
            "Envoy for each: one worker on a core of its own, before a server on a unix socket that answers at once. "
            "Medians of rounds in turns. The last rule allows; denied: a tool that no rule names. of none: part of the "
            "calls of a gateway with the same listeners that reads and notes messages but has no rules, "
            "in the same round, by calls and by CPU time. On a shared machine other processes reduce the calls of "
            "some rounds only; the CPU time of a busy worker determines its calls, so the targets use CPU "
            "time. of no MCP policy: part of the calls of a gateway without a policy on messages, which reads none.",
            (
                *("shape of the rules", "rules", "calls/s", "of none", "us", "of none (CPU)", "of no MCP policy (CPU)"),
                *("denied/s", "us"),
            ),
        )
        for shape in self.shapes:
            section.rows += [self._row(shape, rules, section) for rules in self.sizes]
        for kind in (NO_RULES, NO_MCP_POLICY):
            rate, cpu = self._medians(kind, 0, ALLOWED)
            section.notes.append(f"{kind}: {rate:,.0f} calls/s, {cpu:.3g} us")
            section.points.append({"gateway": kind, "rules": 0, "rate": rate, "cpu_us": cpu})
        part = self._part_of_cpu((NO_RULES, 0, ALLOWED), (NO_MCP_POLICY, 0, ALLOWED))
        section.notes.append(
            f"{NO_RULES}: {part:.2f} of {NO_MCP_POLICY}; the difference is the cost of reading messages"
        )
        if _TARGET_RULES in self.sizes:
            section.targets = [self._target(shape) for shape in self.shapes]
        return section

    def _target(self, shape: str) -> Target:
        part = self._part_of_cpu((shape, _TARGET_RULES, ALLOWED), (NO_RULES, 0, ALLOWED))
        wanted = f"{_TARGET_RULES:,} tool rules ({shape}) leave {_MIN_PART} of the calls without rules"
        return Target(wanted, f"{part:.2f}", part >= _MIN_PART)

    def _row(self, shape: str, rules: int, section: Section) -> list[str | float]:
        rate, cpu = self._medians(shape, rules, ALLOWED)
        refused, refused_cpu = self._medians(shape, rules, DENIED)
        none, unread, own = (NO_RULES, 0, ALLOWED), (NO_MCP_POLICY, 0, ALLOWED), (shape, rules, ALLOWED)
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
        """Return the median ratio of calls in the same round."""
        return median(a.rate / b.rate for a, b in self._pairs(case, other))

    def _part_of_cpu(self, case: tuple[str, int, str], other: tuple[str, int, str]) -> float:
        """Return the median ratio of calls for the same CPU time in the same round."""
        return median(b.cpu_us / a.cpu_us for a, b in self._pairs(case, other))

    def _pairs(self, case: tuple[str, int, str], other: tuple[str, int, str]) -> Iterable[tuple[Measured, Measured]]:
        return zip(self._by_name[case].rounds, self._by_name[other].rounds, strict=True)


def _cases(sizes: tuple[int, ...], shapes: tuple[str, ...]) -> Iterator[Case]:
    yield Case(NO_RULES, 0, ALLOWED, _FIRST_PORT, agent(AGENTS, 0), call(0))
    yield Case(NO_MCP_POLICY, 0, ALLOWED, _FIRST_PORT + 1, agent(AGENTS, 0), call(0))
    port = _FIRST_PORT + 2
    for shape in shapes:
        for rules in sizes:
            last = (rules // 2 if shape in TWO_LEVELS else rules) - 1
            yield Case(shape, rules, ALLOWED, port, agent(shape, last), call(last))
            yield Case(shape, rules, DENIED, port, agent(shape, last), call(rules + 1))
            port += 1


def _resources(case: Case, address: str, server: Path) -> list[XdsResource]:
    if case.kind == NO_RULES:
        return resources_without_rules(address, case.port, server, AGENTS)
    return tool_rule_resources(
        address, case.port, server, AGENTS if case.kind == NO_MCP_POLICY else case.kind, case.rules
    )
