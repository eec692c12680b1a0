"""AuthConfigs for lint, with their own checks: taken hosts, and hosts in other spellings."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster.hosts import hosts_meaning
from eastgate.cluster.question import Question
from eastgate.dialects.kuadrant.authconfigs import lint_codes as codes
from eastgate.dialects.kuadrant.authconfigs.linking import Links, link_hosts
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.kuadrant.hosts import ANY
from eastgate.dialects.kuadrant.schemes.lint import erring_conditions, respelt_rules, sets_in_any
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.dialects.linting import Context, Finding, Linting, Statements


def _statements(_policy: Policy) -> Statements:
    """Return no statements, because a scheme decides without them."""
    return Statements(rules=(), naming=(), targets=(), target_field="hosts", allows=False, empty_list=None)


def _policies(context: Context) -> list[Policy]:
    return [policy for policy in context.policies if isinstance(policy, Policy)]


def _each_host(policies: list[Policy]) -> Iterator[tuple[Policy, str, Span]]:
    for policy in policies:
        hosts = dict(zip(reversed(policy.hosts), reversed(policy.host_spans), strict=True))
        yield from ((policy, host, hosts[host]) for host in dict.fromkeys(policy.hosts))


def _check_schemes(context: Context) -> Iterator[Finding]:
    compat = context.settings.section(KuadrantSettings).authorino_compat
    for policy in _policies(context):
        subjects = (str(policy.ref),)
        yield from sets_in_any([policy.scheme], subjects)
        if not policy.audit:
            yield from erring_conditions([policy.scheme], subjects, policy.name_span, compat=compat)
            yield from respelt_rules([policy.scheme], subjects, policy.name_span, context.settings)


def _check_taken_hosts(context: Context) -> Iterator[Finding]:
    """Report hosts that are linked to another AuthConfig."""
    policies = _policies(context)
    links = link_hosts(policies, context.settings)
    for policy, host, span in _each_host(policies):
        holder = links.serving(host)
        if holder is None or holder is policy:
            continue
        taken = next(other for other in hosts_meaning(host) if other in links.by_host)
        means = f"has it in {taken}" if taken != host else "has it"
        why = "is the first by name" if holder.created == policy.created else "is older"
        message = f"{policy.ref} does not decide about {host}: {holder.ref} {means}, and {why}"
        help_ = "write it in one of them" + ("" if taken == host else ", or allow it by allowSupersedingHostSubsets")
        example = context.command(Question.of("anonymous", f"host:{_request_host(host)}"))
        yield Finding(codes.HOST_TAKEN, message, span, help_, (str(policy.ref), str(holder.ref)), example)


def _request_host(host: str) -> str:
    """Return a host that a request may have, and that a host of an AuthConfig covers."""
    return host.replace("*", "other") if host != ANY else "other.example"


def _check_other_spellings(context: Context) -> Iterator[Finding]:
    """Report hosts that a client may spell so that another AuthConfig is asked."""
    policies = _policies(context)
    links = link_hosts(policies, context.settings)
    for policy, host, span in _each_host(policies):
        spelling = _spelling(host, policy, links) if links.is_linked(host, policy) else None
        other = links.serving(spelling) if spelling is not None else None
        if spelling is not None and other is not None:
            message = f"{policy.ref} is for {host}, and {other.ref} decides about {spelling}, which is the same host"
            help_ = (
                "have the proxy write hosts in lower case and without ports, or look them up by the extension `host`"
            )
            example = context.command(Question.of("anonymous", f"host:{spelling}"))
            yield Finding(codes.OTHER_SPELLING, message, span, help_, (str(policy.ref), str(other.ref)), example)


def _spelling(host: str, policy: Policy, links: Links) -> str | None:
    """Return another spelling of a host that another AuthConfig serves, or None."""
    if host == ANY:
        return None
    written = _request_host(host)
    letters = [at for at, letter in enumerate(written) if letter.swapcase() != letter]
    spellings = [written[:at] + written[at].swapcase() + written[at + 1 :] for at in letters]
    if ":" not in written:
        spellings.append(f"{written}:443")
    served = ((spelling, links.serving(spelling)) for spelling in spellings)
    return next((spelling for spelling, other in served if other not in (None, policy)), None)


LINTING: Linting[Policy] = Linting(
    statements=_statements,
    blames=lambda _policy, _layer: True,
    readings=(),
    fallback=None,
    checks=(_check_schemes, _check_taken_hosts, _check_other_spellings),
    codes=(codes,),
)
