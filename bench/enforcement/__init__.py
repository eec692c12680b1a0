"""Enforcement by real Envoys: the cost of rules for a request and a connection, and the delay of a change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench.enforcement import connections, weight
from bench.enforcement.changes import Changes
from bench.enforcement.plot import draw
from bench.enforcement.throughput import Throughput
from bench.report import Section

__all__ = ["draw", "run"]


def run(*, quick: bool) -> Iterator[Section]:
    """Measure all sections of enforcement."""
    if quick:
        yield asyncio.run(Throughput((10, 100), rounds=2, seconds=0.1).run())
        yield asyncio.run(Throughput((10,), rounds=2, seconds=0.1, anything=True).run())
        yield asyncio.run(connections.run((10, 100), rounds=2, seconds=0.1))
        yield asyncio.run(_changes(4, (1, 100), (2,)))
        yield weight.run((("request", 10, 1),))
        return
    yield asyncio.run(Throughput((10, 100, 1_000, 10_000), rounds=7, seconds=0.4).run())
    yield asyncio.run(Throughput((10, 1_000, 10_000), rounds=7, seconds=0.4, anything=True).run())
    yield asyncio.run(connections.run((10, 1_000, 10_000), rounds=7, seconds=0.7))
    yield asyncio.run(_changes(12, (1, 1_000, 10_000), (10, 50)))
    yield weight.run(
        (
            *(("request", rules, 1) for rules in (10, 1_000, 10_000)),
            *(("connection", rules, 1) for rules in (10, 1_000, 10_000)),
            ("request", 10, 50),
        )
    )


async def _changes(samples: int, sizes: tuple[int, ...], proxies: tuple[int, ...]) -> Section:
    changes = Changes(samples)
    for http in (True, False):
        for rules in sizes:
            await changes.add(rules, 1, http=http)
    for count in proxies:
        await changes.add(1, count, http=True)
    return changes.section
