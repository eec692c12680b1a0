"""No code reads text for people: other words for the origins of rules and chains change only words."""

from __future__ import annotations

from types import ModuleType

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.dialects import rejected
from eastgate.dialects.accesspolicy import provenance as access
from eastgate.dialects.gep3779 import provenance as gep3779
from eastgate.dialects.kuadrant.proposal import provenance as kuadrant
from eastgate.dialects.linkerd import provenance as linkerd
from eastgate.dialects.network import provenance as network
from eastgate.ir import ImpliedRule, Placement
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.modes import modes
from eastgate.settings import Settings
from tests.reports.lint.corpus import CASES, HERE, findings

Facts = list[tuple[object, ...]]


@pytest.fixture(autouse=True)
def _paths_start_in_this_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def spoken(module: ModuleType) -> list[type]:
    """Return the classes of a module that have words of their own."""
    here = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    return [one for one in here if "__str__" in vars(one)]


CLASSES = [one for module in (access, gep3779, kuadrant, linkerd, network, rejected) for one in spoken(module)]


def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in [*CLASSES, ImpliedRule, Placement]:
        monkeypatch.setattr(one, "__str__", lambda self: f"lorem {self!r}")


def facts_of(case: str) -> Facts:
    """Return the findings and their places, and the mode of each layer with its cause."""
    settings = Settings()
    authority = Authority(read_manifests([HERE / "cases" / case / "found.yaml"], settings), settings, strict=False)
    cluster = Cluster(authority)
    facts: Facts = [
        (one.code.id, one.severity, one.span and one.span.line, one.subjects, one.example)
        for one in findings.__wrapped__(case, "found.yaml")
    ]
    for workload in authority.world.workloads.values():
        facts += [(workload.key, one.mode, one.policies, one.where) for one in modes(cluster, workload)]
        facts.append((workload.key, cluster.effects(workload.key)))
    return facts


def test_there_are_words_to_change() -> None:
    assert {"AccessPolicy", "DenyOnlyReading", "InboundScope", "Unreadable", "SchemeNumber"} <= {
        one.__name__ for one in CLASSES
    }


@pytest.mark.parametrize("case", CASES)
def test_other_words_change_no_finding_and_no_mode(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = facts_of(case)
    reworded(monkeypatch)
    assert facts_of(case) == before
