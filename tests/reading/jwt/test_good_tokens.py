"""A token that its issuer really signed is accepted, with each algorithm."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey

from eastgate.reading.jwt import Expectations, Keys, Reason, VerifiedToken, verify
from eastgate.reading.jwt.envelope import ASYMMETRIC
from tests.reading.jwt.mint import CLAIMS, EXPECTED, ISSUER, NOW, b64, jwk, key_for, keys, pair, reason, token


@pytest.mark.parametrize("algorithm", ASYMMETRIC)
@pytest.mark.parametrize("named", [True, False], ids=["names its key", "names no key"])
def test_each_algorithm_is_verified(algorithm: str, named: bool) -> None:
    signer = key_for(algorithm)
    signed = token(signer=signer, algorithm=algorithm, kid=signer if named else None)
    outcome = verify(signed, keys("rsa", "p256", "p384", "p521", "ed25519"), EXPECTED, NOW)
    assert isinstance(outcome, VerifiedToken)
    assert outcome.claims == CLAIMS
    assert outcome.kid == signer
    assert outcome.header["alg"] == algorithm


@pytest.mark.parametrize(("algorithm", "signer"), [("EdDSA", "ed448"), ("Ed448", "ed448"), ("Ed25519", "ed25519")])
def test_the_other_names_of_eddsa_are_verified_if_allowed(algorithm: str, signer: str) -> None:
    expected = Expectations(ISSUER, algorithms=(algorithm,))
    assert reason(token(signer=signer, algorithm=algorithm), keys(signer), expected) is None


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_shared_secret_verifies_only_when_both_sides_ask_for_it(algorithm: str) -> None:
    jwks = {"keys": [{**pair("secret").as_dict(), "kid": "secret"}, jwk("p256")]}
    signed = token(signer="secret", algorithm=algorithm)
    asked = Expectations(ISSUER, algorithms=(algorithm,))
    assert reason(signed, Keys.of(jwks, symmetric=True), asked) is None
    assert reason(signed, Keys.of(jwks, symmetric=True)) is Reason.ALGORITHM_NOT_ALLOWED
    assert reason(signed, Keys.of(jwks), asked) is Reason.UNKNOWN_KEY


def test_a_token_that_the_library_itself_wrote_is_verified() -> None:
    key = ECKey.generate_key("P-256", auto_kid=True)
    signed = jws.serialize_compact({"alg": "ES256"}, b'{"iss":"https://issuer.example","exp":1800000001}', key)
    assert reason(signed, Keys.of({"keys": [key.as_dict(private=False)]}), Expectations(ISSUER)) is None


def test_the_example_of_rfc_7515_is_verified() -> None:
    """Appendix A.3 comes from other authors.

    Its claims expired in 2011, so the rejection shows that the signature is valid.
    """
    known = Keys.of(
        b'{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",'
        b'"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}'
    )
    signed = (
        b64(b'{"alg":"ES256"}')
        + "."
        + b64(b'{"iss":"joe",\r\n "exp":1300819380,\r\n "http://example.com/is_root":true}')
        + ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    )
    assert reason(signed, known, Expectations("joe"), 1300819379) is None
    assert reason(signed, known, Expectations("joe"), 1300819380) is Reason.EXPIRED


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"x5t": "abc", "foo": {"bar": 1}}, "unknown members are ignored, as RFC 7515 asks"),
        ({"typ": "at+jwt"}, "an access token of RFC 9068"),
        ({"typ": None}, "typ is optional"),
        ({"jku": "https://evil.example/keys", "x5u": "file:///etc/passwd", "x5c": ["AAAA"]}, "not read by anything"),
        ({"cty": "json"}, "says what is inside"),
    ],
)
def test_other_headers(header: dict[str, Any], why: str) -> None:
    assert reason(token(**header), keys("p256")) is None, why


def test_claims_keep_their_values() -> None:
    claims = {
        **CLAIMS,
        "name": "Žofie 🦊",
        "n": 2**63,
        "f": 0.5,
        "list": [None, True, {"a": []}],
        "\u0000": "🦊",
    }
    outcome = verify(token(claims), keys("p256"), EXPECTED, NOW)
    assert isinstance(outcome, VerifiedToken)
    assert outcome.claims == claims


@pytest.mark.real
def test_importing_tokens_loads_neither_the_library_nor_an_http_client() -> None:
    heavy = ("joserfc", "cryptography", "urllib.request")
    code = f"import sys, eastgate.reading.jwt; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
