"""Eastgate's decisions about AuthConfigs, as rows that expect exactly these decisions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from eastgate.reports.tables import Rejection, Table, read_tables, run_tables
from eastgate.settings import Settings
from tests.authorino.running import Manifest
from tests.authorino.serving import is_config, manifests, name_of


def table_of(name: str, objects: list[Manifest], cases: list[Manifest], folder: Path) -> Table:
    """Return a table as if it were read from a file. As in Authorino, a `when` that errs skips."""
    document = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "DecisionTest",
        "metadata": {"name": "written"},
        "spec": {"settings": {"authorinoCompat": True}, "objects": objects, "cases": cases},
    }
    file = folder / "table.yaml"
    file.write_text(json.dumps(document, default=str), encoding="utf-8")
    (table,), reporter = read_tables([file], Settings())
    assert reporter.errors == [], reporter.errors[0].message
    return replace(table, name=name)


def decided(table: Table) -> Table:
    """Return a table that expects Eastgate's decisions: rejected AuthConfigs, and rows with verdict and status."""
    run = run_tables([table])
    is_broken = any(each.decision is None for each in run.results)
    codes = [each.code.id for each in run.diagnostics] if is_broken else []
    configs = [name_of(each) for each in manifests(table) if is_config(each)]
    rejections = (Rejection(f"AuthConfig/{name}", code, None, table.span) for code in codes[:1] for name in configs)
    decisions = [each.decision for each in run.results if each.decision is not None]
    cases = zip(table.cases, decisions, strict=True) if not is_broken else ()
    return replace(
        table,
        rejects=tuple(rejections),
        cases=tuple(
            replace(case, expect="allow" if decision.allowed else "deny", status=decision.status)
            for case, decision in cases
        ),
    )
