"""Generated texts, from noise to nearly valid tokens: each gets an answer, and none is accepted by accident."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from eastgate.reading.jwt import Expectations, Reason, RejectedToken, VerifiedToken, verify
from eastgate.reading.strict_json import JsonProblem, read_object
from tests.reading.jwt.mint import CLAIMS, EXPECTED, NOW, b64, keys, sealed, text, token

KNOWN = keys("p256", "ed25519")
GOOD = token()
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n"

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
headers = st.fixed_dictionaries(
    {},
    optional={
        "alg": st.sampled_from(["ES256", "EdDSA", "HS256", "none", "RS256"]) | values,
        "kid": st.sampled_from(["p256", "ed25519"]) | values,
        "typ": values,
        "cty": values,
        "crit": values,
        "jwk": values,
        "b64": values,
    },
)


@given(st.text() | st.text(ALPHABET) | st.lists(st.binary().map(b64), max_size=6).map(".".join))
@example("\ud800")
@example("." * 20_000)
def test_noise_is_rejected(noise: str) -> None:
    assert isinstance(verify(noise, KNOWN, EXPECTED, NOW), RejectedToken)


@given(headers, values, st.binary(max_size=80))
def test_an_unsigned_token_is_rejected(header: dict[str, object], payload: object, signature: bytes) -> None:
    forged = f"{text(header)}.{text(payload)}.{b64(signature)}"
    assert isinstance(verify(forged, KNOWN, EXPECTED, NOW), RejectedToken)


@given(st.integers(0, len(GOOD) - 1), st.characters())
def test_one_character_makes_a_token_worthless(at: int, character: str) -> None:
    changed = GOOD[:at] + character + GOOD[at + 1 :]
    assert isinstance(verify(changed, KNOWN, EXPECTED, NOW), RejectedToken) == (changed != GOOD)


@given(st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()))
def test_a_signed_payload_of_any_kind_gets_an_answer(payload: bytes) -> None:
    assert isinstance(verify(sealed({"alg": "ES256"}, payload, "p256", "ES256"), KNOWN, EXPECTED, NOW), RejectedToken)


names = st.sampled_from(["iss", "aud", "exp", "nbf", "iat", "sub"])
times = st.integers(NOW - 3, NOW + 3) | st.floats(NOW - 3, NOW + 3)


@given(st.dictionaries(names, values | times, max_size=6), st.integers(0, 2))
def test_claims_are_believed_exactly_when_they_all_hold(more: dict[str, Any], leeway: int) -> None:
    """Compare with a second, simpler implementation of the rules."""
    claims = {**CLAIMS, **more}
    outcome = verify(token(claims), KNOWN, Expectations(EXPECTED.issuer, EXPECTED.audiences, leeway=leeway), NOW)
    if isinstance(outcome, RejectedToken) and outcome.reason in (Reason.MALFORMED, Reason.TOO_LARGE):
        return
    audience = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    times = [claims[name] for name in ("exp", "nbf", "iat") if name in claims]
    holds = (
        claims["iss"] == EXPECTED.issuer
        and all(isinstance(name, str) for name in audience)
        and "shop" in audience
        and all(type(when) in (int, float) for when in times)
        and claims["exp"] > NOW
        and claims.get("nbf", NOW) - leeway <= NOW
        and claims["iat"] - leeway <= NOW
    )
    assert isinstance(outcome, VerifiedToken) == holds


@given(st.dictionaries(st.text(), values))
def test_the_result_equals_that_of_python(value: dict[str, object]) -> None:
    written = json.dumps(value)
    try:
        read = read_object(written.encode())
    except JsonProblem:
        return
    assert read == json.loads(written)
