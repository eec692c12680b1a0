"""Eastgate beside a real API server: a large cluster, the delay of a change, and many proxies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench.cluster.fleet import Fleet
from bench.cluster.growth import Growth
from bench.report import Section

__all__ = ["run"]


def run(*, quick: bool) -> Iterator[Section]:
    """Measure both tables."""
    yield asyncio.run(Growth((100, 200) if quick else (1_000, 3_000, 10_000), changes=5 if quick else 11).run())
    yield asyncio.run(Fleet(*(20, 100) if quick else (1_000, 1_000), changes=3 if quick else 5).run())
