"""The modes that `up` prints, in addition to those of `get`."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate import load
from eastgate.authority.authority import programs_of
from eastgate.control.capturing import PortMode, changed_modes, mode_of
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AllowAny,
    Ask,
    AskAll,
    Chain,
    Deny,
    Effect,
    FirstMatch,
    Is,
    Layer,
    Observe,
    OneOf,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Rule,
    Stage,
    Step,
)
from eastgate.ir.attributes import PORT
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.modes import modes, summary
from tests.local.running import SHOP

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("folder", [SHOP, EXAMPLES / "linkerd" / "manifests"], ids=lambda path: path.parent.name)
def test_they_are_the_same(folder: Path) -> None:
    authority = load(folder)
    cluster = Cluster(authority)
    found = {key: str(mode_of(programs_of(authority).program(key).layers)) for key in authority.world.workloads}
    shown = {key: summary(modes(cluster, workload)) for key, workload in authority.world.workloads.items()}
    assert found == {key: "allow-list" if mode == "closed" else mode for key, mode in shown.items()}


def test_a_workload_without_policies_is_open(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\n")
    assert mode_of(programs_of(load(tmp_path)).program("default/p").layers) == "open"


_TO_80 = Is(PORT, OneOf(frozenset({80})))


def _rule(when: Predicate = _TO_80) -> Rule:
    return Rule(when, Origin(PolicyRef("Policy", "ns", "p"), 0))


@pytest.mark.parametrize(
    ("stage", "mode"),
    [
        (Observe("audit", (_rule(ALWAYS),), ("DENY",)), PortMode.OPEN),
        (AllowAny("allow", ()), PortMode.ALLOW_LIST),
        (AllowAny("allow", (_rule(),)), PortMode.ALLOW_LIST),
        (AllowAny("allow", (_rule(), _rule(ALWAYS))), PortMode.OPEN),
        (Deny("deny", ()), PortMode.OPEN),
        (Deny("deny", (_rule(NEVER),)), PortMode.OPEN),
        (Deny("deny", (_rule(),)), PortMode.OPEN_EXCEPT),
        (Deny("deny", (_rule(), _rule(ALWAYS))), PortMode.ALLOW_LIST),
        (AskAll("ask", ()), PortMode.OPEN),
        (AskAll("ask", (Ask(_rule(ALWAYS), "authz"),)), PortMode.OPEN_EXCEPT),
        (FirstMatch("tier", (Step(_rule(), Effect.ACCEPT),)), PortMode.OPEN),
        (FirstMatch("tier", (Step(_rule(), Effect.DENY),)), PortMode.OPEN_EXCEPT),
        (FirstMatch("tier", (Step(_rule(ALWAYS), Effect.DENY),)), PortMode.OPEN_EXCEPT),
        (FirstMatch("tier", (), Effect.DENY), PortMode.ALLOW_LIST),
    ],
)
def test_each_stage_has_a_mode(stage: Stage, mode: PortMode) -> None:
    assert mode_of([Layer(Placement(None, "workload"), Chain((stage,)))]) is mode


def test_only_the_ports_that_changed_are_named() -> None:
    was = {80: PortMode.OPEN, 90: PortMode.ALLOW_LIST}
    assert changed_modes("a/b", was, was) == {}
    assert changed_modes("a/b", was, {80: PortMode.OPEN, 90: PortMode.OPEN}) == {
        "a/b:90": (PortMode.ALLOW_LIST, PortMode.OPEN)
    }
    assert changed_modes("a/b", {80: PortMode.OPEN}, {80: PortMode.ALLOW_LIST}) == {
        "a/b": (PortMode.OPEN, PortMode.ALLOW_LIST)
    }
    assert changed_modes("a/b", None, {80: PortMode.OPEN, 90: PortMode.OPEN}) == {"a/b": (None, PortMode.OPEN)}
    assert changed_modes("a/b", None, {80: PortMode.ALLOW_LIST, 90: PortMode.OPEN}) == {"a/b:90": (None, PortMode.OPEN)}
    assert changed_modes("a/b", None, {80: PortMode.ALLOW_LIST}) == changed_modes("a/b", None, {}) == {}
