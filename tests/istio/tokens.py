"""Tokens for questions with claims, signed by a key of the test that every RequestAuthentication also trusts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.istio.tables import Manifest
from tests.reading.jwt.mint import jwk, token

_SIGNER = "rsa-istio"
_FAR = 4102444800  # the year 2100


def trust_our_key(rule: Manifest, key_sets: Mapping[str, Any]) -> Manifest:
    """Return a rule of a RequestAuthentication with its keys and the test's key inline.

    The keys at a URL are those that the table has for the issuer or the URL.
    """
    inline, url = rule.get("jwks"), rule.get("jwksUri", "")
    try:
        published = json.loads(inline) if inline else key_sets.get(rule.get("issuer", "")) or key_sets.get(url)
        keys = [*(published or {"keys": []})["keys"], jwk(_SIGNER, alg="RS256", use="sig")]
    except (ValueError, TypeError, KeyError):
        return rule  # unreadable keys stay as they are
    kept = {name: value for name, value in rule.items() if name != "jwksUri" or "issuer" not in rule}
    return {**kept, "jwks": json.dumps({"keys": keys})}


def signed(claims: Mapping[str, Any]) -> str:
    """Return a token with these claims. It expires late, unless the claims set a time."""
    return token({"exp": _FAR, **claims}, _SIGNER, "RS256")


def with_token(http: Manifest, claims: Mapping[str, Any], rules: list[Manifest]) -> Manifest:
    """Return a request with a token with these claims, where a rule of its issuer (or any rule) looks for it."""
    of_issuer = (rule for rule in rules if rule.get("issuer") in (None, claims.get("iss")))
    rule = next(of_issuer, rules[0] if rules else {})
    value = signed(claims)
    headers: dict[str, Any] = dict(http.get("headers") or {})
    if rule.get("fromHeaders"):
        location = rule["fromHeaders"][0]
        headers[location["name"]] = location.get("prefix", "") + value
    elif rule.get("fromParams"):
        path = http.get("path", "/")
        return {**http, "path": f"{path}{'&' if '?' in path else '?'}{rule['fromParams'][0]}={value}"}
    elif rule.get("fromCookies"):
        headers["cookie"] = f"{rule['fromCookies'][0]}={value}"
    else:
        headers["authorization"] = f"Bearer {value}"
    return {**http, "headers": headers}
