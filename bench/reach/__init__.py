"""All answers at once: their cost, its growth, and the comparison with a peer."""

from __future__ import annotations

from collections.abc import Iterator

from bench.reach import invariants, matrix, peer
from bench.report import Section

__all__ = ["run"]


def run(*, quick: bool) -> Iterator[Section]:
    """Measure all sections of reach."""
    yield matrix.run(quick=quick)
    yield invariants.run(quick=quick)
    yield peer.run(quick=quick)
