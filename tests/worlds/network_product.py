"""The decisions of the product about a cluster with network policies, from a decision table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from eastgate.authority.decisions import Decision
from eastgate.reports.tables import read_tables, run_tables
from eastgate.settings import Settings
from tests.worlds.network_oracle import Ask, Manifest


def decide(manifests: Sequence[Manifest], asks: Sequence[Ask]) -> list[Decision]:
    """Return the decision on each question."""
    table = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "DecisionTest",
        "metadata": {"name": "generated"},
        "spec": {"objects": list(manifests), "cases": [_case(index, ask) for index, ask in enumerate(asks)]},
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "generated.yaml"
        path.write_text(json.dumps(table), encoding="utf-8")
        tables, reporter = read_tables([path], Settings())
        assert [str(diagnostic) for diagnostic in reporter] == []
        results = run_tables(tables).results
    decisions = [result.decision for result in results]
    assert None not in decisions, [result.problem for result in results if result.decision is None]
    return [decision for decision in decisions if decision is not None]


def _case(index: int, ask: Ask) -> Manifest:
    case: Manifest = {"name": f"case {index}", "from": ask.source, "to": ask.to, "expect": "allow"}
    if ask.port is not None:
        case["port"] = ask.port
    if ask.protocol != "tcp":
        case["protocol"] = ask.protocol
    if ask.source_ip is not None:
        case["sourceIP"] = ask.source_ip
    return case
