"""Lint knows no dialect: each supplies the facts for general checks, and lint assumes none."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.dialects import DIALECTS, Policy
from eastgate.dialects.base import Dialect
from eastgate.dialects.linting import Statements
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe import describe
from eastgate.reports.lint import inventory as lint_inventory
from eastgate.reports.lint import run
from eastgate.reports.lint.inventory import PolicyInventory
from tests.reports.lint.corpus import HERE

SHOP = HERE.parents[2] / "examples" / "shop"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_dialect_tells_lint_of_its_policies(dialect: Dialect[Any]) -> None:
    linting = dialect.lint()
    assert [name for name in (field.name for field in fields(linting)) if not hasattr(linting, name)] == []
    assert all(callable(check) for check in linting.checks)


def test_statements_have_no_defaults() -> None:
    with pytest.raises(TypeError, match="missing"):
        Statements(rules=())  # type: ignore[call-arg]


def test_a_policy_of_no_dialect_is_an_error() -> None:
    class Stray:
        ref = "Stray/n/p"

    with pytest.raises(TypeError):
        lint_inventory.statements_of(cast("Policy", Stray()))


def test_the_codes_of_the_dialects_are_codes_of_lint() -> None:
    own = {code.id for code in lint_inventory.lint_codes().values()}
    assert {"EG6001", "EG6026", "EG6042", "EG6070", "EG6100"} <= own


def _cluster(path: Path) -> Cluster:
    return Cluster(Authority(read_manifests([path])))


def test_each_layer_has_the_dialect_that_made_it() -> None:
    inventory = PolicyInventory(_cluster(SHOP).authority)
    for group in inventory.groups:
        assert len(lint_inventory.dialects_by_layer(group, inventory)) == len(group.layers)


def test_a_broken_lint_is_seen_in_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_inventory: PolicyInventory) -> list[Any]:
        raise ImportError("broken")

    monkeypatch.setattr(run, "CHECKS", (broken,))
    with pytest.raises(ImportError, match="broken"):
        list(describe(_cluster(SHOP), "pod", None, None))
