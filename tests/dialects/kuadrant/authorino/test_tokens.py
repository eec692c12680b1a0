"""Attacks on tokens also fail through the evaluator."""

from __future__ import annotations

from hashlib import sha256
from hmac import digest

import pytest
from joserfc.jwk import RSAKey

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import Services
from eastgate.dialects.kuadrant.authorino.model import Identity, Jwt
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.reading.jwt import DiscoveredKeys, KnownKeys
from tests.dialects.kuadrant.authorino.schemes import request, rule, scheme, trail
from tests.reading.jwt.issuer import running
from tests.reading.jwt.mint import CLAIMS, ISSUER, NOW, b64, jwk, keys, pair, sealed, text, token

SERVICES = Services(keys=KnownKeys({ISSUER: keys("rsa", "p256")}))
SHOP = Identity("issuer", Jwt(ISSUER, audiences=frozenset({"shop"})))
GUARDED = scheme(rule("auth.identity.sub eq alice"), identities=[SHOP])


def asked(bearer: str, services: Services = SERVICES) -> Judgement:
    found = evaluate(GUARDED, request(headers={"authorization": f"Bearer {bearer}"}), services)
    assert not any(len(part) > 8 and part in repr(found) for part in bearer.split("."))
    return found


def confused() -> str:
    """Return a token that is signed with the public key as if it were a shared secret."""
    signed = f"{text({'alg': 'HS256', 'kid': 'rsa'})}.{text(CLAIMS)}"
    key = pair("rsa")
    assert isinstance(key, RSAKey)
    public = key.as_pem(private=False)
    return f"{signed}.{b64(digest(public, signed.encode(), sha256))}"


def test_a_good_token_is_recognized() -> None:
    found = asked(token())
    assert (found.allowed, trail(found)) == (True, [("issuer", "accepted"), ("rule", "accepted")])
    assert found.document["auth"]["identity"]["sub"] == "alice"  # type: ignore[index]


@pytest.mark.parametrize(
    ("bearer", "said"),
    [
        (f"{text({'alg': 'none'})}.{text(CLAIMS)}.", "algorithm"),
        (confused(), "algorithm"),
        (token({**CLAIMS, "iss": "https://evil.example"}), "issuer"),
        (token({name: value for name, value in CLAIMS.items() if name != "iss"}), "iss"),
        (token({**CLAIMS, "aud": "other"}), "shop"),
        (token({name: value for name, value in CLAIMS.items() if name != "aud"}), "aud"),
        (token({**CLAIMS, "exp": NOW - 31}), "expired"),
        (token({name: value for name, value in CLAIMS.items() if name != "exp"}), "exp"),
        (token({**CLAIMS, "nbf": NOW + 31}), "not valid yet"),
        (token({**CLAIMS, "exp": "never"}), "exp"),
        (token(kid="unknown"), "key"),
        (token(signer="p256-other", kid="p256"), "not signed"),
        (token({**CLAIMS, "filler": "x" * 20_000}), "longer"),
        (sealed({"alg": "ES256", "kid": "p256"}, b'{"sub":"alice","sub":"eve"}', "p256", "ES256"), "twice"),
        ("not a token", "three parts"),
    ],
)
def test_a_bad_token_is_not(bearer: str, said: str) -> None:
    found = asked(bearer)
    assert (found.allowed, found.status, trail(found)) == (False, 401, [("issuer", "refused")])
    assert said in found.steps[0].reason
    assert ("WWW-Authenticate", 'Bearer realm="issuer"') in found.headers


@pytest.mark.parametrize(
    ("times", "accepted"), [({"nbf": NOW + 30}, True), ({"nbf": NOW + 31}, False), ({"exp": NOW}, False)]
)
def test_the_clock_of_an_issuer_may_be_a_little_ahead(times: dict[str, int], accepted: bool) -> None:
    assert asked(token({**CLAIMS, **times})).allowed is accepted


def test_without_keys_nothing_is_known_of_a_token() -> None:
    assert trail(asked(token(), Services())) == [("issuer", "unknown")]


def test_keys_that_cannot_be_had_deny() -> None:
    found = asked(token(), Services(keys=KnownKeys({})))
    assert trail(found) == [("issuer", "error")]


def test_keys_are_discovered_from_a_real_issuer() -> None:
    with running() as issuer:
        issuer.publish(jwk("p256"))
        guarded = scheme(identities=[Identity("issuer", Jwt(issuer.url))])
        services = Services(keys=DiscoveredKeys())
        bearer = token({**CLAIMS, "iss": issuer.url})
        assert evaluate(guarded, request(headers={"authorization": f"Bearer {bearer}"}), services).allowed
        assert not evaluate(guarded, request(headers={"authorization": f"Bearer {token()}"}), services).allowed


def test_keys_at_a_url_of_their_own_come_from_there() -> None:
    url = "https://keys.example/jwks"
    guarded = scheme(identities=[Identity("issuer", Jwt(None, url))])
    facts = request(headers={"authorization": f"Bearer {token()}"})
    assert evaluate(guarded, facts, Services(key_sets=KnownKeys({url: keys("p256")}))).allowed
    assert not evaluate(guarded, facts, Services(keys=KnownKeys({url: keys("p256")}))).allowed


@pytest.mark.parametrize(
    ("claims", "accepted"),
    [
        ({"sub": "alice"}, True),
        ({"sub": "alice", "iss": ISSUER, "aud": ["shop"], "exp": NOW + 60}, True),
        ({"sub": "alice", "iss": "https://evil.example"}, False),
        ({"sub": "alice", "aud": "other"}, False),
        ({"sub": "alice", "exp": NOW - 60}, False),
        ({"sub": "alice", "nbf": NOW + 60}, False),
        ({"sub": "eve"}, False),
        ({}, False),
    ],
)
def test_claims_stand_for_a_verified_token(claims: dict[str, object], accepted: bool) -> None:
    assert evaluate(GUARDED, request(claims=claims), Services()).allowed is accepted
