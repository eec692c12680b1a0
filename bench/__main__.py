"""`python -m bench`: all tables, and whether targets are met. Exits with 1 where one is missed or answers differ."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator

from bench import l7, load, many, memory, tables
from bench.built import Built
from bench.change import Change
from bench.decide import SIZES, Decide
from bench.report import Section, machine, text, write_json
from bench.worlds import generate


def main() -> int:
    """Run everything."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller worlds, fewer rounds")
    quick = parser.parse_args().quick
    start = time.monotonic()
    print(f"# Eastgate's benchmark on {machine()}{'; short run' if quick else ''}", flush=True)
    sections = []
    for section in _sections(quick=quick):
        print(text(section), flush=True)
        sections.append(section)
    path = write_json(sections, quick=quick)
    missed = [target.wanted for section in sections for target in section.targets if not target.met]
    print(f"\n{time.monotonic() - start:.0f} s; every answer was the same on both sides; written to {path}")
    for wanted in missed:
        print(f"MISSED: {wanted}", file=sys.stderr)
    return 1 if missed else 0


def _sections(*, quick: bool) -> Iterator[Section]:
    yield many.run(quick=quick)
    yield l7.run(quick=quick)
    decide = Decide(quick=quick)
    for policies in SIZES:
        if not quick or policies <= 10_000:
            decide.add(Built.of(generate(policies)))
    gc.freeze()  # these worlds have come to stay: collections need not look at them
    for run in (memory.run, tables.run, load.run):
        decide.again()
        yield run(quick=quick)
    decide.again()
    yield decide.conclude()
    change = Change(quick=quick)
    for built in decide.worlds:
        if len(built.policies) >= 1_000:
            change.add(built)
    yield change.conclude()


if __name__ == "__main__":
    sys.exit(main())
