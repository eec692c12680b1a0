"""What changes between two sets of policies, and whether a statement holds for all requests."""

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
from bench.report import Section, Target
from bench.timing import quiet, seconds_of
from bench.worlds import generate
from eastgate import Authority, load
from eastgate.cluster import Selector
from eastgate.dialects.gep3779.model import Action
from eastgate.reach.differences import compare
from eastgate.reports.invariants.model import (
    CallerGroup,
    CallerSelector,
    DestinationSelector,
    Quantifier,
    RequestSelector,
    Statement,
)
from eastgate.reports.invariants.proving import prove

__all__ = ["invariants", "run"]

T = TypeVar("T")

_WANTED = 0.5


def run(*, quick: bool) -> Section:
    """Compare two sets that differ in none, in one and in many policies."""
    policies = 250 if quick else 10_000
    section = Section(
        "What changes",
        "CPU seconds from two sets that are loaded and compiled to all requests that change their verdict, each with "
        "an example that both engines confirmed; or to the proof that there is none.",
        ("policies", "pods", "of them changed", "differences", "proven", "s"),
    )
    plan = generate(policies)
    old = _authority(plan)
    for changed in (0, 1, policies // 10):
        new = _authority(_changed(plan, changed))
        seconds, comparison = _timed(partial(compare, old, new))
        proven = "yes" if comparison.proven else "no"
        section.rows.append([policies, len(plan.pods), changed, len(comparison.differences), proven, seconds])
        section.points.append({"policies": policies, "changed": changed, "seconds": seconds})
        if changed == 1 and not quick:
            wanted = f"{policies:,} policies of which one differs: below {_WANTED} s"
            section.targets.append(Target(wanted, f"{seconds:.3f} s", seconds < _WANTED))
    return section


def invariants(*, quick: bool) -> Section:
    """Prove statements about all pods."""
    policies = 250 if quick else 12_500
    section = Section(
        "Invariants",
        "CPU seconds from policies that are loaded and compiled to a statement that is proven for all requests, or to "
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
    """Return the CPU seconds of some work, and what it returns."""
    results: list[T] = []
    with quiet():
        seconds = seconds_of(lambda: results.append(work()))
    return seconds, results[0]


def _guarded(plan: Plan) -> Plan:
    """Return the plan with a policy on every pod, and without rules that anybody meets."""
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
    authority.engine.compile_all()
    return authority


def _changed(plan: Plan, count: int) -> Plan:
    """Return the plan with one more caller in the first rule of so many policies, spread over all."""
    policies = list(plan.policies)
    step = len(policies) // count if count else len(policies) + 1
    for at in range(0, step * count, step):
        first, *others = policies[at].rules
        policies[at] = replace(policies[at], rules=(_widened(first), *others))
    return replace(plan, policies=policies)


def _widened(rule: RulePlan) -> RulePlan:
    return replace(rule, accounts=(*rule.accounts, "team-0/newcomer"))
