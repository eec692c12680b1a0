"""The cost of comparing two loaded sets of policies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bench.manifests import manifests_of
from bench.report import Section, Target
from bench.timing import once
from bench.worlds import generate
from eastgate import Authority
from eastgate.authority.reading import read_plain
from eastgate.settings import Settings

__all__ = ["run"]

_MAX_SECONDS = 0.5  # for one change


def run(*, quick: bool) -> Section:
    """Measure each number of differing policies; one row for each."""
    policies = 250 if quick else 10_000
    section = Section(
        "Comparisons",
        "CPU seconds of a comparison of two loaded sets of policies, and the number of changes that it found. In each "
        "policy that differs, one more account is named.",
        ("policies", "pods", "differ in", "s", "changes"),
    )
    plan = generate(policies)
    manifests = json.loads(json.dumps(list(manifests_of(plan))))
    old = _authority(manifests)
    first = 0.0
    for differing in (0, 1, policies // 10):
        new = _authority(_changed(manifests, differing))
        changes: list[int] = []
        took = once(lambda: changes.append(len(old.diff(new).changes)))  # noqa: B023 - it is called at once
        first = took if differing == 1 else first
        section.rows.append([policies, len(plan.pods), differing, took, changes[0]])
    if not quick:
        wanted = f"a comparison of two sets of {policies:,} policies that differ in one takes under {_MAX_SECONDS} s"
        section.targets = [Target(wanted, f"{first:.2f} s", first < _MAX_SECONDS)]
    return section


def _authority(manifests: Iterable[dict[str, Any]]) -> Authority:
    return Authority(read_plain(list(manifests), Settings()))


def _changed(manifests: list[dict[str, Any]], differing: int) -> list[dict[str, Any]]:
    """Return the manifests with one more caller in `differing` of the policies."""
    policies = [number for number, manifest in enumerate(manifests) if manifest["kind"] == "AuthorizationPolicy"]
    chosen = set(policies[:: max(1, len(policies) // differing)][:differing]) if differing else set()
    return [_with_caller(manifest) if number in chosen else manifest for number, manifest in enumerate(manifests)]


def _with_caller(manifest: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = json.loads(json.dumps(manifest))
    rules = changed["spec"].setdefault("rules", [])
    rules.append({"authorizationSource": {"serviceAccounts": ["bench/newcomer"]}})
    return changed
