"""Workloads, Gateways and Backends that nothing can reach, and by whose doing."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.api.questions import Question
from eastgate.dialects.linting import Finding, codes, locating
from eastgate.ir import Chain, Effect, Layer, Request
from eastgate.ir.attributes import PORT
from eastgate.reports.lint.chains import Analysis, places
from eastgate.reports.lint.context import command
from eastgate.reports.lint.hooks import blamed
from eastgate.reports.lint.inventory import Group, Inventory, Policy
from eastgate.reports.lint.possible import chains_for, is_written
from eastgate.symbolic.stages import allow_lists
from eastgate.symbolic.witnesses import GaveUp, witness

__all__ = ["locked_out"]


def locked_out(inventory: Inventory) -> Iterator[Finding]:
    """Tell of every class of workloads with a layer that allows nothing at all."""
    for group in inventory.groups:
        closed = next((i for i, layer in enumerate(group.layers) if _is_closed(layer, group, inventory)), None)
        if closed is not None:
            yield _finding(blamed(group, closed, inventory), group, inventory)


def _is_closed(layer: Layer, group: Group, inventory: Inventory) -> bool:
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
    allowing = [place for place in places(chain) if place.effect is Effect.ACCEPT and is_written(place.rule)]
    try:
        found = [(place, one) for place in allowing if (one := witness(place.rule.when)) is not None]
        if any(analysis.reaches(place, one) for place, one in found):  # nearly always, and quickly seen
            return False
        return all(analysis.escapes_all(place) is None for place, _ in found)
    except GaveUp:
        return False


def _finding(policies: list[Policy], group: Group, inventory: Inventory) -> Finding:
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
        command(Question("anonymous", group.destination, port)),
    )
