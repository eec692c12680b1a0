"""What an engine keeps in memory."""

from __future__ import annotations

import gc
import tracemalloc

from bench.objects import engine_of, policy_of, world_of
from bench.report import Section
from bench.worlds import generate

__all__ = ["run"]


def run(*, quick: bool) -> Section:
    """One row."""
    policies = 1_000 if quick else 10_000
    plan = generate(policies)
    world, objects = world_of(plan), [policy_of(one) for one in plan.policies]
    gc.collect()
    tracemalloc.start()
    engine = engine_of(world, objects)
    classes = engine.compile_all()
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return Section(
        "Memory",
        "What the engine keeps once everything is compiled (tracemalloc), without policies and world themselves.",
        ("policies", "classes", "MB", "bytes per policy", "bytes per class"),
        [[policies, classes, kept / 1e6, kept / policies, kept / classes]],
    )
