"""All answers at once: what they cost, how that grows, and beside a peer."""

from __future__ import annotations

from collections.abc import Iterator

from bench.reach import invariants, matrix, peer
from bench.report import Section

__all__ = ["run"]


def run(*, quick: bool) -> Iterator[Section]:
    """Run all of it."""
    yield matrix.run(quick=quick)
    yield invariants.run(quick=quick)
    yield peer.run(quick=quick)
