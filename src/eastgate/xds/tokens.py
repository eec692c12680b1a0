"""Callers who are known by a token: a JWT, of which one claim is the identity.

The token counts only where there is no certificate, and only for requests: a connection is made before it is seen. One
that is there and is not valid is refused (401), whatever policies say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from eastgate.xds.typed import Plain, filter_, typed

__all__ = ["TokenIdentity", "token_filter"]

_METADATA = "envoy.filters.http.jwt_authn"


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """Whose tokens are believed, and which claim holds a SPIFFE ID. It may name nobody outside of `trust_domain`."""

    issuer: str
    keys: str  # a JSON Web Key Set
    trust_domain: str
    audiences: tuple[str, ...] = ()
    claim: str = "sub"

    def __post_init__(self) -> None:
        if not isinstance(json.loads(self.keys), dict):
            raise ValueError("the keys of a token issuer are a JSON Web Key Set")

    @property
    def claimed(self) -> str:
        """The claim of a token that was verified, as Envoy writes it into a text."""
        return f"%DYNAMIC_METADATA({_METADATA}:jwt:{self.claim})%"


def token_filter(tokens: TokenIdentity) -> Plain:
    """Verifies tokens. None at all is fine: then there is no identity."""
    provider = {
        "issuer": tokens.issuer,
        "audiences": list(tokens.audiences),
        "local_jwks": {"inline_string": tokens.keys},
        "payload_in_metadata": "jwt",
        "forward": True,
        "require_expiration": True,
    }
    requires = {"requires_any": {"requirements": [{"provider_name": "issuer"}, {"allow_missing": {}}]}}
    kind = "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"
    rules = [{"match": {"prefix": "/"}, "requires": requires}]
    return filter_("tokens", typed(kind, providers={"issuer": provider}, rules=rules))
