"""Workloads with policies of two dialects: clients that the one allows and the other always denies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eastgate.authority.questions import Question
from eastgate.cluster import service_account_id
from eastgate.dialects.linting import Finding, codes, enumerated
from eastgate.ir import Chain, Layer, Request, Rule
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT
from eastgate.ir.symbolic.stages import allow_lists
from eastgate.ir.symbolic.truth import truth
from eastgate.reports.lint.hooks import dialects_by_layer
from eastgate.reports.lint.inventory import Group, PolicyInventory
from eastgate.reports.lint.possible import can_allow, chains_for
from eastgate.reports.lint.statements import Caller, callers_in

_MOST_RULES = 200  # of one layer


def find_disagreements(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report one example for each rule whose clients a layer of another dialect denies."""
    for group in inventory.workload_groups:
        if len(group.layers) < 2:
            continue
        layers = zip(group.layers, dialects_by_layer(group, inventory), strict=True)
        for (layer, dialect), (other, other_dialect) in combinations(layers, 2):
            if dialect is not other_dialect:
                yield from _refused(group, layer, other, inventory)
                yield from _refused(group, other, layer, inventory)


def _refused(group: Group, layer: Layer, other: Layer, inventory: PolicyInventory) -> Iterator[Finding]:
    ports = [port.number for port in inventory.workload(group.first).ports]
    for rule in _allowing(layer)[:_MOST_RULES]:
        for caller in _accounts(rule, inventory):
            for port in ports:
                request = _request(caller, port, inventory)
                if can_allow(layer, request) and _matches(rule, layer, request) and not can_allow(other, request):
                    yield _finding(_exposing(group, port, inventory), rule, other, caller, port, inventory)
                    break
            else:
                continue
            break  # one example for a rule is enough


def _allowing(layer: Layer) -> list[Rule]:
    rules = [
        rule
        for chain in layer.chains
        for rule in _listed(chain)
        if rule.origin.policy is not None and rule.origin.derived is None
    ]
    return list({(rule.origin.policy, rule.origin.index): rule for rule in rules}.values())


def _accounts(rule: Rule, inventory: PolicyInventory) -> list[Caller]:
    accounts = [
        caller for caller in callers_in(rule.when, None, inventory.settings) if caller.account not in (None, "*")
    ]
    return [caller for caller in accounts if caller.trust_domain == inventory.settings.trust_domain][:3]


def _request(caller: Caller, port: int, inventory: PolicyInventory) -> Request:
    namespace, account = caller.namespace or "", caller.account or ""
    identity = service_account_id(inventory.settings.trust_domain, namespace, account)
    return Request({IDENTITY: identity, MESH_NAME: inventory.settings.mesh_name(namespace, account), PORT: port})


def _matches(rule: Rule, layer: Layer, request: Request) -> bool:
    """Return whether it is this rule that lets the client in, on this port."""
    return any(
        candidate.origin == rule.origin and truth(candidate.when, request) is not False
        for chain in chains_for(layer, request)
        for candidate in _listed(chain)
    )


def _listed(chain: Chain) -> Iterator[Rule]:
    """Yield the rules of the allow lists of a chain."""
    return (arm.rule for stage in allow_lists(chain) for arm in stage.accepting)


def _exposing(group: Group, port: int, inventory: PolicyInventory) -> list[str]:
    """Return the workloads of a class that declare a port; what else they declare may differ."""
    return [key for key in group.members if any(declared.number == port for declared in inventory.workload(key).ports)]


def _finding(
    members: list[str], rule: Rule, other: Layer, caller: Caller, port: int, inventory: PolicyInventory
) -> Finding:
    source = f"sa:{caller.namespace}/{caller.account}"
    question = Question.of(source, f"pod:{members[0]}", port=port)
    message = f"{rule.origin} allows {source} on port {port} of {enumerated(members)}, and {other.name} denies it"
    subjects = (str(rule.origin.policy), *members)
    help_ = f"allow it at {other.name} too, or remove it here: both must allow"
    return Finding(codes.LAYERS_DISAGREE, message, rule.origin.span, help_, subjects, inventory.command(question))
