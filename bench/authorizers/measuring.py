"""Runs the authorizers behind one Envoy, in turns, in a process of its own. Prints the measurements as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from bench.authorizers.engines import EASTGATE, PROGRAMS, Engine, engine
from bench.authorizers.proxy import NO_AUTHORIZER, proxy, socket_of
from bench.authorizers.schemes import CACHED, Probe, probes
from bench.authorizers.timed_load import Timed, TimedLoad, ask
from bench.authorizers.tokens import issuing
from bench.enforcement.envoys import OTHERS, Envoy, on_cores, until
from bench.enforcement.load import accepts
from bench.lanes import MismatchError

__all__ = ["measure"]

_CONNECTIONS = 16
_WARM_UP_SECONDS = 0.2


class Lane:
    """One authorizer, protocol and scheme."""

    def __init__(
        self, engine: Engine, protocol: str, scheme: str, socket: Path, requests: Iterator[bytes], status: int
    ) -> None:
        self.engine, self.protocol, self.scheme = engine, protocol, scheme
        self._load = TimedLoad(socket, requests, status, _CONNECTIONS)
        self.rounds: list[Timed] = []

    def take(self, seconds: float) -> None:
        """Measure one round."""
        before = self.engine.cpu_seconds()
        count, took, p50, p99 = self._load.run(seconds)
        self.rounds.append(Timed(count, took, self.engine.cpu_seconds() - before, p50, p99))

    def warm(self) -> None:
        """Send load without measuring, so that no measured round has cold caches."""
        self._load.run(_WARM_UP_SECONDS)

    def close(self) -> None:
        """Close the connections."""
        self._load.close()

    def result(self) -> dict[str, Any]:
        """Return medians of the rounds, and the rate of each."""
        columns = {
            name: median(getattr(each, name) for each in self.rounds) for name in ("rate", "cpu_us", "p50", "p99")
        }
        lane = {"authorizer": self.engine.name, "protocol": self.protocol, "scheme": self.scheme}
        return {
            **lane,
            **columns,
            "rates": [each.rate for each in self.rounds],
            "cpu_rates": [1e6 / each.cpu_us for each in self.rounds],
        }


def measure(
    engines: Iterable[str], rounds: int, seconds: float, tokens: int, schemes: Iterable[str] | None = None
) -> list[dict[str, Any]]:
    """Measure all lanes; return a dict for each. Raises MismatchError if two answers differ."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eg-")))
        credentials = stack.enter_context(issuing(tokens))
        running = [stack.enter_context(engine(name, folder, credentials)) for name in engines]
        asked = {name: pair for name, pair in probes(credentials).items() if schemes is None or name in schemes}
        envoy = Envoy(proxy(running, folder), "bench", folder / "envoy.log", OTHERS)
        stack.enter_context(envoy)
        until(lambda: accepts(folder / NO_AUTHORIZER), "Envoy does not listen")
        with on_cores(OTHERS):
            return _rounds(list(_lanes(running, asked, folder, stack)), rounds, seconds)


def _lanes(
    engines: Iterable[Engine], asked: dict[str, tuple[Probe, Probe | None]], folder: Path, stack: ExitStack
) -> Iterator[Lane]:
    for each in engines:  # both protocols share the tokens: a token that one has used is not cold for the other
        requests = {scheme: cycle(allowed.requests) for scheme, (allowed, _) in asked.items()}
        for protocol in each.ports:
            socket = socket_of(folder, each.name, protocol)
            for scheme, (allowed, denied) in asked.items():
                if scheme in each.lacks or (scheme == CACHED and each.name == EASTGATE):
                    continue
                for probe in filter(None, (allowed, denied)):
                    _compare(socket, probe, f"{each.name}, {protocol}, {scheme}")
                lane = Lane(each, protocol, scheme, socket, requests[scheme], allowed.status)
                stack.callback(lane.close)
                yield lane


def _compare(socket: Path, probe: Probe, what: str) -> None:
    status = ask(socket, probe.requests[0])
    if status != probe.status:
        raise MismatchError(f"{what}: {status} instead of {probe.status}")


def _rounds(lanes: list[Lane], rounds: int, seconds: float) -> list[dict[str, Any]]:
    for lane in lanes:
        lane.warm()
    for number in range(rounds):
        for index in Random(number).sample(range(len(lanes)), len(lanes)):
            lanes[index].take(seconds)
    return [lane.result() for lane in lanes]


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    options["engines"] = options.get("engines", list(PROGRAMS))
    print(json.dumps(measure(**options)))
