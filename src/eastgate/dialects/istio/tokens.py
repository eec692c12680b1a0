"""Validation of tokens at a workload: the tokens that its RequestAuthentications accept, and the claims of these.

The rules of all policies count together, sorted by issuer. A request without a token passes, without claims. Otherwise
one rule must accept all tokens that it finds. A token with another issuer, without a valid signature, or expired for
more than a minute is unauthenticated (401). A token for another audience is forbidden (403). Claims in a question
represent the payload of a verified token that every rule finds.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.istio.authentication_shapes import keys_in
from eastgate.dialects.istio.claims import claim_path
from eastgate.dialects.istio.model import HeaderLocation, JwtRule, RequestAuthentication
from eastgate.ir import Known, PolicyRef, RawRequest, TakenOff, known
from eastgate.ir.attributes import (
    BLANKS,
    METHOD,
    TARGET,
    TIME,
    TOKEN,
    Attribute,
    HeaderValues,
    header_values,
    query,
    spellings_in_query,
)
from eastgate.ir.matchers import values_of

if TYPE_CHECKING:
    from eastgate.reading.jwt import Keys, KeySource


# Search for the tokens of a request in the locations of a rule, as Envoy's jwt_authn does.
#
# Every value of a header is a token, after the first occurrence of its prefix. Of a parameter and of a cookie, only the
# first value is. Without locations, a rule reads the Authorization header and the parameter `access_token`.


_BEARER: Final = HeaderLocation("authorization", "Bearer ")
_PARAMETER: Final = "access_token"
_TOKEN_CHARACTER: Final = regex(r"[A-Za-z0-9_.-]")


def _headers(rule: JwtRule) -> tuple[HeaderLocation, ...]:
    return rule.headers if _has_locations(rule) else (_BEARER,)


def _params(rule: JwtRule) -> tuple[str, ...]:
    return rule.params if _has_locations(rule) else (_PARAMETER,)


def _has_locations(rule: JwtRule) -> bool:
    return bool(rule.headers or rule.params or rule.cookies)


def locations_are_known(
    rule: JwtRule, values: Mapping[Attribute, Known], headers: HeaderValues | None, *, is_all: bool
) -> bool:
    """Return whether enough of a request is known to find its tokens for a rule.

    `is_all`: the request has no other headers.
    """
    names = {*(location.name for location in _headers(rule)), *(["cookie"] if rule.cookies else [])}
    if not is_all and not names <= (headers or HeaderValues()).keys():
        return False
    return not _params(rule) or TARGET in values


def tokens_in(rule: JwtRule, values: Mapping[Attribute, Known], headers: HeaderValues) -> list[str]:
    """Return the tokens in the locations of a rule, in Envoy's order."""
    return [
        *_in_headers(sorted(_headers(rule), key=lambda each: each.name + each.prefix), headers),
        *_in_query(sorted(_params(rule)), values),
        *_in_cookies(sorted(rule.cookies), headers),
    ]


def take_off(rule: JwtRule, values: Mapping[Attribute, Known], headers: HeaderValues) -> TakenOff:
    """Return the changes that remove all tokens that a rule finds. If the rule forwards them, those in headers stay."""
    found = {each.name for each in _headers(rule) if any(True for _ in _in_headers([each], headers))}
    if rule.forwards:
        return TakenOff(headers=tuple((name, headers[name][0]) for name in sorted(found) if len(headers[name]) == 1))
    target = str(values.get(TARGET) or "")
    parameters = tuple(spelled for name in _params(rule) for spelled in spellings_in_query(target, name))
    return TakenOff(tuple(sorted(found)), parameters=parameters, cookies=rule.cookies)


def _in_headers(locations: list[HeaderLocation], headers: HeaderValues) -> Iterator[str]:
    for location in dict.fromkeys(locations):
        for value in headers.get(location.name, ()):
            before, prefix, _ = value.partition(location.prefix) if location.prefix else ("", "", value)
            if prefix != location.prefix:
                continue
            begin = _TOKEN_CHARACTER.search(value, len(before) + len(prefix)) if prefix else None
            yield value[begin.start() :] if begin is not None else value


def _in_query(names: list[str], values: Mapping[Attribute, Known]) -> Iterator[str]:
    for name in dict.fromkeys(names):
        given = values_of(values.get(query(name)))
        if given:
            yield str(given[0])


def _in_cookies(names: list[str], headers: HeaderValues) -> Iterator[str]:
    cookies: dict[str, str] = {}
    for line in headers.get("cookie", ()):
        for part in line.split(";"):
            name, equals, value = part.strip(BLANKS).partition("=")
            if equals:
                cookies.setdefault(name, value.removeprefix('"').removesuffix('"') if len(value) > 1 else value)
    yield from (cookies[name] for name in dict.fromkeys(names) if name in cookies)


ACCEPTED: Final = "accepted"
_LEEWAY_SECONDS: Final = 60  # Envoy's default
_ALWAYS_SPLIT: Final = frozenset({"permission", "scope"})
_AT_ANY_TIME: Final = 0.0


class TokenProblem(enum.StrEnum):
    """The reason why a token is refused."""

    UNAUTHENTICATED = "refused by"
    FORBIDDEN = "for another audience than that of"


def refusal_value(problem: TokenProblem, policy: PolicyRef) -> str:
    """Return the value of `TOKEN` if a policy refuses the token."""
    return f"{problem} {policy.namespace}/{policy.name}"


class _Status(enum.Enum):
    """The result of one rule, as Envoy distinguishes them."""

    ACCEPTED = enum.auto()
    MISSING = enum.auto()
    UNKNOWN_ISSUER = enum.auto()
    WRONG_AUDIENCE = enum.auto()
    INVALID = enum.auto()


@dataclass(frozen=True, slots=True)
class _Judged:
    status: _Status
    claims: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TokenDerivation:
    """Derives `TOKEN` and claims: the result of the token's validation by these policies.

    `claims` are the attributes to derive. `keys` has the keys of issuers whose keys are in no policy.
    """

    policies: tuple[RequestAuthentication, ...]
    claims: frozenset[Attribute]
    keys: KeySource | None = field(default=None, repr=False)

    @property
    def depends_on(self) -> tuple[tuple[JwtRule, ...], ...]:
        """Return the rules that accept tokens."""
        return tuple(policy.rules for policy in self.policies)

    @property
    def issuers(self) -> tuple[str, ...]:
        """Return the issuers that rules name."""
        return tuple(rule.issuer for _, rule in self._rules() if rule.issuer is not None)

    def derive(self, values: Mapping[Attribute, Known], raw: RawRequest) -> Mapping[Attribute, Known]:
        """Return `TOKEN` and the claims, or nothing if they depend on unknown headers or an unknown query."""
        rules = sorted(self._rules(), key=lambda each: each[1].issuer or "")
        headers = _headers_of(raw)
        if not rules or _is_preflight(values, headers):
            return self._derived(None, {})
        at = _now(values)
        judged: list[_Judged] = []
        for _, rule in rules:
            if raw.claims is not None:
                judged.append(_judge_claims(rule, raw.claims, at))
            elif raw.no_token or locations_are_known(rule, values, headers, is_all=raw.headers is not None):
                judged.append(self._judge(rule, tokens_in(rule, values, headers or HeaderValues()), at))
            else:
                return {}
            if judged[-1].status is _Status.ACCEPTED:
                return self._derived(ACCEPTED, _split(judged[-1].claims, rule))
        final = _final([each.status for each in judged])
        if final is _Status.MISSING:
            return self._derived(None, {})
        problem = TokenProblem.FORBIDDEN if final is _Status.WRONG_AUDIENCE else TokenProblem.UNAUTHENTICATED
        index = max(index for index, each in enumerate(judged) if each.status is final)
        return self._derived(refusal_value(problem, rules[index][0].ref), {})

    def take_off(self, values: Mapping[Attribute, Known], raw: RawRequest) -> TakenOff:
        """Return the changes that remove the accepted token, unless its rule forwards it."""
        headers, at = _headers_of(raw) or HeaderValues(), _now(values)
        for _, rule in sorted(self._rules(), key=lambda each: each[1].issuer or ""):
            if self._judge(rule, tokens_in(rule, values, headers), at).status is _Status.ACCEPTED:
                return take_off(rule, values, headers)
        return TakenOff()

    def _rules(self) -> Iterator[tuple[RequestAuthentication, JwtRule]]:
        for policy in self.policies:
            yield from ((policy, rule) for rule in policy.rules)

    def _derived(self, token: str | None, claims: Mapping[str, object]) -> Mapping[Attribute, Known]:
        return {TOKEN: token, **{attribute: _claim(claims, claim_path(attribute)) for attribute in self.claims}}

    def _judge(self, rule: JwtRule, tokens: Sequence[str], at: float) -> _Judged:
        """Return the result for the tokens that a rule finds. ALL must be valid; the claims are those of the first."""
        judged = _Judged(_Status.MISSING)
        for token in reversed(tokens):
            judged = self._judge_token(rule, token, at)
            if judged.status is not _Status.ACCEPTED:
                return judged
        return judged

    def _judge_token(self, rule: JwtRule, token: str, at: float) -> _Judged:
        """Return the result for a token in Envoy's order: the signature is the last check, and always required."""
        from eastgate.reading.jwt import Expectations, VerifiedToken, verify, verify_from

        claimed = _payload(token)
        judged = _Judged(_Status.INVALID) if claimed is None else _judge_claims(rule, claimed, at)
        if judged.status is not _Status.ACCEPTED:
            return judged
        signed = Expectations(None, leeway=_NO_EXPIRY_SECONDS, require_expiry=False)
        keys = _inline_keys(rule.jwks) if rule.jwks else None
        if keys is not None:
            outcome = verify(token, keys, signed, _AT_ANY_TIME)
        elif self.keys is not None and not rule.jwks and (name := rule.issuer or rule.jwks_uri):
            outcome = verify_from(self.keys, name, token, signed, _AT_ANY_TIME)
        else:
            return _Judged(_Status.INVALID)
        if not isinstance(outcome, VerifiedToken):
            return _Judged(_Status.INVALID)
        return _Judged(_Status.ACCEPTED, outcome.claims)


_NO_EXPIRY_SECONDS: Final = 1e15  # times are checked separately


def _final(statuses: Sequence[_Status]) -> _Status:
    """Return the result of all rules: the last one counts that is neither missing nor of an unknown issuer."""
    final = _Status.MISSING
    ignored = (_Status.MISSING, _Status.UNKNOWN_ISSUER)
    first_failure = next((status for status in statuses if status is not _Status.MISSING), _Status.MISSING)
    ending = (first_failure,) if len(statuses) > 1 else ()  # evaluates the rules again: each accepts, or finds nothing
    for status in (*statuses, *ending):
        if status not in ignored or final is _Status.MISSING:
            final = status
    return final


def _headers_of(raw: RawRequest) -> HeaderValues | None:
    """Return the known headers, with the bearer token if it is given separately; None if no headers are known."""
    if raw.token is None:
        return None if raw.headers is None else header_values(raw.headers)
    headers = {} if raw.headers is None else dict(header_values(raw.headers))
    return HeaderValues({**headers, "authorization": (f"Bearer {raw.token}",)})


def _is_preflight(values: Mapping[Attribute, Known], headers: HeaderValues | None) -> bool:
    """Return whether the request is a CORS preflight, which needs no token."""
    asked = ("origin", "access-control-request-method")
    return values.get(METHOD) == "OPTIONS" and headers is not None and all(any(headers.get(name, ())) for name in asked)


def _now(values: Mapping[Attribute, Known]) -> float:
    from datetime import datetime

    given = values.get(TIME)
    try:
        return datetime.fromisoformat(given).timestamp() if isinstance(given, str) else time.time()
    except ValueError:
        return time.time()


# Claims


def _judge_claims(rule: JwtRule, claims: Mapping[str, object], at: float) -> _Judged:
    """Return the result for a token's payload: types, issuer, times, and then audience."""
    if not _has_proper_types(claims):
        return _Judged(_Status.INVALID)
    if rule.issuer is not None and claims.get("iss") != rule.issuer:
        return _Judged(_Status.UNKNOWN_ISSUER)
    if not _is_in_time(claims, at):
        return _Judged(_Status.INVALID)
    accepted = frozenset(map(_audience, rule.audiences))
    if accepted and not any(_audience(each) in accepted for each in _listed(claims.get("aud"))):
        return _Judged(_Status.WRONG_AUDIENCE)
    return _Judged(_Status.ACCEPTED, claims)


def _has_proper_types(claims: Mapping[str, object]) -> bool:
    """Return whether the claims that Envoy reads from every token have their types. Null is of no type."""
    return all(is_proper(claims[name]) for name, is_proper in _TYPES.items() if name in claims)


def _is_text(claim: object) -> bool:
    return isinstance(claim, str)


def _is_moment(claim: object) -> bool:
    return isinstance(claim, int | float) and not isinstance(claim, bool) and 0 <= claim < _MAX_TIME_SECONDS


def _is_audience(claim: object) -> bool:
    return isinstance(claim, str) or (isinstance(claim, list | tuple) and all(map(_is_text, claim)))


_MAX_TIME_SECONDS: Final = 2.0**64
_TYPES: Final[Mapping[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("iss", "sub", "jti"), _is_text),
    **dict.fromkeys(("iat", "nbf", "exp"), _is_moment),
    "aud": _is_audience,
}


def _is_in_time(claims: Mapping[str, object], at: float) -> bool:
    expires, begins = claims.get("exp"), claims.get("nbf")
    ended = isinstance(expires, int | float) and bool(int(expires)) and at > int(expires) + _LEEWAY_SECONDS
    return not ended and not (isinstance(begins, int | float) and at + _LEEWAY_SECONDS < int(begins))


def _listed(claim: object) -> Iterable[object]:
    return claim if isinstance(claim, list | tuple) else () if claim is None else (claim,)


def _audience(audience: object) -> str | None:
    """Return an audience as Envoy compares it: without the scheme of a URL, and without a trailing slash."""
    if not isinstance(audience, str):
        return None
    secure = audience.removeprefix("https://")
    return (secure if secure != audience else audience.removeprefix("http://")).removesuffix("/")


def _split(claims: Mapping[str, object], rule: JwtRule) -> Mapping[str, object]:
    """Return the claims. Space-delimited ones are split to lists of words."""
    split = {
        name: words
        for name in _ALWAYS_SPLIT | rule.space_delimited
        if isinstance(value := claims.get(name), str) and (words := [word for word in value.split(" ") if word])
    }
    return {**claims, **split}


def _claim(claims: Mapping[str, object], path: Sequence[str]) -> Known:
    """Return a claim: a text, or the texts of a list. Other values never match."""
    value: object = claims
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return value
    return known([each for each in value if isinstance(each, str)]) if isinstance(value, list | tuple) else None


def _payload(token: str) -> Mapping[str, object] | None:
    """Return the claims of a token without verification, or None if it is not a token."""
    from eastgate.reading.jwt.envelope import open_token
    from eastgate.reading.jwt.outcome import TokenRefused
    from eastgate.reading.strict_json import JsonProblem, read_object

    try:
        return read_object(open_token(token, _MAX_TOKEN_CHARACTERS).payload)
    except (TokenRefused, JsonProblem):
        return None


_MAX_TOKEN_CHARACTERS: Final = 16 * 1024


_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth"})


@lru_cache(maxsize=256)
def _inline_keys(jwks: str) -> Keys | None:
    """Return the public keys in the text of a key set, or of a single key, or None if it has no usable key."""
    from eastgate.reading.jwt import Keys

    keys = keys_in(jwks)
    if not keys:
        return None
    try:
        return Keys.of({"keys": [{name: key[name] for name in key if name not in _PRIVATE} for key in keys]})
    except (AttributeError, TypeError, ValueError):
        return None
