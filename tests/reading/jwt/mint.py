"""Makes valid and invalid tokens, with keys that are kept for the test run."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache

from joserfc.jwa import JWS_ALGORITHMS
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from eastgate.reading.jwt import Expectations, Keys, Reason, RejectedToken, VerifiedToken, verify

ISSUER = "https://issuer.example"
NOW = 1_800_000_000
EXPECTED = Expectations(ISSUER, frozenset({"shop"}))
CLAIMS: dict[str, object] = {"iss": ISSUER, "aud": "shop", "sub": "alice", "exp": NOW + 60, "iat": NOW - 60}

ALGORITHMS = {algorithm.name: algorithm for algorithm in JWS_ALGORITHMS}
KIND_FOR = {"RS": "rsa", "PS": "rsa", "HS": "secret"}
CURVE_FOR = {
    "ES256": "p256",
    "ES384": "p384",
    "ES512": "p521",
    "EdDSA": "ed25519",
    "Ed25519": "ed25519",
    "Ed448": "ed448",
}


@cache
def pair(name: str) -> RSAKey | ECKey | OKPKey | OctKey:
    """Return the key pair of this name: a kind, and perhaps a number after a dash."""
    match name.split("-")[0]:
        case "rsa":
            return RSAKey.generate_key(2048)
        case "p256":
            return ECKey.generate_key("P-256")
        case "p384":
            return ECKey.generate_key("P-384")
        case "p521":
            return ECKey.generate_key("P-521")
        case "ed25519":
            return OKPKey.generate_key("Ed25519")
        case "ed448":
            return OKPKey.generate_key("Ed448")
        case "x25519":
            return OKPKey.generate_key("X25519")
        case "secret":
            return OctKey.generate_key(512)
    raise AssertionError(name)


def jwk(name: str, **more: object) -> dict[str, object]:
    """Return the public key under its name, as an issuer publishes it."""
    return {**pair(name).as_dict(private=False), "kid": name, **more}


def keys(*names: str) -> Keys:
    return Keys.of({"keys": [jwk(name) for name in names]})


def key_for(algorithm: str) -> str:
    return CURVE_FOR.get(algorithm) or KIND_FOR[algorithm[:2]]


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def text(part: object) -> str:
    """Return a part of a token. Bytes are used unchanged, for invalid parts."""
    return b64(part if isinstance(part, bytes) else json.dumps(part, separators=(",", ":")).encode())


def sealed(header: object, payload: object, signer: str, algorithm: str) -> str:
    """Return a token with a valid signature over any content."""
    signed = f"{text(header)}.{text(payload)}"
    return f"{signed}.{b64(ALGORITHMS[algorithm].sign(signed.encode(), pair(signer)))}"


def token(claims: object = CLAIMS, signer: str = "p256", algorithm: str = "ES256", **header: object) -> str:
    """Return a token of `signer` that names its key, unless told otherwise. A header of None is left out."""
    members = {"alg": algorithm, "typ": "JWT", "kid": signer, **header}
    return sealed({name: value for name, value in members.items() if value is not None}, claims, signer, algorithm)


def reason(text: str, known: Keys, expected: Expectations = EXPECTED, now: float = NOW) -> Reason | None:
    """Return the reason why a token is rejected, or None. The message never repeats the token."""
    match verify(text, known, expected, now):
        case RejectedToken(reason, message):
            assert message.endswith(".")
            assert not any(len(part) > 8 and part in message for part in text.split("."))
            return reason
        case VerifiedToken():
            return None
