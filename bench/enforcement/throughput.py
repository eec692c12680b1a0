"""The cost of rules for a request: our trees, lists of rules, and no rules, all in one Envoy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from bench.enforcement.envoys import OTHERS, UNDER_TEST, on_cores, until
from bench.enforcement.listeners import (
    NODE,
    eastgate_resources,
    list_resources,
    resources_without_rules,
    single_listener_resources,
)
from bench.enforcement.load import Load, Measured, accepts, request
from bench.enforcement.origin import ClientSocket
from bench.enforcement.plane import Plane
from bench.enforcement.rules import STRANGER, identity, path
from bench.report import Section, Target
from eastgate.envoy.server.resources import XdsResource

__all__ = ["NO_POLICY", "OURS", "Throughput"]

NO_POLICY, OURS, LIST, BARE, BY_CERTIFICATE = "no policy", "Eastgate", "list", "one listener", "by certificate"
"""The first three are Eastgate's listeners: without rules, with its trees, and with a list instead. The others have TLS
and HTTP in one listener, as Istio's sidecars do: without rules, and with a list that compares the certificate."""
LAST, ANY, DENIED = "last", "any", "denied"

_FIRST_PORT = 8001
_ANY_CALLERS = 4  # callers of the case ANY
_TARGET_RULES, _MIN_PART, _MIN_SPEEDUP = 10_000, 0.85, 100


@dataclass(slots=True)
class Case:
    """A port, the requests that are sent to it, and the measured rounds."""

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
    """All cases at all sizes. `anything`: each rule allows its caller every request."""

    def __init__(self, sizes: tuple[int, ...], rounds: int, seconds: float, *, anything: bool = False) -> None:
        self.sizes, self.rounds, self.seconds, self.anything = sizes, rounds, seconds, anything
        self.cases = list(_cases(sizes, (LAST,) if anything else (LAST, ANY, DENIED)))
        self._by_name: dict[tuple[object, ...], Case] = {(one.kind, one.rules, one.which): one for one in self.cases}

    async def run(self) -> Section:
        """Start the Envoys, measure the cases in turns, and return the table."""
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
        listeners = {case.port: case for case in self.cases}
        for port, case in listeners.items():
            resources += _case_resources(case, address, port, anything=self.anything)
        plane.store.put(NODE, resources)
        await plane.start([NODE], UNDER_TEST)
        clients = [
            ClientSocket(_socket(plane, port, who), address, port, plane.svid(who))
            for port, who in sorted({(case.port, who) for case in self.cases for who, _ in case.asked})
        ]
        plane.start_origin(clients, OTHERS)
        await plane.listening((address, port) for port in listeners)
        until(lambda: all(accepts(client.socket) for client in clients), "the origin does not listen")

    # Results

    def _section(self) -> Section:
        section = Section(
            "Enforcement: requests, by caller alone" if self.anything else "Enforcement: requests",
            "The same for rules that each allow one identity every request."
            if self.anything
            else "Requests per second on open connections with mTLS, and CPU us of the Envoy under test for each: one "
            "worker on a core of its own, which answers by itself (direct_response). Medians of rounds in turns. Each "
            "rule has an identity of its own, two methods and one of eight paths. last: the last rule allows; any: "
            "callers of four rules; denied: none allows, 403. list: the same rules as Istio writes them, in the place "
            "of ours. by certificate: the same list where TLS and HTTP are in one listener, as Istio's sidecars have "
            "them, and it looks at the certificate. of none: part of the throughput without rules in the same "
            "listeners, in the same round.",
            ("rules", "which", *(f"{kind} {unit}" for kind in (OURS, LIST, BY_CERTIFICATE)
                                 for unit in ("req/s", "of none", "us")), "times list", "times by certificate"),
        )  # fmt: skip
        for rules in self.sizes:
            asked = (LAST,) if self.anything else (LAST, ANY, DENIED)
            section.rows += [self._row(rules, which, section) for which in asked]
        for kind, what in ((NO_POLICY, "Eastgate's listeners"), (BARE, "one listener")):
            rate, cpu = self._found(kind, 0, LAST)
            section.notes.append(f"{what} without rules: {rate:,.0f} req/s, {cpu:.3g} us")
            section.points.append({"enforced": kind, "rules": 0, "which": LAST, "rate": rate, "cpu_us": cpu})
        if _TARGET_RULES in self.sizes:
            section.targets = list(self._targets())
        return section

    def _targets(self) -> Iterator[Target]:
        if not self.anything:
            part = self._ratio((OURS, _TARGET_RULES, LAST), (NO_POLICY, 0, LAST))
            wanted = f"{_TARGET_RULES:,} rules leave {_MIN_PART} of the throughput without rules"
            yield Target(wanted, f"{part:.2f}", part >= _MIN_PART)
            return
        faster = self._ratio((OURS, _TARGET_RULES, LAST), (BY_CERTIFICATE, _TARGET_RULES, LAST))
        wanted = f"{_TARGET_RULES:,} caller rules run {_MIN_SPEEDUP} times as fast as in a list on certificates"
        yield Target(wanted, f"{faster:.0f} times", faster >= _MIN_SPEEDUP)

    def _row(self, rules: int, which: str, section: Section) -> list[str | float]:
        row: list[str | float] = [rules, which]
        times: list[str | float] = []
        for kind, base in ((OURS, NO_POLICY), (LIST, NO_POLICY), (BY_CERTIFICATE, BARE)):
            if (kind, rules, which) not in self._by_name:
                row += ["-"] * 3
                times.append("-")
                continue
            rate, cpu = self._found(kind, rules, which)
            part = self._ratio((kind, rules, which), (base, 0, LAST))
            row += [rate, part, cpu]
            times.append(self._ratio((OURS, rules, which), (kind, rules, which)))
            shown = f"{kind}, by caller alone" if self.anything else kind
            section.points.append(
                {"enforced": shown, "rules": rules, "which": which, "rate": rate, "part": part, "cpu_us": cpu}
            )
        return row + times[1:]

    def _found(self, *name: object) -> tuple[float, float]:
        found = self._by_name[name].found
        return median(one.rate for one in found), median(one.cpu_us for one in found)

    def _ratio(self, one: tuple[str, int, str], other: tuple[str, int, str]) -> float:
        """Return the median ratio of throughputs in the same round."""
        pairs = zip(self._by_name[one].found, self._by_name[other].found, strict=True)
        return median(a.rate / b.rate for a, b in pairs)


def _cases(sizes: tuple[int, ...], asked: tuple[str, ...]) -> Iterator[Case]:
    port = _FIRST_PORT
    for kind in (NO_POLICY, BARE):
        yield Case(kind, 0, LAST, port, [(identity(0), request(path(0)))])
        port += 1
    for kind, questions in ((OURS, (LAST, ANY, DENIED)), (LIST, (LAST, DENIED)), (BY_CERTIFICATE, (LAST,))):
        for rules in sizes:
            for which in (one for one in questions if one in asked):
                yield Case(kind, rules, which, port, list(_asked(rules, which)))
            port += 1


def _asked(rules: int, which: str) -> Iterator[tuple[str, bytes]]:
    if which == DENIED:
        yield STRANGER, request(path(rules - 1))
    for number in {LAST: [rules - 1], ANY: Random(rules).sample(range(rules), _ANY_CALLERS), DENIED: []}[which]:
        yield identity(number), request(path(number))


def _case_resources(case: Case, address: str, port: int, *, anything: bool) -> list[XdsResource]:
    if case.kind == NO_POLICY:
        return resources_without_rules(address, port)
    return {OURS: eastgate_resources, LIST: list_resources}.get(case.kind, single_listener_resources)(
        address, port, case.rules, anything=anything
    )


def _socket(plane: Plane, port: int, who: str) -> Path:
    return plane.folder / f"{port}-{who.rpartition('/')[2]}"
