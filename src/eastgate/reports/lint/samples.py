"""Questions that are likely to show a difference: from existing callers to existing ports and Services."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from eastgate.authority.questions import Arrival, Question, QuestionError, arrivals
from eastgate.ir import Chain, Is, Layer, OneOf, Prefix, Request, Rule, RuleKind, atoms, in_force, rules_of
from eastgate.ir.attributes import MCP_TOOL, METHOD, PATH, PATHS, PORT, Attribute
from eastgate.ir.symbolic.judging import possible_chains, possible_outcomes
from eastgate.reports.lint.inventory import Group, PolicyInventory
from eastgate.reports.lint.rules import callers

# Whether a layer can allow a partly known request. In doubt, it can.


def chains_for(layer: Layer, request: Request) -> list[Chain]:
    """Return the chains that the selector may pick."""
    return list(possible_chains(layer, request))


def can_allow(layer: Layer, request: Request) -> bool:
    """Return whether a request like this one may be allowed, except from the workload itself."""
    return any(
        outcome.allowed and not (outcome.rule is not None and outcome.rule.origin.kind is RuleKind.ITSELF)
        for outcome in possible_outcomes(layer, request)
    )


def admits_clients(rule: Rule) -> bool:
    """Return whether a rule covers clients other than the workload itself or the kubelet."""
    return rule.origin.kind not in (RuleKind.ITSELF, RuleKind.PROBE)


_MAX_SAMPLES = 12  # callers or values of each kind
_PATHS = frozenset(attribute.kind for attribute in PATHS)  # all forms of a path that proxies compare


def sample_questions(group: Group, inventory: PolicyInventory) -> Iterator[tuple[Question, Arrival]]:
    """Yield questions about the first member of a group, with the requests that arrive there."""
    values = _values(group)
    http: list[dict[str, str]] = [{}]
    if METHOD in values or PATH in values:
        paths = [*(str(value) for value in values.get(PATH, ())), "/"]
        methods = [*(str(value) for value in values.get(METHOD, ())), "GET"]
        http = [{"method": method, "path": path} for path, method in product(paths, methods)][:_MAX_SAMPLES]
    if MCP_TOOL in values:
        http = [{"mcp_method": "tools/call", "tool": str(tool)} for tool in [*values[MCP_TOOL], "other"]][:_MAX_SAMPLES]
    for source, (to, port), more in product(sources(group, inventory), _destinations(group, inventory, values), http):
        question = Question.of(source, to, port=port, **more)  # type: ignore[arg-type]
        try:
            for arrival in arrivals(question, inventory.world, inventory.settings):
                if (group.point or group.first) in arrival.points:
                    yield question, arrival
        except QuestionError:
            continue


def sources(group: Group, inventory: PolicyInventory) -> list[str]:
    """Return a neighbour, the callers that the policies name, and a caller without an identity."""
    accounts: dict[str, None] = {}
    own = inventory.workload(group.first) if group.is_workload else None
    for namespace, names in list(inventory.accounts.items())[:_MAX_SAMPLES]:
        for name in sorted(names)[:3]:
            if own is None or (namespace, name) != (own.namespace, own.service_account):
                accounts[f"sa:{namespace}/{name}"] = None
    strangers = list(accounts)[:_MAX_SAMPLES]
    policy_sources: dict[str, None] = {}
    for attachment in group.attached:
        for caller in callers(attachment.policy, inventory.settings):
            own_domain = caller.trust_domain == inventory.settings.trust_domain
            if own_domain and caller.namespace and caller.account not in (None, "*"):
                policy_sources[f"sa:{caller.namespace}/{caller.account}"] = None
            elif caller.identity.startswith("spiffe://"):
                policy_sources[caller.identity] = None
    return list(dict.fromkeys([*strangers, "sa:default/stranger", *list(policy_sources)[:_MAX_SAMPLES], "anonymous"]))


def _destinations(
    group: Group, inventory: PolicyInventory, values: dict[Attribute, list[object]]
) -> list[tuple[str, int | None]]:
    if not group.is_workload:
        return [(group.destination, None)]
    workload = inventory.workload(group.first)
    declared = [port.number for port in workload.ports]
    compared = [port for port in values.get(PORT, ()) if isinstance(port, int)]
    ports = list(dict.fromkeys([*declared, *compared]))[:_MAX_SAMPLES] or [8080]
    destinations: list[tuple[str, int | None]] = [(group.destination, port) for port in ports]
    for key in inventory.world.services_of(workload.key)[:3]:
        destinations += [(f"service:{key}", port.port) for port in inventory.world.services[key].ports[:3]]
    return destinations


def _values(group: Group) -> dict[Attribute, list[object]]:
    """Return the values that the rules compare attributes with."""
    by_attribute: dict[Attribute, list[object]] = {}
    for rule in _rules(group):
        for atom in atoms(rule.when):
            if not isinstance(atom, Is):
                continue
            attribute = PATH if atom.attribute.kind in _PATHS else atom.attribute
            values = by_attribute.setdefault(attribute, [])
            if len(values) < _MAX_SAMPLES and isinstance(atom.matcher, OneOf):
                values += [value for value in sorted(atom.matcher.values, key=str)[:3] if value not in values]
            elif len(values) < _MAX_SAMPLES and isinstance(atom.matcher, Prefix) and attribute == PATH:
                values.append(f"{atom.matcher.text}x")
    return by_attribute


def _rules(group: Group) -> Iterator[Rule]:
    for layer in (*group.layers, *(each for each in in_force(group.layers) if each not in group.layers)):
        for chain in layer.chains:
            for stage in chain.stages:
                yield from rules_of(stage)
