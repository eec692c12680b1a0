"""`python -m bench`: print all tables and targets. The exit status is 1 if a target is missed or answers differ."""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench import (
    analysis,
    asking,
    authorizers,
    cluster,
    diffing,
    enforcement,
    folders,
    gateway,
    labels,
    load,
    memory,
    narrow,
    plot,
    reach,
    startup,
    tables,
)
from bench.change import Change
from bench.growing import KINDS, SIZES, Growing, sizes
from bench.lanes import MismatchError
from bench.peers import PEERS, chosen
from bench.peers.base import Peer
from bench.report import LATEST, Section, machine, text, write_json

__all__ = ["NAMES", "main"]

Run = Callable[[], Section]

NAMES = (
    *KINDS,
    "questions",
    "many",
    "paths",
    "memory",
    "selectors",
    "tables",
    "analysis",
    "diff",
    "load",
    "folder",
    "startup",
    "change",
    "reach",
    "enforcement",
    "gateway",
    "authorizer",
    "cluster",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections that the command line names, and return the exit status."""
    options = _options(arguments)
    if options.drawn_from is not None:
        _draw(options.drawn_from, options.plot)
        return 0
    start, where = time.monotonic(), machine()
    print(f"# Eastgate's benchmark on {where}{'; short run' if options.quick else ''}", flush=True)
    sections = []
    try:
        for section in _sections(options.sections or NAMES, chosen(options.peers), quick=options.quick):
            print(text(section), flush=True)
            sections.append(section)
    except MismatchError as mismatch:
        print(f"ANSWERS DIFFER: {mismatch}", file=sys.stderr)
        return 1
    write_json(sections, options.output, where=where, quick=options.quick)
    if options.plot is not None:
        _draw(options.output, options.plot)
    missed = [target.wanted for section in sections for target in section.targets if not target.met]
    print(f"\n{time.monotonic() - start:.0f} s; every answer was the same on all sides; written to {options.output}")
    for wanted in missed:
        print(f"MISSED: {wanted}", file=sys.stderr)
    return 1 if missed else 0


def _draw(results: Path, to: Path) -> None:
    """Draw the charts of a run."""
    drawn = enforcement.draw(results, to.with_name("enforcement.svg"))
    if not drawn or plot.points_of(json.loads(results.read_text(encoding="utf-8"))):
        plot.draw(results, to)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"any of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller worlds, fewer rounds")
    parser.add_argument("--peers", metavar="LIST", help=f"any of {','.join(PEERS)} (default: all; empty: none)")
    parser.add_argument("-o", "--output", type=Path, default=LATEST, metavar="FILE", help="write the JSON to this file")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw the chart of `network` to this SVG file, and that of `enforcement` to enforcement.svg beside it",
    )
    parser.add_argument(
        "--from",
        type=Path,
        dest="drawn_from",
        metavar="FILE",
        help="draw the charts of an earlier run from its JSON, and run nothing",
    )
    options = parser.parse_args(arguments)
    for name in options.sections:
        if name not in NAMES:
            parser.error(f"no section {name!r}; there are {', '.join(NAMES)}")
    for name in filter(None, (options.peers or "").split(",")):
        if name not in PEERS:
            parser.error(f"no peer {name!r}; there are {', '.join(PEERS)}")
    if options.drawn_from is not None and options.plot is None:
        parser.error("--from needs --plot")
    return options


def _sections(names: Sequence[str], peers: Sequence[Peer], *, quick: bool) -> Iterator[Section]:
    """Run the sections. The short ones run between the rounds of those that are measured several times."""
    wanted = {*names, "network"} if "change" in names else set(names)
    growing = {name: Growing(name, peers, quick=quick) for name in KINDS if name in wanted}
    _grow(growing, quick=quick)
    for name, run in _between(peers, quick=quick):
        if name in names:
            yield run()
        for one in growing.values():
            one.again()
    yield from (one.conclude() for name, one in growing.items() if name in names)
    if "change" in names:
        change = Change(quick=quick)
        for contest in growing["network"].contests:
            if len(contest.built.policies) >= 1_000:
                change.add(contest.built)
        yield change.conclude()
    for name, section in (
        ("reach", reach.run),
        ("enforcement", enforcement.run),
        ("gateway", gateway.run),
        ("authorizer", authorizers.run),
        ("cluster", cluster.run),
    ):
        if name in names:
            yield from section(quick=quick)


def _grow(growing: Mapping[str, Growing], *, quick: bool) -> None:
    """Build all worlds, the smaller ones first."""
    for policies in SIZES:
        for name, one in growing.items():
            if policies in sizes(name, quick=quick):
                print(f"{name}, {policies:,} policies", file=sys.stderr, flush=True)
                one.add(policies)
    gc.freeze()  # the worlds stay until the end: garbage collection can skip them


def _between(peers: Sequence[Peer], *, quick: bool) -> list[tuple[str, Run]]:
    return [
        ("questions", partial(asking.run, quick=quick)),
        ("many", partial(narrow.many, peers, quick=quick)),
        ("paths", partial(narrow.paths, peers, quick=quick)),
        ("memory", partial(memory.run, peers, quick=quick)),
        ("selectors", partial(labels.run, quick=quick)),
        ("tables", partial(tables.run, quick=quick)),
        ("analysis", partial(analysis.run, quick=quick)),
        ("diff", partial(diffing.run, quick=quick)),
        ("load", partial(load.run, quick=quick)),
        ("folder", partial(folders.run, quick=quick)),
        ("startup", partial(startup.run, quick=quick)),
    ]


if __name__ == "__main__":
    sys.exit(main())
