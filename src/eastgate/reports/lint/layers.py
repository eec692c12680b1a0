"""Workloads with policies of two dialects: clients that one dialect allows and the other always denies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from eastgate.authority.questions import Question
from eastgate.cluster import GATEWAY_GROUP, BackendNamed, Gateway, GatewayNamed, Route, RouteNamed, service_account_id
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.routing.model import rules_of
from eastgate.cluster.targets import RulesOfGateway, RulesOfRoute, Target
from eastgate.dialects.linting import Finding, codes, enumerated, locating, subject_of
from eastgate.dialects.linting.locating import corrected_name, list_some, nearest_name
from eastgate.dialects.linting.system import intended_namespace, is_system_account, is_system_namespace
from eastgate.ir import Chain, Effect, Layer, Request, Rule
from eastgate.ir.attributes import IDENTITY, MESH_NAME, PORT
from eastgate.ir.symbolic.stages import allow_lists
from eastgate.ir.symbolic.trees import truth
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reports.lint.chains import Analysis, rules_in
from eastgate.reports.lint.inventory import Group, Policy, PolicyInventory, dialects_by_layer, policies_to_blame
from eastgate.reports.lint.rules import Caller, callers, callers_in
from eastgate.reports.lint.samples import admits_clients, can_allow, chains_for

# Callers that cannot exist: accounts and namespaces that do not exist, and other trust domains.


def find_unknown_callers(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report every client that a policy names and that does not exist here."""
    exists: dict[tuple[str | None, ...], bool] = {}
    for policy in inventory.policies:
        for caller in callers(policy, inventory.settings):
            key = (caller.trust_domain, caller.namespace, caller.account)
            if key not in exists:
                exists[key] = _is_known(caller, inventory)
            if not exists[key]:
                finding = _callers_finding(caller, policy, inventory)
                if finding is not None:
                    yield finding


def _is_known(caller: Caller, inventory: PolicyInventory) -> bool:
    """Return whether a caller can exist here."""
    if caller.trust_domain not in (None, inventory.settings.trust_domain):
        return False
    if caller.namespace is None:
        return True
    if is_system_account(caller.namespace, caller.account or ""):
        return True
    if caller.namespace not in inventory.namespaces:
        return is_system_namespace(caller.namespace)
    return caller.account in ("*", "default") or caller.account in inventory.accounts.get(caller.namespace, ())


def _callers_finding(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding | None:
    if caller.trust_domain not in (None, inventory.settings.trust_domain):
        return _foreign(caller, policy, inventory)
    if caller.namespace is not None and caller.namespace not in inventory.namespaces:
        return _no_namespace(caller, policy, inventory)
    return _no_account(caller, policy, inventory)


def _foreign(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding:
    own = inventory.settings.trust_domain
    close = corrected_name(caller.trust_domain or "", [own])
    span = locating.scalar(policy.span, caller.span, caller.spellings, rule=caller.rule)
    if close is not None:
        message = f"the trust domain of {caller.identity} is almost, but not quite, {own}"
        return Finding(codes.TYPO, message, span, f"did you mean {own}?", (str(policy.ref),))
    message = f"{caller.identity} is of the trust domain {caller.trust_domain}, and this one is {own}"
    help_ = "nothing to do if the meshes are federated; otherwise write an identity of this trust domain"
    return Finding(codes.FOREIGN_TRUST_DOMAIN, message, span, help_, (str(policy.ref),))


def _no_namespace(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding | None:
    name = caller.namespace or ""
    close = corrected_name(name, inventory.namespaces) or intended_namespace(name)
    exact, *others = caller.spellings
    span = locating.scalar(policy.span, caller.span, (exact, name, *others), rule=caller.rule)
    if close is not None:
        message = f"there is no namespace {name}, from which {policy.ref} names clients"
        return Finding(codes.TYPO, message, span, f"did you mean {close}?", (str(policy.ref),))
    if not inventory.world.namespaces:
        return None  # manifests without namespaces declare them elsewhere
    message = f"no manifest declares namespace {name}, or anything in it"
    return Finding(codes.NO_SUCH_NAMESPACE, message, span, f"add namespace {name} to the manifests", (str(policy.ref),))


def _no_account(caller: Caller, policy: Policy, inventory: PolicyInventory) -> Finding | None:
    namespace, name = caller.namespace or "", caller.account or ""
    if namespace not in inventory.declaring_accounts:
        return None
    close = nearest_name(name, inventory.accounts.get(namespace, ()))
    message = f"there is no service account {namespace}/{name}"
    help_ = (
        f"did you mean {close}?" if close else f"declare it, or name one of {list_some(inventory.accounts[namespace])}"
    )
    span = locating.scalar(policy.span, caller.span, caller.spellings, rule=caller.rule)
    return Finding(codes.NO_SUCH_ACCOUNT, message, span, help_, (str(policy.ref),))


# Workloads, Gateways and Backends that no caller can reach, and the policies that close them.


def find_closed_points(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report every point with a layer that allows nothing."""
    for group in inventory.groups:
        closed = next((i for i, layer in enumerate(group.layers) if _is_closed(layer, group, inventory)), None)
        if closed is not None:
            yield _lockout_finding(policies_to_blame(group, closed, inventory), group, inventory)


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
        ):  # this is usual, and quick to test
            return False
        return all(analysis.find_undecided(candidate) is None for candidate, _ in witnesses)
    except GaveUp:
        return False


def _lockout_finding(policies: list[Policy], group: Group, inventory: PolicyInventory) -> Finding:
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
        'allow a caller; if it is closed on purpose, annotate it with eastgate.dev/lint-ignore: "EG6040: <why>"',
        (*(str(policy.ref) for policy in policies), *group.subjects),
        inventory.command(Question.of("anonymous", group.destination, port=port)),
    )


# Routes and Backends without a policy, if others of the same Gateway have one.


def find_unprotected(inventory: PolicyInventory) -> Iterator[Finding]:
    """Report routes and Backends without a policy on their way, if others of the same Gateway have one."""
    targets = (target for policy in inventory.policies if not policy.audit for target in policy.targets)
    guarded = {_whole(target) for target in targets}
    reported: set[str] = set()
    for gateway in sorted(inventory.world.gateways.values(), key=lambda gateway: gateway.key):
        if GatewayNamed(gateway.namespace, gateway.name) in guarded:
            continue
        routes = _routes(gateway, inventory)
        ways = {route.key: _ways(route) for route in routes}
        if not any(point in guarded for points in ways.values() for way in points for point in way):
            continue  # no policy protects anything here, on purpose or not
        for route in routes:
            open_ways = [way for way in ways[route.key] if not any(point in guarded for point in way)]
            if open_ways and route.key not in reported:
                reported.add(route.key)
                yield _open(route, open_ways, gateway, inventory)


def _whole(target: Target) -> Target:
    """Return the Gateway or the route that a policy for its rules protects."""
    if isinstance(target, RulesOfGateway):
        return target.gateway if target.listener is None else target
    return target.route if isinstance(target, RulesOfRoute) else target


def _routes(gateway: Gateway, inventory: PolicyInventory) -> list[Route]:
    wanted = (GATEWAY_GROUP, "Gateway", gateway.namespace, gateway.name)
    return [
        route
        for _, route in sorted(inventory.world.routes.items())
        if route.kind in ("HTTPRoute", "GRPCRoute")
        and any((ref.group, ref.kind, ref.namespace, ref.name) == wanted for ref in route.parents)
    ]


def _ways(route: Route) -> list[tuple[NamedPoint, ...]]:
    """Return the points that requests pass behind the Gateway: the route, and the Backend if there is one."""
    own = RouteNamed(route.namespace, route.name, route.kind)
    backends = [backend for rule in rules_of(route) for backend in rule.backends if not rule.redirects]
    ways: list[tuple[NamedPoint, ...]] = [
        (own, BackendNamed(backend.namespace, backend.name)) if backend.kind in BACKEND_KINDS else (own,)
        for backend in backends
    ]
    return list(dict.fromkeys(ways))


def _open(route: Route, ways: list[tuple[NamedPoint, ...]], gateway: Gateway, inventory: PolicyInventory) -> Finding:
    ends = [way[-1] for way in ways]
    has = "has" if len(ends) == 1 else "have"
    message = (
        f"{enumerated([str(end) for end in ends])} {has} no policy, and others behind Gateway {gateway.key} have one"
    )
    help_ = "target it, or the whole Gateway, with a policy"
    subjects = (route.key, f"Gateway/{gateway.key}", *dict.fromkeys(subject_of(end) for end in ends))
    example = inventory.command(Question.of("anonymous", f"route:{route.namespace}/{route.name}"))
    return Finding(codes.UNPROTECTED, message, locating.name_of(route.span), help_, subjects, example)


_MAX_RULES = 200  # rules of one layer


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
    for rule in _allowing(layer)[:_MAX_RULES]:
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
    """Return whether this rule allows the client on this port."""
    return any(
        candidate.origin == rule.origin and truth(candidate.when, request) is not False
        for chain in chains_for(layer, request)
        for candidate in _listed(chain)
    )


def _listed(chain: Chain) -> Iterator[Rule]:
    """Yield the rules of the allow lists of a chain."""
    return (arm.rule for stage in allow_lists(chain) for arm in stage.accepting)


def _exposing(group: Group, port: int, inventory: PolicyInventory) -> list[str]:
    """Return the workloads of a class that declare a port. Their other ports may differ."""
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
