"""AuthPolicies of 2022 for lint, with their own checks: conditions that may err or be evaded, sets in `any`, hosts."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import RouteNamed
from eastgate.cluster.question import Question
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.dialects.kuadrant.proposal import lint_codes as codes
from eastgate.dialects.kuadrant.proposal.assemble import in_force
from eastgate.dialects.kuadrant.proposal.model import Policy
from eastgate.dialects.kuadrant.schemes import lint_codes as scheme_codes
from eastgate.dialects.kuadrant.schemes.lint import erring_conditions, respelt_rules, sets_in_any
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.dialects.linting import Context, Finding, Linting, Statements, enumerated, subject_of


def _statements(_policy: Policy) -> Statements:
    """Return no statements: a scheme decides without them, and `examine` reports missing targets."""
    return Statements(rules=(), naming=(), targets=(), target_field="targetRef", allows=False, empty_list=None)


def _policies(context: Context) -> list[Policy]:
    return [policy for policy in context.policies if isinstance(policy, Policy)]


def _subjects(policy: Policy) -> tuple[str, str]:
    return str(policy.ref), subject_of(policy.target)


# Conditions


def _check_erring_conditions(context: Context) -> Iterator[Finding]:
    compat = context.settings.section(KuadrantSettings).authorino_compat
    for policy in _policies(context):
        if not policy.audit:
            yield from erring_conditions(policy.schemes, _subjects(policy), policy.target_span, compat=compat)


def _check_spellings(context: Context) -> Iterator[Finding]:
    for policy in _policies(context):
        if not policy.audit:
            yield from respelt_rules(policy.schemes, _subjects(policy), policy.target_span, context.settings)


def _check_sets_in_any(context: Context) -> Iterator[Finding]:
    for policy in _policies(context):
        yield from sets_in_any(policy.schemes, _subjects(policy))


# Hosts


def _check_uncovered_hosts(context: Context) -> Iterator[Finding]:
    """Report hosts that the rules of a policy in force select, and that have no scheme."""
    policies = _policies(context)
    for policy in policies:
        if not policy.schemes or in_force(other for other in policies if other.target == policy.target) is not policy:
            continue  # the reader has reported that it has no schemes
        covered = [host for scheme in policy.schemes for host in scheme.hosts]
        for host, span in _selected(policy, context):
            if not any(is_inside(host, scheme) for scheme in covered):
                yield _uncovered(policy, host, span, covered, context)


def _selected(policy: Policy, context: Context) -> Iterator[tuple[str, Span]]:
    seen: set[str] = set()
    for rule in policy.rules:
        for host, span in zip(rule.hosts or (), rule.host_spans, strict=True):
            if host not in seen:
                seen.add(host)
                yield host, span
    if not policy.rules or any(rule.hosts is None for rule in policy.rules):
        for host in _hostnames(policy, context):
            if host not in seen:
                yield host, policy.target_span


def _hostnames(policy: Policy, context: Context) -> list[str]:
    key = f"{policy.target.namespace}/{policy.target.name}"
    if isinstance(policy.target, RouteNamed):
        route = context.world.routes.get(f"HTTPRoute/{key}")
        return [] if route is None else list(route.hostnames) or [ANY]
    gateway = context.world.gateways.get(key)
    return [] if gateway is None else [listener.hostname or ANY for listener in gateway.listeners]


def _uncovered(policy: Policy, host: str, span: Span, covered: list[str], context: Context) -> Finding:
    inside = [scheme for scheme in covered if is_inside(scheme, host)]
    rest = f"beyond {enumerated(inside)} " if inside else ""
    message = f"{policy.ref} selects requests to {host}, and {rest}no auth scheme is for them: they are refused (404)"
    help_ = f"write a scheme with hosts: [{host!r}], or select less"
    kind = "route" if isinstance(policy.target, RouteNamed) else "gateway"
    question = Question.of(
        "anonymous",
        f"{kind}:{policy.target.namespace}/{policy.target.name}",
        host=host.replace("*", "other") if host != ANY else "other.example",
    )
    return Finding(codes.HOST_WITHOUT_SCHEME, message, span, help_, _subjects(policy), context.command(question))


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(),
    fallback=None,
    checks=(_check_erring_conditions, _check_spellings, _check_sets_in_any, _check_uncovered_hosts),
    codes=(codes, scheme_codes),
)
