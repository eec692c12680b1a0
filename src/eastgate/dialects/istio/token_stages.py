"""The stages that RequestAuthentications make: a token that they refuse is refused, whatever else policies say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eastgate.dialects.istio.authentications import RequestAuthentication
from eastgate.dialects.istio.provenance import StageName, TokenDemand
from eastgate.dialects.istio.tokens import TokenProblem, refusal_value
from eastgate.ir import Deny, Is, OneOf, Origin, Refusal, Rule
from eastgate.ir.attributes import TOKEN

__all__ = ["token_stages"]

_STAGES = {
    TokenProblem.UNAUTHENTICATED: (StageName.TOKENS, Refusal.UNAUTHENTICATED),
    TokenProblem.FORBIDDEN: (StageName.AUDIENCES, Refusal.FORBIDDEN),
}


def token_stages(policies: Sequence[RequestAuthentication]) -> Iterator[Deny]:
    """Yield a stage for each refusal that these policies have."""
    accepting = [policy for policy in policies if policy.rules]
    for problem, (name, refusal) in _STAGES.items():
        if accepting:
            yield Deny(name, tuple(_refused(problem, policy) for policy in accepting), refusal)


def _refused(problem: TokenProblem, policy: RequestAuthentication) -> Rule:
    refused = frozenset({refusal_value(problem, policy.ref)})
    origin = Origin(policy.ref, 0, policy.rules[0].span, derived=TokenDemand())
    return Rule(Is(TOKEN, OneOf(refused)), origin)
