"""What Envoy's details of an answer say: which policy denied, or that none did.

`RESPONSE_CODE_DETAILS` is that of a request, `CONNECTION_TERMINATION_DETAILS` that of a connection.
"""

from __future__ import annotations

from typing import Final

from eastgate.basics.regexes import regex
from eastgate.dialects.istio.model import GROUP
from eastgate.dialects.logs import LoggedCause
from eastgate.ir import PolicyRef

AUTHORIZATION: Final = "AuthorizationPolicy"
REQUEST: Final = "RequestAuthentication"
PEER: Final = "PeerAuthentication"

# istio-ext-authz-PROVIDER-ns[NAMESPACE]-policy[NAME]-rule[INDEX]-deny-due-to-bad-CUSTOM-action
_NAME = regex(
    r"(?:istio-ext-authz-(?:(?P<provider>[^\[\]]+?)-)?)?"
    r"ns\[(?P<namespace>[a-z0-9-]{1,63})\]-policy\[(?P<name>[a-z0-9.-]{1,253})\]-rule\[(?P<rule>[0-9]{1,4})\]"
    r"(?P<bad>-deny-due-to-bad-CUSTOM-action)?"
)
_RBAC = regex(r"rbac_access_denied_matched_policy\[(?P<name>.*)\]")
_TOKEN = regex(r"jwt_authn_access_denied\{(?P<why>.*)\}")
_NO_RULE: Final = "none"
_TOKENS: Final = {
    "Jwt_is_missing": "there is no token, and one is required",
    "Jwt_is_expired": "the token has expired",
    "Jwt_not_yet_valid": "the token is not valid yet (`nbf`)",
    "Jwt_issuer_is_not_configured": "no rule has the issuer of the token",
    "Jwt_verification_fails": "no key of the issuer verifies the token's signature",
    "Audiences_in_Jwt_are_not_allowed": "the token is for other audiences",
    "Jwks_remote_fetch_is_failed": "the keys of the issuer could not be fetched",
    "Jwks_doesn't_have_key_to_match_kid_or_alg_from_Jwt": "the issuer has no key with the token's `kid` or `alg`",
}
_PASSED: Final = frozenset(
    {"cluster_not_found", "direct_response", "no_healthy_upstream", "response_timeout", "route_not_found"}
)


def cause_of(details: str, termination: str, flags: str) -> LoggedCause | None:
    """Return the verdict of a request or connection; None where these tell of none.

    Policies are asked before the router: what the router says of the upstream was allowed.
    """
    for text in (details, termination):
        if denied := _RBAC.fullmatch(text):
            return cause_of_name(denied["name"])
        if refused := _TOKEN.fullmatch(text):
            return _refused_token(refused["why"])
    match details:
        case "ext_authz_denied":
            words = "the external authorizer of a CUSTOM policy denied it"
            return LoggedCause(False, words, kinds=frozenset({AUTHORIZATION}), external="deny")
        case "ext_authz_error":
            words = "the external authorizer of a CUSTOM policy could not be asked"
            return LoggedCause(False, words, kinds=frozenset({AUTHORIZATION}), external="error")
        case "filter_chain_not_found":
            words = "plaintext where mTLS is required, or TLS that is not the mesh's"
            return LoggedCause(False, words, kinds=frozenset({PEER}))
    reached = details.startswith(("via_upstream", "upstream_")) or details in _PASSED
    if reached or (details == termination == "-" and _is_upstream(flags)):
        return LoggedCause(True, "policies let it pass", external="allow")
    return None


def _is_upstream(flags: str) -> bool:
    """Return whether a connection without details ended by itself, or at the application."""
    return flags == "-" or any(flag.startswith("U") and flag != "UAEX" for flag in flags.split(","))


def cause_of_name(name: str) -> LoggedCause:
    """Return the cause of a denial by the name of the RBAC policy that matched."""
    if name == _NO_RULE:
        return LoggedCause(False, "no rule of an ALLOW policy matches", unmatched=True)
    match = _NAME.fullmatch(name)
    if match is None:
        return LoggedCause(False, f"the RBAC policy `{name}`, which is of no AuthorizationPolicy")
    ref = PolicyRef(AUTHORIZATION, match["namespace"], match["name"], GROUP)
    words = f"{ref} rule {match['rule']}"
    if match["bad"]:
        provider = f" `{match['provider']}`" if match["provider"] else ""
        words += f": its provider{provider} cannot be asked"
    return LoggedCause(False, words, ref, int(match["rule"]))


def _refused_token(why: str) -> LoggedCause:
    words = _TOKENS.get(why, why.replace("_", " "))
    return LoggedCause(False, f"the token was refused: {words}", kinds=frozenset({REQUEST}), hidden=True)
