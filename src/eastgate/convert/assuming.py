"""Removes differences that an assumption rules out: their callers have identities that no CA issues."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from eastgate.convert.model import Assumption
from eastgate.ir import Is, Predicate, Prefix, conjuncts
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.spiffe import SCHEME, account_of, trust_domain_of
from eastgate.ir.symbolic.callers import (
    AccountsIn,
    CallerCell,
    IdentityCell,
    OtherIdentities,
)
from eastgate.reach.comparison import AuthorityComparison, VerdictDifference


def assume(comparison: AuthorityComparison, assumed: Container[Assumption], trust_domain: str) -> AuthorityComparison:
    """Return a comparison without the differences of callers who do not exist."""
    accounts = Assumption.ISTIO_IDENTITIES in assumed
    own = Assumption.ISTIO_TRUST_DOMAIN in assumed
    if not accounts and not own:
        return comparison

    def is_identity(identity: str) -> bool:
        foreign = own and trust_domain_of(identity) != trust_domain
        return not foreign and not (accounts and account_of(identity) is None)

    def exists(cell: CallerCell, when: Predicate) -> bool:
        match cell:
            case IdentityCell(identity):
                return is_identity(identity)
            case AccountsIn(domain):
                return not own or domain == trust_domain
            case OtherIdentities():  # accounts of other trust domains, and identities that are no accounts
                no_account = accounts and any(_is_in_domain(part, trust_domain) for part in conjuncts(when))
                return not (accounts and own) and not no_account
            case _:
                return True

    def matters(difference: VerdictDifference | None) -> bool:
        if difference is None:
            return True
        cells = comparison.callers.cells_in(difference.callers)
        return any(exists(cell, difference.when) for cell in cells)

    return replace(
        comparison,
        differences=tuple(filter(matters, comparison.differences)),
        doubts=tuple(doubt for doubt in comparison.doubts if matters(doubt.difference)),
    )


def _is_in_domain(part: Predicate, trust_domain: str) -> bool:
    """Return whether a condition requires an identity of a trust domain."""
    return (
        isinstance(part, Is)
        and part.attribute == IDENTITY
        and isinstance(part.matcher, Prefix)
        and part.matcher.text.startswith(f"{SCHEME}{trust_domain}/")
    )
