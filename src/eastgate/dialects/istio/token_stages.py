"""The stages and derivations for tokens at a proxy, by the RequestAuthentications that apply there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Final

from eastgate.basics.records import dataclass
from eastgate.dialects.istio.claims import NoClaims, is_claim
from eastgate.dialects.istio.model import RequestAuthentication
from eastgate.dialects.istio.provenance import TOKEN_DEMAND, StageName
from eastgate.dialects.istio.tokens import TokenDerivation, TokenProblem, refusal_value
from eastgate.ir import (
    Chain,
    Computed,
    Deny,
    Derivation,
    Is,
    Known,
    OneOf,
    Origin,
    Predicate,
    RawRequest,
    Refusal,
    Rule,
    TakenOff,
    TokenDeriving,
    Value,
    rewrite,
)
from eastgate.ir.attributes import SERVICE, TOKEN, Attribute

if TYPE_CHECKING:
    from eastgate.reading.jwt import KeySource


def token_stages(policies: Sequence[RequestAuthentication]) -> tuple[Deny, ...]:
    """Return the stages that refuse tokens; none if no policy has a rule."""
    if not any(policy.rules for policy in policies):
        return ()
    return (
        Deny(StageName.TOKENS, _rules(policies, TokenProblem.UNAUTHENTICATED), Refusal.UNAUTHENTICATED),
        Deny(StageName.AUDIENCES, _rules(policies, TokenProblem.FORBIDDEN), Refusal.FORBIDDEN),
    )


def _rules(policies: Sequence[RequestAuthentication], problem: TokenProblem) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            Is(TOKEN, OneOf(frozenset({refusal_value(problem, policy.ref)}))),
            Origin(policy.ref, 0, policy.rules[0].span, derived=TOKEN_DEMAND),
        )
        for policy in policies
        if policy.rules
    )


def token_derivations(
    policies: Sequence[RequestAuthentication], chains: Sequence[Chain], keys: KeySource | None
) -> tuple[Derivation, ...]:
    """Return the derivations of `TOKEN` and of the claims that chains read."""
    claims = frozenset(attribute for chain in chains for attribute in chain.looks_at if is_claim(attribute))
    accepting = tuple(policy for policy in policies if policy.rules)
    if accepting:
        return (TokenDerivation(accepting, claims, keys),)
    return (NoClaims(claims),) if claims else ()


@dataclass(frozen=True, slots=True)
class ByService:
    """Derives tokens by the policies of the Service that the client addresses; None: the workload itself."""

    derivations: tuple[tuple[str | None, Derivation], ...]

    @property
    def depends_on(self) -> tuple[tuple[str | None, object], ...]:
        """Return the inputs of the derivations of the Services."""
        return tuple((service, derivation.depends_on) for service, derivation in self.derivations)

    @property
    def issuers(self) -> tuple[str, ...]:
        """Return the issuers of all Services."""
        return tuple(issuer for _, derivation in self.derivations for issuer in _issuers(derivation))

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:
        """Return the attributes that the derivation of the Service derives, or nothing if the Service is unknown."""
        chosen = self._chosen(values)
        return chosen.derive(values, raw) if chosen is not None else {}

    def take_off(self, values: Mapping[Attribute, Known], raw: RawRequest) -> TakenOff:
        """Return the changes that remove the token that the policies of the Service accepted."""
        return _take_off(self._chosen(values), values, raw)

    def _chosen(self, values: Mapping[Attribute, Known]) -> Derivation | None:
        return dict(self.derivations).get(_service(values[SERVICE])) if SERVICE in values else None


def _take_off(derivation: object, values: Mapping[Attribute, Known], raw: RawRequest) -> TakenOff:
    return derivation.take_off(values, raw) if isinstance(derivation, TokenDeriving) else TakenOff()


def _issuers(derivation: object) -> tuple[str, ...]:
    return derivation.issuers if isinstance(derivation, TokenDeriving) else ()


def _service(value: Known) -> str | None:
    return value if isinstance(value, str) else None


# A request may pass a gateway and then a sidecar, which accept different tokens

_GATEWAY: Final = "at the gateway"


def _gateway_attribute(attribute: Attribute) -> Attribute:
    """Return the attribute for the gateway's result of the token's validation."""
    if attribute is TOKEN or is_claim(attribute):
        return Attribute(attribute.kind, f"{attribute.key} ({_GATEWAY})".strip())
    return attribute


def seen_at_gateway(predicate: Predicate) -> Predicate:
    """Return a predicate on tokens and claims as a gateway sees them."""

    def seen(atom: Is | Computed) -> Predicate:
        if isinstance(atom, Is):
            return Is(_gateway_attribute(atom.attribute), atom.matcher, atom.joined)
        if not any(_gateway_attribute(attribute) is not attribute for attribute in atom.attributes):
            return atom
        names = {_gateway_attribute(attribute): attribute for attribute in atom.attributes}

        def test(values: Mapping[Attribute, Value | None]) -> bool:
            return atom.test({names.get(attribute, attribute): value for attribute, value in values.items()})

        pattern = None if atom.pattern is None else (_gateway_attribute(atom.pattern[0]), atom.pattern[1])
        return Computed(f"{atom.text} {_GATEWAY}", frozenset(names), test, atom.on_error, pattern)

    return rewrite(predicate, seen)


@dataclass(frozen=True, slots=True)
class AtGateway:
    """Derives a gateway's result of the token's validation, separate from those of other proxies."""

    derivation: Derivation = field()

    @property
    def depends_on(self) -> object:
        """Return the inputs of the derivation."""
        return self.derivation.depends_on

    @property
    def issuers(self) -> tuple[str, ...]:
        """Return the issuers of tokens that the gateway accepts."""
        return _issuers(self.derivation)

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:
        """Return the derived attributes under the names for the gateway."""
        return {
            _gateway_attribute(attribute): value for attribute, value in self.derivation.derive(values, raw).items()
        }

    def take_off(self, values: Mapping[Attribute, Known], raw: RawRequest) -> TakenOff:
        """Return the changes that remove the token that the gateway accepted."""
        return _take_off(self.derivation, values, raw)
