"""Tokens at a workload, as Envoy's jwt_authn validates them with istiod's requirements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from eastgate.dialects.istio.authentication_shapes import keys_in
from eastgate.dialects.istio.claims import claim_at
from eastgate.dialects.istio.model import HeaderLocation, JwtRule
from eastgate.dialects.istio.tokens import ACCEPTED, TokenDerivation
from eastgate.ir import Known, RawRequest
from eastgate.ir.attributes import METHOD, TARGET, TIME, TOKEN, Attribute, query
from eastgate.reading.jwt import KnownKeys
from tests.dialects.istio.planes_building import SPAN, tokens_policy
from tests.reading.jwt.mint import NOW, jwk, keys, sealed

ISSUER = "https://issuer.example"
CLAIMS: dict[str, object] = {"iss": ISSUER, "sub": "alice", "exp": NOW + 60}
AT = datetime.fromtimestamp(NOW, UTC).isoformat()
SUBJECT, SCOPE, NESTED = claim_at(["sub"]), claim_at(["scope"]), claim_at(["realm", "roles"])
ASKED = frozenset({SUBJECT, SCOPE, NESTED})
JWKS = json.dumps({"keys": [jwk("p256")]})
BAD, FORBIDDEN = "refused by app/jwt", "for another audience than that of app/jwt"


def inline(**more: object) -> JwtRule:
    return JwtRule(span=SPAN, **{"issuer": ISSUER, "jwks": JWKS, **more})  # type: ignore[arg-type]


def token(**more: object) -> str:
    return sealed({"alg": "ES256", "kid": "p256"}, {**CLAIMS, **more}, "p256", "ES256")


def derive(
    *rules: JwtRule,
    headers: Mapping[str, str | list[str]] | None = None,
    claims: Mapping[str, object] | None = None,
    known: Mapping[Attribute, Known] | None = None,
    bearer: str | None = None,
    source: KnownKeys | None = None,
) -> Mapping[Attribute, Known]:
    values: dict[Attribute, Known] = {TARGET: "/", TIME: AT, **(known or {})}
    raw = RawRequest(headers=headers, claims=claims, token=bearer)
    return TokenDerivation((tokens_policy("jwt", *rules),), ASKED, source).derive(values, raw)


def with_bearer(text: str) -> dict[str, str | list[str]]:
    return {"Authorization": f"Bearer {text}"}


# No token


def test_no_token_passes_without_claims() -> None:
    assert derive(inline(), headers={}) == {TOKEN: None, SUBJECT: None, SCOPE: None, NESTED: None}


def test_unknown_headers_leave_all_unknown() -> None:
    assert derive(inline()) == {}


def test_an_unknown_query_leaves_the_default_location_unknown() -> None:
    values: dict[Attribute, Known] = {TIME: AT}
    rules = TokenDerivation((tokens_policy("jwt", inline()),), ASKED)
    assert rules.derive(values, RawRequest(headers={})) == {}
    at_header = TokenDerivation((tokens_policy("jwt", inline(headers=(HeaderLocation("x-token"),))),), ASKED)
    assert at_header.derive(values, RawRequest(headers={}))[TOKEN] is None


def test_without_rules_there_are_no_claims() -> None:
    assert derive(claims=CLAIMS) == {TOKEN: None, SUBJECT: None, SCOPE: None, NESTED: None}


# Signed tokens


def test_a_good_token_is_accepted_with_its_claims() -> None:
    headers = with_bearer(token(scope="read  write", realm={"roles": ["a", 7, "b"]}))
    expected = {TOKEN: ACCEPTED, SUBJECT: "alice", SCOPE: ("read", "write"), NESTED: ("a", "b")}
    assert derive(inline(), headers=headers) == expected


def test_keys_come_from_the_question_where_the_policy_has_none() -> None:
    rule = JwtRule(span=SPAN, issuer=ISSUER)
    assert derive(rule, headers=with_bearer(token()), source=KnownKeys({ISSUER: keys("p256")}))[TOKEN] == ACCEPTED
    assert derive(rule, headers=with_bearer(token()), source=KnownKeys({ISSUER: keys("p256-2")}))[TOKEN] == BAD
    assert derive(rule, headers=with_bearer(token()))[TOKEN] == BAD


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("garbage", BAD),
        (token(iss="https://other.example"), BAD),
        (token(exp=NOW - 59), ACCEPTED),
        (token(exp=NOW - 60), ACCEPTED),
        (token(exp=NOW - 61), BAD),
        (token(nbf=NOW + 60), ACCEPTED),
        (token(nbf=NOW + 61), BAD),
        (sealed({"alg": "ES256", "kid": "p256"}, {"iss": ISSUER}, "p256", "ES256"), ACCEPTED),
        (sealed({"alg": "ES256", "kid": "p256"}, CLAIMS, "p256-2", "ES256"), BAD),
        (sealed({"alg": "none"}, CLAIMS, "p256", "ES256"), BAD),
    ],
    ids=["garbage", "issuer", "leeway", "end of it", "expired", "nbf", "not yet", "no exp", "another key", "none"],
)
def test_tokens_are_verified(text: str, expected: str) -> None:
    assert derive(inline(), headers=with_bearer(text))[TOKEN] == expected


def test_claims_of_a_refused_token_are_absent() -> None:
    assert derive(inline(), headers=with_bearer(token(exp=1)))[SUBJECT] is None


@pytest.mark.parametrize(
    ("audience", "expected"),
    [
        ("shop", ACCEPTED),
        (["other", "shop"], ACCEPTED),
        ("https://shop/", ACCEPTED),
        ("other", FORBIDDEN),
        ([], FORBIDDEN),
    ],
    ids=str,
)
def test_a_wrong_audience_is_forbidden(audience: object, expected: str) -> None:
    rule = inline(audiences=frozenset({"shop"}))
    assert derive(rule, headers=with_bearer(token(aud=audience)))[TOKEN] == expected
    assert derive(rule, claims={**CLAIMS, "aud": audience})[TOKEN] == expected


def test_the_audience_is_judged_before_the_signature() -> None:
    forged = sealed({"alg": "ES256", "kid": "p256"}, {**CLAIMS, "aud": "other"}, "p256-2", "ES256")
    assert derive(inline(audiences=frozenset({"shop"})), headers=with_bearer(forged))[TOKEN] == FORBIDDEN


# Locations


@pytest.mark.parametrize(
    ("rule", "headers", "expected"),
    [
        (inline(headers=(HeaderLocation("x-token"),)), {"X-Token": token()}, ACCEPTED),
        (inline(headers=(HeaderLocation("x-token"),)), with_bearer(token()), None),
        (inline(headers=(HeaderLocation("x-token", "Jwt "),)), {"x-token": f"Jwt {token()}"}, ACCEPTED),
        (inline(headers=(HeaderLocation("x-token", "Jwt "),)), {"x-token": f"Jwt   {token()}"}, ACCEPTED),
        (inline(headers=(HeaderLocation("x-token", "Jwt "),)), {"x-token": token()}, None),
        (inline(headers=(HeaderLocation("x-token", "Jwt "),)), {"x-token": f"Old Jwt {token()}"}, ACCEPTED),
        (inline(cookies=("session",)), {"Cookie": f"a=b; session={token()}"}, ACCEPTED),
        (inline(cookies=("session",)), {"Cookie": "session=x"}, BAD),
        (inline(cookies=("session",)), with_bearer(token()), None),
        (inline(), {"authorization": f"bearer {token()}"}, None),
        (inline(), {"authorization": f"Basic {token()}"}, None),
        (inline(), {"authorization": [f"Bearer {token()}", "Bearer bad"]}, BAD),
    ],
    ids=range(12),
)
def test_tokens_are_found_where_the_rule_looks(
    rule: JwtRule, headers: Mapping[str, str | list[str]], expected: str | None
) -> None:
    assert derive(rule, headers=headers)[TOKEN] == expected


def test_tokens_in_queries() -> None:
    sent: dict[Attribute, Known] = {TARGET: "/?access_token=..&t=..", query("access_token"): token(), query("t"): "bad"}
    assert derive(inline(), headers={}, known=sent)[TOKEN] == ACCEPTED
    assert derive(inline(params=("t",)), headers={}, known=sent)[TOKEN] == BAD
    assert derive(inline(params=("other",)), headers={}, known=sent)[TOKEN] is None


def test_one_rule_wants_all_of_its_tokens_good() -> None:
    sent: dict[Attribute, Known] = {TARGET: "/?access_token=..", query("access_token"): "bad"}
    assert derive(inline(), headers=with_bearer(token()), known=sent)[TOKEN] == BAD


def test_a_token_that_is_given_apart_is_a_bearer_token() -> None:
    assert derive(inline(), bearer=token())[TOKEN] == ACCEPTED


# Several rules


def test_rules_of_all_policies_count_together() -> None:
    other = JwtRule(span=SPAN, issuer="https://another.example", jwks=JWKS)
    both = TokenDerivation((tokens_policy("a", other), tokens_policy("jwt", inline())), ASKED)
    values: dict[Attribute, Known] = {TARGET: "/", TIME: AT}
    assert both.derive(values, RawRequest(headers=with_bearer(token())))[TOKEN] == ACCEPTED
    assert both.derive(values, RawRequest(headers={}))[TOKEN] is None
    expired = both.derive(values, RawRequest(headers=with_bearer(token(exp=1))))
    assert expired[TOKEN] == BAD
    stranger = both.derive(values, RawRequest(claims={"iss": "https://third.example"}))
    assert str(stranger[TOKEN]).startswith("refused by app/")


def test_a_wrong_audience_counts_more_than_another_issuer() -> None:
    other = JwtRule(span=SPAN, issuer="https://z.example", jwks=JWKS)
    rule = inline(audiences=frozenset({"shop"}))
    assert derive(rule, other, claims={**CLAIMS, "aud": "other"})[TOKEN] == FORBIDDEN


def test_with_several_rules_one_good_token_is_enough() -> None:
    other = inline(issuer="https://z.example", headers=(HeaderLocation("x-token"),))
    headers = {**with_bearer(token()), "x-token": "bad"}
    assert derive(inline(), other, headers=headers)[TOKEN] == ACCEPTED


# Claims


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (CLAIMS, ACCEPTED),
        ({"iss": ISSUER}, ACCEPTED),
        ({"iss": "https://other.example"}, BAD),
        ({"sub": "alice"}, BAD),
        ({"iss": ISSUER, "exp": NOW - 61}, BAD),
    ],
    ids=str,
)
def test_claims_stand_for_a_verified_token(claims: Mapping[str, object], expected: str) -> None:
    assert derive(JwtRule(span=SPAN, issuer=ISSUER), claims=claims)[TOKEN] == expected


def test_more_claims_are_split_where_the_rule_says_so() -> None:
    groups = claim_at(["groups"])
    tokens = TokenDerivation(
        (tokens_policy("jwt", inline(space_delimited=frozenset({"groups"}))),), frozenset({groups, SUBJECT})
    )
    derived = tokens.derive({TIME: AT}, RawRequest(claims={**CLAIMS, "groups": "a b", "sub": "c d"}))
    assert (derived[groups], derived[SUBJECT]) == (("a", "b"), "c d")


@pytest.mark.parametrize("value", [7, True, None, {"a": "b"}, [], [1, 2]], ids=str)
def test_only_texts_and_lists_of_texts_are_claims(value: object) -> None:
    assert derive(inline(), claims={**CLAIMS, "sub": value})[SUBJECT] is None


def test_a_preflight_request_needs_no_token() -> None:
    headers = {"Origin": "https://a", "Access-Control-Request-Method": "GET", **with_bearer("bad")}
    assert derive(inline(), headers=headers, known={METHOD: "OPTIONS"})[TOKEN] is None
    assert derive(inline(), headers=headers, known={METHOD: "GET"})[TOKEN] == BAD
    assert derive(inline(), headers=with_bearer("bad"), known={METHOD: "OPTIONS"})[TOKEN] == BAD


def test_private_parts_of_inline_keys_are_not_used() -> None:
    from tests.reading.jwt.mint import pair

    jwks = json.dumps({"keys": [{**pair("p256").as_dict(private=True), "kid": "p256"}]})
    assert derive(inline(jwks=jwks), headers=with_bearer(token()))[TOKEN] == ACCEPTED


@pytest.mark.parametrize(
    "more", ['"a": NaN', '"a": 1e999', '"kty": "EC"', '"a": "\\ud800"', '"a": ' + "[" * 5000 + "]" * 5000], ids=len
)
def test_inline_keys_that_readers_disagree_about_are_none(more: str) -> None:
    from tests.reading.jwt.mint import pair

    key = json.dumps({**pair("p256").as_dict(private=False), "kid": "p256"})
    assert derive(inline(jwks=key), headers=with_bearer(token()))[TOKEN] == ACCEPTED
    hostile = f'{{"keys": [{key[:-1]}, {more}}}]}}'
    assert derive(inline(jwks=hostile), headers=with_bearer(token()))[TOKEN] == BAD
    assert keys_in(hostile) is None


@pytest.mark.parametrize("more", [{"sub": None}, {"exp": None}, {"nbf": True}, {"exp": -1}, {"iat": 2**64}, {"jti": 5}])
def test_claims_that_envoy_reads_have_its_types(more: Mapping[str, object]) -> None:
    assert derive(inline(), headers=with_bearer(token(**more)))[TOKEN] == BAD


def test_other_headers_are_unknown_beside_a_token_that_is_given_apart() -> None:
    elsewhere = inline(headers=(HeaderLocation("x-token"),))
    assert derive(elsewhere, bearer=token()) == {}
    assert derive(elsewhere, bearer=token(), headers={})[TOKEN] is None
