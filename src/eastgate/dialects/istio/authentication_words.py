"""Descriptions of RequestAuthentications and PeerAuthentications."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.dialects.istio.authentications import JwtRule, PeerAuthentication, RequestAuthentication
from eastgate.dialects.words import DescribedRule


def describe_modes(policy: PeerAuthentication) -> Iterator[DescribedRule]:
    """Describe the modes of mTLS: that of the workloads, and those of ports."""
    yield DescribedRule("MTLS", (f"mode {policy.mode}",), None, policy.mode_span)
    for each in policy.ports:
        yield DescribedRule("MTLS", (f"port {each.port}: mode {each.mode}",), None, each.span)


def describe_tokens(policy: RequestAuthentication) -> Iterator[DescribedRule]:
    """Describe the tokens that are accepted."""
    for rule in policy.rules:
        yield DescribedRule("VERIFY", tuple(_asks(rule)), None, rule.span)


def _asks(rule: JwtRule) -> Iterator[str]:
    yield f"issuer {rule.issuer}" if rule.issuer is not None else f"any issuer with the keys of {rule.jwks_uri}"
    if rule.audiences:
        yield f"audience {' or '.join(sorted(rule.audiences))}"
    headers = [f"header {each.name}" + (f" after {each.prefix!r}" if each.prefix else "") for each in rule.headers]
    locations = [
        *headers,
        *(f"parameter {name}" for name in rule.params),
        *(f"cookie {name}" for name in rule.cookies),
    ]
    if locations:
        yield f"in {' or '.join(locations)}"
