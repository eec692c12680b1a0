"""Tokens that are issued about a caller: their claims, their signature, and the callers without one."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from eastgate.cluster import Secret
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.model import (
    Identity,
    Jwt,
    LiteralValue,
    Property,
    Response,
    Selected,
    SigningKey,
    Wristband,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.schemes import NAMESPACE, api_keys, everybody, holding, request, scheme, secret
from tests.reading.jwt.mint import ISSUER, NOW, pair

KINDS = {"ES256": "p256", "ES384": "p384", "ES512": "p521", "RS256": "rsa", "RS384": "rsa", "RS512": "rsa"}


def pem(kind: str) -> bytes:
    key = pair(kind)
    assert isinstance(key, ECKey | RSAKey)
    assert key.private_key is not None
    return key.private_key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def keeping(kind: str) -> Secret:
    return Secret(NAMESPACE, "signing", {}, {}, {"key.pem": pem(kind)})


def issued(
    algorithm: str, *secrets: Secret, identity: Identity | None = None, facts: Any = None, **more: Any
) -> Judgement:
    wristband = Wristband("https://wrist.example", (SigningKey("signing", algorithm),), **more)
    guarded = scheme(identities=[identity or everybody()], responses=(Response("band", wristband, "x-band"),))
    return evaluate(guarded, facts or request(), holding(*secrets))


@pytest.mark.parametrize("algorithm", KINDS)
def test_a_token_is_signed_with_the_key_of_the_secret(algorithm: str) -> None:
    judged = issued(algorithm, keeping(KINDS[algorithm]), seconds=60)
    assert judged.allowed
    token = jwt.decode(judged.response_headers["x-band"], pair(KINDS[algorithm]), algorithms=[algorithm])
    assert token.header == {"alg": algorithm, "kid": "signing", "typ": "JWT"}
    subject = hashlib.sha256(b'{"anonymous":true}').hexdigest()
    assert token.claims == {"iss": "https://wrist.example", "iat": NOW, "exp": NOW + 60, "sub": subject}


def test_claims_of_its_own_may_be_added_and_replace_the_usual_ones() -> None:
    claims = (Property("path", Selected("request.path")), Property("sub", LiteralValue("me")))
    judged = issued("ES256", keeping("p256"), claims=claims)
    token = jwt.decode(judged.response_headers["x-band"], pair("p256"), algorithms=["ES256"])
    assert (token.claims["path"], token.claims["sub"], token.claims["exp"]) == ("/orders?x=1", "me", NOW + 300)


def test_no_secret_gets_into_a_token_and_no_token_into_an_explanation() -> None:
    claims = (Property("key", Selected("request.headers.authorization")), Property("k", Selected("auth.identity.data")))
    facts = request(headers={"authorization": "APIKEY alices-key"})
    judged = issued(
        "ES256", keeping("p256"), secret("alice", "alices-key"), identity=api_keys(), facts=facts, claims=claims
    )
    text = judged.response_headers["x-band"]
    token = jwt.decode(text, pair("p256"), algorithms=["ES256"])
    assert (token.claims["key"], token.claims["k"]) == ("***", {"api_key": "***"})
    assert text not in repr((judged.document, judged.steps))


def test_a_caller_with_a_token_of_the_same_issuer_gets_no_other() -> None:
    identity = Identity("idp", Jwt("https://wrist.example"))
    judged = issued("ES256", keeping("p256"), identity=identity, facts=request(claims={"sub": "alice"}))
    assert judged.response_headers == {"x-band": ""}
    other = issued("ES256", keeping("p256"), identity=Identity("idp", Jwt(ISSUER)), facts=request(claims={"sub": "a"}))
    assert other.response_headers["x-band"]


@pytest.mark.parametrize(
    ("algorithm", "secrets"),
    [
        ("ES256", []),
        ("ES256", [keeping("rsa")]),
        ("ES256", [keeping("p384")]),
        ("RS256", [keeping("p256")]),
        ("ES256", [Secret(NAMESPACE, "signing", {}, {}, {"key.pem": b"nonsense"})]),
        ("ES256", [Secret("elsewhere", "signing", {}, {}, {"key.pem": pem("p256")})]),
    ],
)
def test_without_a_key_that_fits_there_is_no_header(algorithm: str, secrets: list[Secret]) -> None:
    judged = issued(algorithm, *secrets)
    assert (judged.allowed, judged.response_headers) == (True, {})


def test_a_claim_that_is_unknown_leaves_the_header_out() -> None:
    claims = (Property("path", Selected("request.path")),)
    judged = issued("ES256", keeping("p256"), facts=request(path=UNKNOWN), claims=claims)
    assert judged.response_headers == {}
