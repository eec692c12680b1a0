"""The hooks of lint for network policies. The checks are in the files `lint_*`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from eastgate.cluster.points import Direction
from eastgate.dialects.base import Policy
from eastgate.dialects.linting import Context, Finding, Linting, Statements, enumerated, locating
from eastgate.dialects.network import lint_codes as codes
from eastgate.dialects.network.lint_ends import check_dns, check_host_network, check_one_side, check_tunnel
from eastgate.dialects.network.lint_peers import check_addresses, check_and_or, check_peers, check_ports
from eastgate.dialects.network.lint_pods import PodClass, SelectedPods, network_policies
from eastgate.dialects.network.model import NetworkPolicy, NetworkTier
from eastgate.dialects.network.provenance import StageName
from eastgate.ir import ALWAYS, AllowAny, Effect, FirstMatch, Layer, Not, Origin, Predicate, Rule, Step, all_of, any_of

# Rules and policies without effect, or without a defined order


_KINDS_OF_V1ALPHA1 = ("AdminNetworkPolicy", "BaselineAdminNetworkPolicy")


# The directions that a NetworkPolicy isolates for


def check_isolation(context: Context) -> Iterator[Finding]:
    """Report NetworkPolicies that isolate for fewer or more directions than their text suggests."""
    for policy in network_policies(context):
        if policy.tier is not NetworkTier.NAMESPACED:
            continue
        subjects = (str(policy.ref),)
        for rule in policy.unused:
            message = f"{policy.ref} has rules for a direction that its policyTypes do not list"
            help_ = "list the direction in policyTypes, or remove the rules"
            yield Finding(codes.UNUSED_RULES, message, rule.rule.origin.span, help_, subjects)
        for direction, rules in policy.rules.items():
            for rule in rules:
                if rule.rule.when == ALWAYS:
                    of = "from anywhere" if direction is Direction.INGRESS else "to anywhere"
                    message = f"{policy.ref} allows all {direction}, {of}"
                    help_ = f"to allow nothing write {direction}: []"
                    span = rule.rule.origin.span
                    yield Finding(codes.ALLOWS_EVERYTHING, message, span, help_, subjects, cause=direction)
        if policy.types_span is None:
            yield from _defaults(policy)


def _defaults(policy: NetworkPolicy) -> Iterator[Finding]:
    spec = locating.root_of(policy.span).get("spec")
    egress = spec.get("egress") if spec is not None else None
    ingress = spec.get("ingress") if spec is not None else None
    if egress is not None and egress.value == []:
        message = f"{policy.ref} does not isolate for egress: all egress is allowed"
        help_ = "write policyTypes: [Ingress, Egress], or only [Egress]"
        yield Finding(codes.EGRESS_OPEN, message, egress.span, help_, (str(policy.ref),))
    if policy.rules.get(Direction.EGRESS) and ingress is None:
        message = f"{policy.ref} has only rules for egress, and allows no ingress"
        help_ = "write policyTypes: [Egress], or [Ingress, Egress] if this is intended"
        span = egress.span if egress is not None else policy.span
        yield Finding(codes.INGRESS_CLOSED, message, span, help_, (str(policy.ref),))


# Unreachable rules


def check_unreached(context: Context) -> Iterator[Finding]:
    """Report rules that other rules precede on every pod, and baselines whose pods all have NetworkPolicies."""
    pods = SelectedPods(context)
    tied = {policy.ref for pair in _unordered(pods) for policy in pair}  # `check_order` reports these
    reached: set[Origin] = set()
    hidden: dict[Origin, list[str]] = {}
    for pod_class in pods.classes:
        for layer in pod_class.layers.values():
            for rule, before in _rules_with_preconditions(layer):
                if rule.origin.policy is None or rule.origin.policy in tied or rule.origin in reached:
                    continue
                if context.is_possible(all_of([rule.when, *before])):
                    reached.add(rule.origin)
                else:
                    hidden.setdefault(rule.origin, []).extend(pod.key for pod in pod_class.members)
    for origin, members in hidden.items():
        if origin not in reached:
            message = f"{origin} is never reached: earlier rules decide all its connections on {enumerated(members)}"
            help_ = "remove it, or put it before these rules"
            yield Finding(codes.UNREACHED, message, origin.span, help_, (str(origin.policy), *members[:3]))
    yield from _unreached_baselines(pods)


def _rules_with_preconditions(layer: Layer) -> Iterator[tuple[Rule, list[Predicate]]]:
    """Yield each rule of a layer, with the conditions under which a connection reaches it."""
    goes_on: list[Predicate] = []
    for stage in layer.otherwise.stages:
        if isinstance(stage, FirstMatch) and stage.name != StageName.ITSELF:
            decided: list[Predicate] = []
            for step in stage.steps:
                yield step.rule, [*goes_on, *([Not(any_of(decided))] if decided else [])]
                decided.append(step.rule.when)
            goes_on.append(_passes(stage.steps))
        elif isinstance(stage, AllowAny):
            yield from ((rule, goes_on) for rule in stage.rules)


def _passes(steps: Sequence[Step]) -> Predicate:
    """Return the condition under which a tier passes a connection on: no rule matches it, or a Pass is the first."""
    deciding: list[Predicate] = []
    passing: list[Predicate] = []
    for step in steps:
        if step.effect is Effect.PASS:
            passing.append(all_of([step.rule.when, Not(any_of(deciding))]) if deciding else step.rule.when)
        else:
            deciding.append(step.rule.when)
    return any_of([*passing, Not(any_of(deciding))]) if deciding else ALWAYS


def _unreached_baselines(pods: SelectedPods) -> Iterator[Finding]:
    for policy, selected in pods.by_policy.items():
        if policy.tier is not NetworkTier.BASELINE or not selected or not policy.rules or policy.audit:
            continue
        classes = [pod_class for pod_class in pods.classes if policy in pod_class.policies]
        if classes and all(_is_isolated(pod_class, direction) for pod_class in classes for direction in policy.rules):
            message = f"{policy.ref} has no effect: NetworkPolicies select all its pods"
            help_ = "write rules that must always hold in the Admin tier"
            span = policy.subject_span
            yield Finding(codes.BASELINE_UNREACHED, message, span, help_, (str(policy.ref),))


def _is_isolated(pod_class: PodClass, direction: Direction) -> bool:
    return any(policy.isolates and direction in policy.rules and not policy.audit for policy in pod_class.policies)


# Order


def check_order(context: Context) -> Iterator[Finding]:
    """Report policies of one tier whose order is not defined, on pods that both select."""
    pods = SelectedPods(context)
    for (first, second), keys in _unordered(pods).items():
        on = enumerated(keys)
        subjects = (str(second.ref), str(first.ref), *keys[:3])
        if first.ref.kind == second.ref.kind:
            message = f"{first.ref} and {second.ref} have priority {first.priority}, and both select {on}"
            help_ = f"write another priority ({first.span.location})"
            span = locating.at(second.span, "spec", "priority")
            yield Finding(codes.EQUAL_PRIORITY, message, span, help_, subjects)
        else:
            old, new = sorted((first, second), key=lambda policy: policy.ref.kind not in _KINDS_OF_V1ALPHA1)
            message = f"{old.ref} and {new.ref} both select {on}, and their order is not defined"
            help_ = f"write {old.ref} as a ClusterNetworkPolicy, too"
            yield Finding(codes.TWO_GENERATIONS, message, old.span, help_, subjects)


def _unordered(pods: SelectedPods) -> dict[tuple[NetworkPolicy, NetworkPolicy], list[str]]:
    pairs: dict[tuple[NetworkPolicy, NetworkPolicy], list[str]] = {}
    for pod_class in pods.classes:
        tiered = [policy for policy in pod_class.policies if not policy.isolates and not policy.audit]
        for first, second in combinations(tiered, 2):
            is_tie = first.priority == second.priority or first.ref.kind != second.ref.kind
            if first.tier is second.tier and is_tie and first.rules.keys() & second.rules.keys():
                pairs.setdefault((first, second), []).extend(pod.key for pod in pod_class.members)
    return pairs


def _statements(policy: NetworkPolicy) -> Statements:
    return Statements(
        rules=tuple(rule.rule for rule in policy.all_rules),
        naming=(),
        targets=policy.targets,
        target_field="podSelector" if policy.isolates else "subject",
        allows=False,
        empty_list=None,
    )


def _blames(policy: Policy, _layer: Layer) -> bool:
    return isinstance(policy, NetworkPolicy)


LINTING: Linting[NetworkPolicy] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(),
    fallback=None,
    checks=(
        check_isolation,
        check_peers,
        check_and_or,
        check_ports,
        check_addresses,
        check_unreached,
        check_order,
        check_one_side,
        check_dns,
        check_host_network,
        check_tunnel,
    ),
    codes=(codes,),
)
