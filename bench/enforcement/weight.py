"""The memory that enforcement needs: the control plane, in a process of its own, and its proxies."""

from __future__ import annotations

import asyncio
import gc
import json
import sys

from bench.children import resident_bytes, run_child
from bench.enforcement.changes import enforcing, put_policy
from bench.enforcement.rules import policy
from bench.report import Section

__all__ = ["child", "run"]

_MAX_CPU_SECONDS = 120.0
_KINDS = {"request": True, "connection": False}


def run(cases: tuple[tuple[str, int, int], ...]) -> Section:
    """Measure each kind and number of rules, and number of proxies; one row for each."""
    section = Section(
        "Enforcement: memory",
        "MB. control plane: the growth of a process from before it makes the policies until all proxies enforce them "
        "(policies, programs, plans, resources, the gRPC server), and after one more change. proxy: resident memory "
        "of an Envoy, on average. One process for each row, one run.",
        ("rules on", "rules", "proxies", "control plane", "after a change", "a proxy"),
    )
    for kind, rules, proxies in cases:
        found = run_child("bench.enforcement.weight", kind, str(rules), str(proxies), seconds=_MAX_CPU_SECONDS)
        if found is None:
            section.rows.append([kind, rules, proxies, f"over {_MAX_CPU_SECONDS:.0f} s", "-", "-"])
            continue
        section.rows.append([kind, rules, proxies, *(value / 1e6 for value in found.values())])
        section.points.append({"weighed": kind, "rules": rules, "proxies": proxies, **found})
    return section


def child(kind: str, rules: int, proxies: int) -> dict[str, float]:
    """Return the memory that one case needs, measured in this process."""
    return asyncio.run(_weighed(rules, proxies, http=_KINDS[kind]))


async def _weighed(rules: int, proxies: int, *, http: bool) -> dict[str, float]:
    gc.collect()
    before = resident_bytes()
    async with enforcing(rules, proxies, http=http) as (plane, enforcement, nodes):
        gc.collect()
        grown = resident_bytes() - before
        put_policy(enforcement, policy(rules - 1, http=http, other=True))
        await plane.settled(nodes)
        gc.collect()
        envoys = [plane.envoys[node].resident_bytes() for node in nodes]
        again = resident_bytes() - before
    return {"bytes": grown, "bytes_after": again, "proxy": sum(envoys) / len(envoys)}


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
