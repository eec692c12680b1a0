"""The cost of proving that a statement holds for all requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from bench.manifests import manifests_of
from bench.objects import SPAN
from bench.plans import Plan, PolicyPlan, RulePlan
from bench.report import Section
from bench.timing import quiet, seconds_of
from bench.worlds import generate
from eastgate import Authority, load
from eastgate.authority.authority import programs_of
from eastgate.cluster import Selector
from eastgate.dialects.gep3779.model import Action
from eastgate.reports.invariants.model import (
    CallerGroup,
    CallerSelector,
    DestinationSelector,
    Quantifier,
    RequestSelector,
    Statement,
)
from eastgate.reports.invariants.proving import prove

__all__ = ["run"]

T = TypeVar("T")


def run(*, quick: bool) -> Section:
    """Prove statements about all pods."""
    policies = 250 if quick else 12_500
    section = Section(
        "Invariants",
        "CPU seconds from loaded and compiled policies to a statement that is proven for all requests, or to "
        "a request that breaks it.",
        ("statement", "pods", "policies", "holds", "s"),
    )
    plan = _guarded(generate(policies))
    authority = _authority(plan)
    pods = DestinationSelector(Selector.of(), Selector.of(), (), (), (), SPAN)
    strangers, accounts = (
        CallerSelector(CallerGroup(anonymous=True)),
        CallerSelector(CallerGroup(accounts=frozenset({("team-0", "*")}))),
    )
    for name, mode, callers, existing_only in (
        ("anonymous callers never reach a pod that exists", Quantifier.NEVER, strangers, True),
        ("anonymous callers never reach any pod, also none that may come", Quantifier.NEVER, strangers, False),
        ("accounts of one namespace never reach a pod", Quantifier.NEVER, accounts, True),
    ):
        statement = Statement(mode, callers, pods, RequestSelector(), SPAN, existing_only)
        seconds, finding = _timed(partial(prove, authority, statement))
        section.rows.append([name, len(plan.pods), len(plan.policies), str(finding.standing), seconds])
    return section


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Return the CPU seconds of some work, and its result."""
    results: list[T] = []
    with quiet():
        seconds = seconds_of(lambda: results.append(work()))
    return seconds, results[0]


def _guarded(plan: Plan) -> Plan:
    """Return the plan with a policy on every pod, and without rules that match every caller."""
    namespaces = dict.fromkeys(pod.namespace for pod in plan.pods)
    every = [
        PolicyPlan(namespace, "all-pods", Action.ALLOW, (RulePlan(accounts=(f"{namespace}/*",)),))
        for namespace in namespaces
    ]
    policies = [
        replace(policy, rules=tuple(rule for rule in policy.rules if not rule.anyone) or every[0].rules)
        for policy in plan.policies
        if policy.service is None
    ]
    return replace(plan, policies=[*every, *policies])


def _authority(plan: Plan) -> Authority:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "all.json"
        items: Sequence[object] = list(manifests_of(plan))
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        authority = load(path)
    programs_of(authority).compile_all()
    return authority
