"""The cost of tool rules at gateways."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench.gateway.calls import ToolCalls
from bench.report import Section

__all__ = ["run"]


def run(*, quick: bool) -> Iterator[Section]:
    """Measure calls of tools."""
    if quick:
        yield asyncio.run(ToolCalls((10,), rounds=2, seconds=0.1).run())
    else:
        yield asyncio.run(ToolCalls((10, 1_000, 10_000), rounds=9, seconds=0.4).run())
