"""Policies of all dialects in the same words: action, targets and rules.

Each dialect supplies the content (`eastgate.dialects.words`). This module turns it into text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import Selector, Workload
from eastgate.cluster.targets import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    GatewaysMatching,
    HostNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    RulesOfGateway,
    RulesOfRoute,
    Target,
)
from eastgate.dialects import Policy, dialect_of
from eastgate.dialects.words import NO_ACTION, DescribedRule, DescribedTarget, DescribedTier
from eastgate.ir import Origin
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.model import DescribedField, list_field
from eastgate.reports.effective.words import rule_text
from eastgate.reports.lint import Finding, lint
from eastgate.settings import Settings

# The findings of lint about one object


_MAX_WORKLOADS = 2_000  # lint examines all workloads; with more, the user runs it separately


def findings_field(cluster: Cluster, subjects: Collection[str]) -> DescribedField:
    """List the findings about any of the subjects: workloads by key, other objects as `Kind/namespace/name`."""
    if len(cluster.authority.world.workloads) > _MAX_WORKLOADS:
        lines = [f"not computed: there are more than {_MAX_WORKLOADS:,} workloads; run eastgate lint"]
        return list_field("findings", "Findings", None, lines)
    about = [finding for finding in _all(cluster) if set(finding.subjects) & set(subjects)]
    lines = [f"{finding.code.id} {finding.severity}: {finding.message}" for finding in about]
    data = [finding.to_json() for finding in about]
    return (
        list_field("findings", "Findings", data, lines) if lines else DescribedField("findings", "Findings", data, ())
    )


def _all(cluster: Cluster) -> list[Finding]:
    if cluster.findings is None:
        cluster.findings = lint(cluster.authority)
    return cluster.findings


@dataclass(frozen=True, slots=True)
class TargetInWords:
    """A target of a policy as text, in the format of the draft's table. `target` is its selector."""

    kind: str
    text: str
    target: Target | None = None
    is_selector: bool = False

    @property
    def expression(self) -> str:
        return f"Selector={self.text}" if self.is_selector else self.text


@dataclass(frozen=True, slots=True)
class RuleInWords:
    """One rule as text: its action, its requirements and its span."""

    does: str
    asks: str
    origin: Origin | None
    span: Span | None


def action_of(policy: Policy) -> str:
    """Return the action of a policy on the requests that it matches."""
    return dialect_of(policy).words.action(policy)


def level_of(policy: Policy) -> str:
    """Return the level at which a policy is enforced."""
    return dialect_of(policy).words.level(policy)


def tier_of(policy: Policy) -> DescribedTier | None:
    """Return the tier of a policy, or None."""
    return dialect_of(policy).words.tier(policy)


def is_indirect(policy: Policy) -> bool:
    """Return whether a policy is attached more widely than it applies. Its matched terms then explain nothing."""
    return dialect_of(policy).words.is_indirect(policy)


def why_idle(policy: Policy, problem: str | None, *, selects: bool) -> str:
    """Return the reason why a valid policy has no effect."""
    return dialect_of(policy).words.why_idle(policy, problem, selects)


def does_text(policy: Policy) -> str:
    """Return the action, level and tier of a policy on one line."""
    tier = tier_of(policy)
    parts = [action_of(policy), level_of(policy)]
    if tier is not None:
        parts.append(f"tier {tier.name}, priority {tier.priority}")
    if policy.audit:
        parts.append("audit: it decides nothing")
    return ", ".join(part for part in parts if part != NO_ACTION)


# Targets


def targets_of(policy: Policy, document: Document | None) -> list[TargetInWords]:
    """Return the targets, with the terms of selectors in the order of the manifest."""
    order = _Order(document)
    described = dialect_of(policy).words.targets(policy)
    if described is None:
        return [_target(target, order) for target in policy.targets]
    return [_described_target(target, order) for target in described]


def _described_target(described: DescribedTarget, order: _Order) -> TargetInWords:
    expression = described.expression
    if isinstance(expression, str):
        return TargetInWords(described.kind, expression, described.target)
    return TargetInWords(described.kind, order.text(expression), described.target, is_selector=True)


_NAMED = {PodNamed: "Pod", GatewayNamed: "Gateway", RouteNamed: "HTTPRoute", BackendNamed: "Backend"}
_SELECTED = {PodsMatching: "Pod", ExternalsMatching: "ExternalWorkload", GatewaysMatching: "Gateway"}


def _target(target: Target, order: _Order) -> TargetInWords:
    match target:
        case PodsMatching(_, selector) | ExternalsMatching(_, selector) | GatewaysMatching(_, selector):
            return TargetInWords(_SELECTED[type(target)], order.text(selector), target, is_selector=True)
        case PodsOfService(_, service):
            return TargetInWords("Service", service, target)
        case PodsAcross():
            return _pods_across(target, order)
        case PodsOwnedBy(_, kind, name):
            return TargetInWords(kind, name, target)
        case PodsOfAccount(_, account):
            return TargetInWords("ServiceAccount", account, target)
        case Everything():
            return TargetInWords("Everything", str(target), target)
        case PodNamed(_, name) | GatewayNamed(_, name) | RouteNamed(_, name) | BackendNamed(_, name):
            return TargetInWords(_NAMED[type(target)], name, target)
        case HostNamed(host):
            return TargetInWords("Host", host, target)
        case RulesOfGateway(_, name, section) | RulesOfRoute(_, name, _, section):
            kind = target.kind if isinstance(target, RulesOfRoute) else "Gateway"
            return TargetInWords(kind, name if section is None else f"{name}, section {section}", target)


def _pods_across(target: PodsAcross, order: _Order) -> TargetInWords:
    pods = order.text(target.pods)
    if target.namespaces == Selector.of():
        return TargetInWords("Pod", pods, target, is_selector=True)
    return TargetInWords("Pod", f"NamespaceSelector={order.text(target.namespaces)} Selector={pods}", target)


class _Order:
    """The order of labels in a manifest. Labels that the manifest does not have come last, by name."""

    def __init__(self, document: Document | None) -> None:
        self._ranks: dict[str, int] = {}
        if document is not None and document.node is not None:
            for key in _label_keys(document.node):
                self._ranks.setdefault(key, len(self._ranks))

    def text(self, selector: Selector) -> str:
        """Render a selector as the draft does: `{foo: a, bar: 2}`."""
        terms = [(key, f"{key}: {value}") for key, value in selector.match_labels]
        terms += [(requirement.key, str(requirement)) for requirement in selector.expressions]
        return "{" + ", ".join(text for _, text in sorted(terms, key=self._rank)) + "}"

    def _rank(self, term: tuple[str, str]) -> tuple[int, str, str]:
        return self._ranks.get(term[0], len(self._ranks)), *term


def _label_keys(node: Node) -> Iterator[str]:
    if isinstance(node.value, dict):
        for key, value in node.items():
            if key == "matchLabels" and isinstance(value.value, dict):
                yield from value.value
            elif key == "key" and isinstance(value.value, str):
                yield value.value
            else:
                yield from _label_keys(value)
    elif isinstance(node.value, list):
        for child in node:
            yield from _label_keys(child)


def matched_terms(target: Target, workload: Workload, namespace_labels: Mapping[str, str]) -> list[str]:
    """Return the terms of a target that matched a workload."""
    match target:
        case PodsMatching(_, selector) | ExternalsMatching(_, selector) | GatewaysMatching(_, selector):
            return list(selector.matched_terms(workload.labels)) or ["every pod of the namespace"]
        case PodsAcross(namespaces, pods):
            spaces = [f"namespace {term}" for term in namespaces.matched_terms(namespace_labels)]
            return [*spaces, *pods.matched_terms(workload.labels)] or ["every pod"]
        case PodsOfService(_, service):
            return [f"it is behind Service {service}"]
        case PodsOwnedBy(_, kind, name):
            return [f"it belongs to {kind} {name}"]
        case PodsOfAccount(_, account):
            return [f"it runs as {account}"]
        case Everything():
            return ["its target is unknown"]
        case PodNamed() | GatewayNamed() | RouteNamed() | BackendNamed() | RulesOfGateway() | RulesOfRoute():
            return ["it has that name"]
        case HostNamed():
            return []


# Rules


def rules_in_words(policy: Policy, settings: Settings) -> list[RuleInWords]:
    """Return its rules, in the order of the manifest."""
    return [_rule(rule, settings) for rule in dialect_of(policy).words.rules(policy)]


def _rule(rule: DescribedRule, settings: Settings) -> RuleInWords:
    asks = (part if isinstance(part, str) else rule_text(part, settings) for part in rule.asks)
    about = f"{rule.about}: " if rule.about else ""
    return RuleInWords(rule.does, about + " and ".join(asks), rule.origin, rule.span)


def count_rules(policy: Policy) -> int:
    """Count the rules of a policy."""
    words = dialect_of(policy).words
    return words.count_rules(policy) if words.count_rules is not None else len(list(words.rules(policy)))
