"""The sets of callers that reach each pod and port: pods times accounts times ports."""

from __future__ import annotations

import gc
import json
import sys

from bench.children import resident_bytes, run_child
from bench.objects import policy_of
from bench.report import Section, Target
from bench.timing import median_of
from bench.worlds import generate
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import Manifests
from eastgate.dialects import Policy
from eastgate.engine.programs import Programs
from eastgate.ir import Request
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT, SERVICE
from eastgate.ir.symbolic.callers import IdentityCell
from eastgate.reach.matrix import Matrix, reach_matrix
from eastgate.settings import Settings

__all__ = ["SIZES", "child", "run"]

PORTS = (80, 443, 8080, 8443, 9000, 9090)
SIZES = {1_000: 500, 10_000: 5_000, 100_000: 50_000}  # pods: policies
_REPLICAS = 5
_MAX_CHILD_SECONDS = 600.0
_MAX_SECONDS = {10_000: 0.15, 100_000: 3.0}
_COMPARED_ANSWERS = 5_000  # with decisions of the engine


def run(*, quick: bool) -> Section:
    """Measure each size; one row for each."""
    section = Section(
        "Who reaches whom: all pods, accounts and ports",
        f"CPU seconds from loaded and compiled policies to all answers at {len(PORTS)} ports: for each pod "
        "and port the set of allowed callers, with undeclared accounts, other trust domains and anonymous callers. "
        "The median of several runs; MB: the growth of the process. A sample is compared with decisions.",
        ("pods", "accounts", "policies", "classes", "cells of callers", "s", "MB", "ns per answer"),
    )
    for pods in [1_000] if quick else SIZES:
        measured = run_child("bench.reach.matrix", str(pods), seconds=_MAX_CHILD_SECONDS)
        if measured is None:
            section.rows.append([pods, "", SIZES[pods], "", "", f"over {_MAX_CHILD_SECONDS:.0f} s", "", ""])
            continue
        answers = pods * measured["cells"] * len(PORTS)
        section.rows.append(
            [
                pods,
                measured["accounts"],
                SIZES[pods],
                measured["classes"],
                measured["cells"],
                measured["seconds"],
                measured["bytes"] / 1e6,
                measured["seconds"] / answers * 1e9,
            ]
        )
        section.points.append({"pods": pods, **measured})
        if pods in _MAX_SECONDS:
            wanted = f"{pods:,} pods: below {_MAX_SECONDS[pods]} s"
            seconds = measured["seconds"]
            section.targets.append(Target(wanted, f"{seconds:.3f} s", seconds < _MAX_SECONDS[pods]))
    return section


def child(pods: int) -> dict[str, float]:
    """Measure one size, in this process."""
    plan = generate(SIZES[pods], replicas=_REPLICAS)
    authority = Authority(
        Manifests(Settings(), [*plan.pods, *plan.services], [policy_of(one) for one in plan.policies])
    )
    programs = programs_of(authority)
    classes = programs.compile_all()
    gc.collect()
    gc.freeze()
    before = resident_bytes()
    kept = [reach_matrix(authority, PORTS)]
    grown = resident_bytes() - before
    rounds = 5 if pods <= 10_000 else 1
    seconds = median_of([lambda: kept.append(reach_matrix(authority, PORTS))] * rounds)
    _compare(kept[0], programs)
    return {
        "seconds": seconds,
        "bytes": grown,
        "classes": classes,
        "cells": len(kept[0].callers.cells),
        "accounts": len(plan.identities),
    }


def _compare(matrix: Matrix, engine: Programs[Policy]) -> None:
    """Compare a sample of the answers with decisions of the engine."""
    callers = matrix.callers
    identities = [cell for cell in callers.cells if isinstance(cell, IdentityCell)]
    step = max(1, len(matrix.rows) * len(PORTS) * len(identities) // _COMPARED_ANSWERS)
    for number in range(0, len(matrix.rows) * len(PORTS) * len(identities), step):
        rest, which = divmod(number, len(identities))
        row, at = divmod(rest, len(PORTS))
        cell = identities[which]
        _, name = callers.callers.representative(cell)
        request = Request({IDENTITY: cell.identity, MESH_NAME: name, PORT: PORTS[at], SERVICE: None})
        allowed = engine.decide(matrix.rows[row].workloads[-1], request) & 1 == 1
        held = matrix.rows[row].at[at]
        if held.sure != held.possible or bool(held.sure & callers.set_of((cell,))) is not allowed:
            raise SystemExit(f"ANSWERS DIFFER: {cell} at {matrix.rows[row].workloads[-1]}, port {PORTS[at]}")


if __name__ == "__main__":
    print(json.dumps(child(int(sys.argv[1]))))
