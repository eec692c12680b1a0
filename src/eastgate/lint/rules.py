"""Rules that no request can match by themselves, wherever they apply; and ports that nobody listens on."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.linkerd.injected import injected_ports
from eastgate.dialects.linkerd.model import AuthorizationPolicy, Server
from eastgate.lint import codes, locating
from eastgate.lint.ground import AccessPolicy, GepPolicy, Ground, Policy, enumerated
from eastgate.lint.model import Finding
from eastgate.lint.nearest import some
from eastgate.lint.solving import is_possible
from eastgate.lint.statements import rules
from eastgate.places import Span
from eastgate.policy import And, Is, OneOf, Or, Predicate, Rule, atoms
from eastgate.policy.attributes import PORT
from eastgate.sources.node import Node
from eastgate.world import Workload

__all__ = ["impossible_rules", "unexposed_ports"]


def impossible_rules(ground: Ground) -> Iterator[Finding]:
    """Rules with an empty list, or with conditions that exclude each other."""
    for policy in ground.policies:
        for rule in rules(policy):
            yield from _impossible(policy, rule)
    yield from _combined(ground)


def _impossible(policy: Policy, rule: Rule) -> Iterator[Finding]:
    subjects = (str(policy.ref),)
    if any(_is_empty(part) for part in _parts(rule.when)):
        span = _empty_node(policy.span, rule.origin.span) or rule.origin.span
        message = f"{rule.origin} matches nothing: there is nothing in this list"
        help_ = "leave the field out to match anything, or write what is meant"
        yield Finding(codes.MATCHES_NOTHING, message, span, help_, subjects)
    elif isinstance(policy, AccessPolicy) and any(_is_empty(part) for part in _every(rule.when)):
        span = _empty_node(policy.span, rule.origin.span) or rule.origin.span
        message = f"{rule.origin} allows no tool: there is nothing in this list"
        help_ = "name the tools, or remove the rule"
        yield Finding(codes.NO_TOOL, message, span, help_, subjects)
    elif not is_possible(rule.when):
        message = f"{rule.origin} can never match: {rule.when} cannot all hold"
        yield Finding(codes.CONTRADICTION, message, rule.origin.span, "write rules of their own", subjects)


def _combined(ground: Ground) -> Iterator[Finding]:
    """Linkerd: several authentications in one policy, which nobody can provide together."""
    told = set()
    for group in ground.workload_groups:
        for layer in group.program.layers:
            for chain in layer.chains:
                for stage in chain.stages:
                    for rule in getattr(stage, "rules", ()):
                        policy = ground.policy_of(rule)
                        if not isinstance(policy, AuthorizationPolicy) or policy.ref in told or rule.origin.derived:
                            continue
                        told.add(policy.ref)
                        if not is_possible(rule.when):
                            message = f"{policy.ref} authorizes nobody: {rule.when} cannot all hold"
                            help_ = "write a policy for each of the authentications"
                            yield Finding(codes.CONTRADICTION, message, policy.refs_span, help_, (str(policy.ref),))


def _parts(predicate: Predicate) -> Iterator[Predicate]:
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from _parts(part)
    else:
        yield predicate


def _every(predicate: Predicate) -> Iterator[Predicate]:
    """A predicate, and all that it is made of."""
    yield predicate
    for part in predicate.parts if isinstance(predicate, And | Or) else ():
        yield from _every(part)


def _is_empty(part: Predicate) -> bool:
    """The meaning of an empty list: nothing of anything."""
    match part:
        case Or(parts):
            return all(_is_empty(one) for one in parts)
        case And(parts):
            return any(_is_empty(one) for one in parts)
        case Is(_, OneOf(values)):
            return not values
        case _:
            return False


def _empty_node(document: Span, within: Span | None) -> Span | None:
    """The first empty list or mapping within a rule."""
    start = (within.line, within.column) if within else (0, 0)
    end = (within.end_line, within.end_column) if within else (1 << 60, 0)

    def walk(node: Node) -> Iterator[Span]:
        if node.value in ({}, []):
            span = node.span
            if start <= (span.line, span.column) and (span.end_line, span.end_column) <= end:
                yield span
        for child in node.value.values() if isinstance(node.value, dict) else node:
            yield from walk(child)

    return next(walk(locating.root_of(document)), None)


# Ports


def unexposed_ports(ground: Ground) -> Iterator[Finding]:
    """Ports in rules of workloads, and in Servers, that none of the workloads declares."""
    for policy in ground.policies:
        if isinstance(policy, GepPolicy | Server):
            yield from _ports(policy, ground)


def _ports(policy: GepPolicy | Server, ground: Ground) -> Iterator[Finding]:
    said = list(_rule_ports(policy)) if isinstance(policy, GepPolicy) else [(policy.port, None)]
    if not said:
        return
    keys = ground.workloads_of.get(policy.ref, [])
    selected = [ground.workload(key) for key in keys]
    if not selected or any(not workload.ports for workload in selected):
        return  # whoever declares no ports may listen on any
    exposed = {port.number for workload in selected for port in (*workload.ports, *workload.init_ports)}
    names = {port.name for workload in selected for port in (*workload.ports, *workload.init_ports) if port.name}
    proxy = [injected_ports(one, ground.world) for one in selected] if isinstance(policy, Server) else []
    of_proxy = {one for ports in proxy for port in ports.items() for one in port}
    for port, rule in said:
        if port not in exposed and port not in names and port not in of_proxy:
            message = f"{policy.ref} is about port {port}, which {_who(selected)} not expose"
            known = {str(number) for number in exposed}
            help_ = f"write one of {some(known | (names if isinstance(port, str) else set()))}"
            mapped = _service_port(port, selected, ground)
            if mapped is not None:
                help_ = f"{port} is the port of Service {mapped[0]}; write that of its pods, {mapped[1]}"
            span = _port_span(policy, rule, port)
            yield Finding(codes.PORT_NOT_EXPOSED, message, span, help_, (str(policy.ref), *keys[:3]))


def _who(selected: list[Workload]) -> str:
    return f"{enumerated([one.key for one in selected])} {'does' if len(selected) == 1 else 'do'}"


def _rule_ports(policy: GepPolicy) -> Iterator[tuple[int | str, Rule | None]]:
    for rule in policy.rules:
        for atom in atoms(rule.when):
            if isinstance(atom, Is) and atom.attribute == PORT and isinstance(atom.matcher, OneOf):
                yield from ((port, rule) for port in sorted(atom.matcher.values, key=str))


def _port_span(policy: Policy, rule: Rule | None, port: int | str) -> Span | None:
    if rule is None:
        return locating.at(policy.span, "spec", "port")
    return locating.scalar(policy.span, rule.origin.part(PORT), [port])


def _service_port(port: int | str, selected: list[Workload], ground: Ground) -> tuple[str, int] | None:
    """The Service whose port somebody has taken for that of its pods."""
    for workload in selected[:20]:
        for key in ground.world.services_of(workload.key):
            service = ground.world.services[key]
            found = ground.world.target_ports(service, port, workload) if isinstance(port, int) else ()
            if found:
                return key, found[0]
    return None
