"""Identifies callers by a token: a JWT with the identity in one claim.

The token counts only without a certificate, and only for requests: the connection exists before the token is seen. An
invalid token is refused (401), whatever policies allow. It is read from one header only, `Authorization: Bearer`: in a
query it would be in every log.

A token ends at the proxy that accepts it. At a gateway, the authorizer gets it, too (`caller.lua`).
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from eastgate.basics.records import dataclass
from eastgate.envoy.config.spelling import URL_SAFE, bits, encodings
from eastgate.envoy.config.typed import Plain, filter_, typed
from eastgate.envoy.config.values import literal

CARRIER = "x-eastgate-authorization"  # carries the token to the authorizer of a gateway

_METADATA = "envoy.filters.http.jwt_authn"
_HEADER, _SCHEME = "Authorization", "Bearer "
_TOKEN = "[A-Za-z0-9._-]+"  # noqa: S105 - not a secret
_NO_ISSUER = "urn:eastgate:nobody"  # an issuer without keys
_CLOCK_SKEW_SECONDS = 1  # seconds; Envoy's default is a minute, and 0 is invalid

# No proxy here understands a critical header parameter (RFC 7515, `crit`), and Envoy does not check it.
_CRITICAL = (b'"crit"', *(rf"\u00{ord(letter):x}".encode() for letter in "crit"))


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """The accepted issuer, and the claim with a SPIFFE ID. It may name no identity outside of `trust_domain`."""

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
        """Return Envoy's format string for the claim of a verified token."""
        return f"%DYNAMIC_METADATA({_METADATA}:jwt:{self.claim})%"


def token_filter(tokens: TokenIdentity) -> Plain:
    """Build the filter that verifies tokens. A request without one passes, without an identity."""
    provider: Plain = {
        "issuer": tokens.issuer,
        "audiences": list(tokens.audiences),
        "local_jwks": {"inline_string": tokens.keys},
        "from_headers": [{"name": _HEADER, "value_prefix": _SCHEME}],
        "payload_in_metadata": "jwt",
        "forward": True,  # rules and authorizers may look at it: `identity_filter` removes it
        "require_expiration": True,
        "clock_skew_seconds": _CLOCK_SKEW_SECONDS,
    }
    nobody = {**provider, "issuer": _NO_ISSUER, "audiences": [_NO_ISSUER]}
    anybody = {"requires_any": {"requirements": [{"provider_name": "issuer"}, {"allow_missing": {}}]}}
    rules: list[Plain] = [
        {"match": {"prefix": "/", "headers": headers}, "requires": {"provider_name": "nobody"}} for headers in _REFUSED
    ]
    rules.append({"match": {"prefix": "/"}, "requires": anybody})
    kind = "envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"
    return filter_("tokens", typed(kind, providers={"issuer": provider, "nobody": nobody}, rules=rules))


def identity_filter(tokens: TokenIdentity, carrier: str | None) -> Plain:
    """Build the filter that notes the identity of a verified token, and removes the token from the request.

    `carrier` is the header that carries the token to the authorizer.
    """
    constants = {
        "TRUSTED": literal(f"spiffe://{tokens.trust_domain}/"),
        "CARRIER": literal(carrier) if carrier is not None else "nil",
    }
    before = "".join(f"local {name} = {value}\n" for name, value in constants.items())
    source = {"inline_string": f"{before}\n{_script()}"}
    return filter_("identity", typed("envoy.extensions.filters.http.lua.v3.Lua", default_source_code=source))


@cache
def _script() -> str:
    return files("eastgate.envoy.config").joinpath("caller.lua").read_text("utf-8")


def _critical() -> str:
    """Return an expression for headers whose token has a critical parameter."""
    character = f"[{re.escape(URL_SAFE)}]"
    patterns = [
        "".join(f"[{re.escape(characters)}]" for characters in encoding)
        for parameter in _CRITICAL
        for encoding in encodings(bits(parameter), URL_SAFE)
    ]
    return f"{_SCHEME}(?:{character}{{4}})*(?:{'|'.join(patterns)}).*"


def _authorization(pattern: str, *, inverted: bool = False) -> Plain:
    return {"name": _HEADER, "string_match": {"safe_regex": {"regex": pattern}}, "invert_match": inverted}


# A header with a token and further text, such as another token, and an unreadable token.
_REFUSED: list[list[Plain]] = [
    [_authorization(f"(?s).*{_SCHEME}.*"), _authorization(f"{_SCHEME}{_TOKEN}", inverted=True)],
    [_authorization(_critical())],
]
