"""Workloads, Gateways and Backends that nothing can reach, and the policies that close them."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authority.questions import Question
from eastgate.dialects.linting import Finding, codes, locating
from eastgate.ir import Chain, Effect, Layer, Request
from eastgate.ir.attributes import PORT
from eastgate.ir.symbolic.stages import allow_lists
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reports.lint.chains import Analysis, rules_in
from eastgate.reports.lint.hooks import policies_to_blame
from eastgate.reports.lint.inventory import Group, Policy, PolicyInventory
from eastgate.reports.lint.possible import admits_clients, chains_for


def find_closed_points(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report every point with a layer that allows nothing at all."""
    for group in inventory.groups:
        closed = next((i for i, layer in enumerate(group.layers) if _is_closed(layer, group, inventory)), None)
        if closed is not None:
            yield _finding(policies_to_blame(group, closed, inventory), group, inventory)


def _is_closed(layer: Layer, group: Group, inventory: PolicyInventory) -> bool:
    ports: list[int] = []
    if group.is_workload:
        ports = sorted({port.number for key in group.members[:50] for port in inventory.workload(key).ports})
    requests = [Request({PORT: port}) for port in ports] or [Request({})]
    chains = {id(chain): chain for request in requests for chain in chains_for(layer, request)}
    return all(_allows_nothing(layer, chain) for chain in chains.values())


def _allows_nothing(layer: Layer, chain: Chain) -> bool:
    if not any(allow_lists(chain)):
        return False
    analysis = Analysis(layer, chain)
    allowing = [
        candidate
        for candidate in rules_in(chain)
        if candidate.effect is Effect.ACCEPT and admits_clients(candidate.rule)
    ]
    try:
        witnesses = [
            (candidate, request) for candidate in allowing if (request := witness(candidate.rule.when)) is not None
        ]
        if any(
            analysis.is_reached_by(candidate, request) for candidate, request in witnesses
        ):  # nearly always, and quickly seen
            return False
        return all(analysis.find_undecided(candidate) is None for candidate, _ in witnesses)
    except GaveUp:
        return False


def _finding(policies: list[Policy], group: Group, inventory: PolicyInventory) -> Finding:
    names = ", ".join(str(policy.ref) for policy in policies) or "the default policy"
    message = (
        f"nothing can reach {group.text}: {names} {'applies' if len(policies) < 2 else 'apply'}, and nothing allows"
    )
    port = next((port.number for port in inventory.workload(group.first).ports), None) if group.is_workload else None
    span = locating.name_of(policies[0].span) if policies else None
    if span is None and group.is_workload:
        span = locating.name_of(inventory.workload(group.first).span)
    return Finding(
        codes.LOCKED_OUT,
        message,
        span,
        'allow somebody; if nobody is meant to reach it, say so: eastgate.dev/lint-ignore: "EG6040: <why>"',
        (*(str(policy.ref) for policy in policies), *group.subjects),
        inventory.command(Question.of("anonymous", group.destination, port=port)),
    )
