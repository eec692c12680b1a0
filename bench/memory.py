"""The memory of each engine with all policies loaded, as the growth of a process of its own."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence

from bench.children import resident_bytes, run_child
from bench.lanes import OURS
from bench.objects import engine_of, policy_of, world_of
from bench.peers import peer
from bench.peers.base import Peer, all_rules
from bench.report import Section
from bench.timing import seconds_of
from bench.worlds import ask_some, generate

__all__ = ["run"]

_QUESTIONS = 100


def run(peers: Sequence[Peer], *, quick: bool) -> Section:
    """Measure each engine; one row for each."""
    sizes, limit = ((1_000,), 10.0) if quick else ((1_000, 10_000), 45.0)
    section = Section(
        "Memory",
        "The growth of a process as it loads all policies (connections), in MB, and the CPU seconds for that: from "
        "plain rules to ready for the first question. Ours: world, policies and the programs of all workloads. Others: "
        f"all policies, with their targets, and the entities of {_QUESTIONS} questions. One process each, one run.",
        ("engine", *(f"{size:,} policies {unit}" for size in sizes for unit in ("MB", "s")), "bytes per policy"),
    )
    for name in (OURS, *(one.name for one in peers)):
        row: list[str | float] = [name]
        each: float | str = "-"
        for size in sizes:
            found = run_child("bench.memory", name, str(size), seconds=limit)
            row += [found["bytes"] / 1e6, found["seconds"]] if found else ["too slow", f"over {limit:.0f} s"]
            each = found["bytes"] / size if found else each
            section.points.append(
                {"world": "network", "engine": name, "policies": size, **(found or {"over_s": limit})}
            )
        section.rows.append([*row, each])
    return section


def child(name: str, policies: int) -> dict[str, float]:
    """Return the memory and CPU time of one engine, measured in this process."""
    plan = generate(policies)
    asks = ask_some(plan, [f"{pod.namespace}/{pod.name}" for pod in plan.pods], _QUESTIONS)
    kept: list[object] = []

    def ours() -> None:
        engine = engine_of(world_of(plan), [policy_of(one) for one in plan.policies])
        engine.compile_all()
        kept.append(engine)

    def theirs() -> None:
        kept.append(peer(name).load(all_rules(plan, asks)))

    gc.collect()
    before = resident_bytes()
    seconds = seconds_of(ours if name == OURS else theirs)
    gc.collect()
    return {"bytes": resident_bytes() - before, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]))))
