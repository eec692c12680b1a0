"""`python -m bench`: all tables, and whether targets are met. Exits with 1 where one is missed or answers differ."""

from __future__ import annotations

import argparse
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
    print(f"# Eastgate's benchmark on {machine()}{', short run' if quick else ''}", flush=True)
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
    decide, change = Decide(quick=quick), Change(quick=quick)
    for policies in SIZES:
        if quick and policies > 10_000:
            continue
        built = Built.of(generate(policies))
        decide.add(built)
        if policies >= 1_000:
            change.add(built)
    yield decide.conclude()
    yield many.run(quick=quick)
    yield l7.run(quick=quick)
    yield change.conclude()
    yield memory.run(quick=quick)
    yield tables.run(quick=quick)
    yield load.run(quick=quick)


if __name__ == "__main__":
    sys.exit(main())
