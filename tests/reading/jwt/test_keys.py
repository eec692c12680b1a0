"""Keys that an issuer may publish: the used ones, and the messages about the others."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from eastgate.reading.jwt import Keys, Reason
from eastgate.reading.jwt.keys import Key
from tests.reading.jwt.mint import b64, jwk, pair, reason, token


def used(*jwks: object, symmetric: bool = False) -> list[str | None]:
    return [key.kid for key in Keys.of({"keys": list(jwks)}, symmetric=symmetric).all]


IGNORED: dict[str, dict[str, Any]] = {
    "for encryption": {"use": "enc"},
    "for a use that is not known": {"use": "tls"},
    "for other operations": {"key_ops": ["encrypt", "wrapKey"]},
    "of a type that is not known": {"kty": "AKP"},
    "on a curve that is not known": {"crv": "secp256k1"},
    "for an algorithm of encryption": {"alg": "ECDH-ES"},
    "for an algorithm of other keys": {"alg": "RS256"},
}


@pytest.mark.parametrize("why", IGNORED)
def test_a_key_that_is_not_for_us_is_left_out(why: str) -> None:
    assert used(jwk("p256", **IGNORED[why]), jwk("ed25519")) == ["ed25519"]


def test_a_key_for_agreement_is_left_out() -> None:
    assert used(jwk("x25519"), jwk("p384", use="sig", key_ops=["verify"])) == ["p384"]


def test_a_shared_secret_is_left_out_by_default() -> None:
    secret = {**pair("secret").as_dict(), "kid": "secret"}
    assert used(secret, jwk("p256")) == ["p256"]
    assert used(secret, symmetric=True) == ["secret"]
    with pytest.raises(ValueError, match="no key that verifies signatures; shared secrets"):
        used(secret)


def weak() -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):
        return dict(RSAKey.generate_key(1024).as_dict(private=False))


BROKEN: dict[str, tuple[object, str]] = {
    "not an object": ("p256", r"keys\[0\] is not an object"),
    "no type": ({}, "has no 'kty'"),
    "a type that is a number": (jwk("p256", kty=1), "kty is not a string"),
    "an id that is a number": (jwk("p256", kid=1), "kid is not a string"),
    "an algorithm that is a list": (jwk("p256", alg=["ES256"]), "alg is not a string"),
    "a use that is a list": (jwk("p256", use=["sig"]), "use is not a string"),
    "operations that are a string": (jwk("p256", key_ops="verify"), "key_ops is not a list"),
    "a missing coordinate": ({"kty": "EC", "crv": "P-256", "x": "AAAA"}, "has no 'y'"),
    "a coordinate that is a number": (jwk("p256", x=1), "x is not a string"),
    "a coordinate that is not base64url": (jwk("p256", x="+/=="), "x is not base64url"),
    "a coordinate of other letters": (jwk("p256", x="é"), "x is not base64url"),
    "a point that is not on the curve": (jwk("p256", x="AQ"), "not a valid EC key"),
    "the coordinates of another curve": (jwk("p384", crv="P-256"), "not a valid EC key"),
    "a short Edwards key": (jwk("ed25519", x="AAAA"), "not a valid OKP key"),
    "an RSA key that can be broken": (weak(), "has 1024 bits"),
    "an RSA key that is too slow": (jwk("rsa", n="_" * 4096), "has 24576 bits"),
    "an RSA exponent of 1": (jwk("rsa", e="AQ"), "not a valid RSA key"),
    "a private key": (pair("p256").as_dict(private=True), "contains its private part"),
    "a private RSA key": (pair("rsa").as_dict(private=True), "contains its private part"),
    "a private key of Edwards": (pair("ed25519").as_dict(private=True), "contains its private part"),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_key_is_reported_by_its_place(why: str) -> None:
    broken, says = BROKEN[why]
    with pytest.raises(ValueError, match=says) as problem:
        used(broken, jwk("p256"))
    assert "keys[0]" in str(problem.value)


@pytest.mark.parametrize(
    ("secret", "says"),
    [
        ({"kty": "oct", "k": "AAAA"}, "secret of 3 bytes; 32 is the least"),
        ({"kty": "oct", "k": ""}, "k is not base64url"),
        ({"kty": "oct"}, "has no 'k'"),
    ],
)
def test_a_secret_that_can_be_guessed_is_reported(secret: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        used(secret, symmetric=True)


def test_a_public_key_given_as_a_secret_is_reported() -> None:
    pem = b64(pair("rsa").as_pem())  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="not a valid oct key"):
        used({"kty": "oct", "k": pem}, symmetric=True)


SETS: dict[str, tuple[Any, str]] = {
    "no keys": ({"keys": []}, "no key that verifies"),
    "nothing": ({}, "no list of keys"),
    "keys by name": ({"keys": {"a": {}}}, "no list of keys"),
    "a string": ({"keys": "keys"}, "no list of keys"),
    "a list": (b"[]", "is not a JSON object"),
    "not JSON": (b"<html>", "is not JSON"),
    "two sets": (b'{"keys":[],"keys":[]}', "same key twice"),
    "not UTF-8": (b"\xff", "is not UTF-8"),
}


@pytest.mark.parametrize("why", SETS)
def test_an_invalid_key_set_is_reported(why: str) -> None:
    jwks, says = SETS[why]
    with pytest.raises(ValueError, match=says):
        Keys.of(jwks)


@pytest.mark.parametrize("modulus", ["_" * 341 + "g", "_" * 341 + "w", "g" + "A" * 341], ids=["even", "odd", "round"])
def test_a_number_that_is_no_rsa_modulus_verifies_nothing(modulus: str) -> None:
    """The libraries accept it as a key, and some fail only when it is used."""
    known = Keys.of({"keys": [jwk("rsa", n=modulus)]})
    for algorithm in sorted(known.all[0].algorithms):
        assert reason(token(signer="rsa", algorithm=algorithm), known) is Reason.BAD_SIGNATURE


def test_an_error_of_the_library_is_not_a_signature() -> None:
    """This should not happen, because a key has only fitting algorithms. If it does, the token is rejected."""
    misfit = Keys((Key("misfit", frozenset({"ES256"}), pair("rsa")),))
    assert reason(token(kid="misfit"), misfit) is Reason.BAD_SIGNATURE


def test_a_key_set_is_read_from_text_too() -> None:
    known = Keys.of(json.dumps({"keys": [jwk("p256", x5c=["AAAA"], x5u="not a url", made_up=1)]}).encode())
    assert [key.kid for key in known.all] == ["p256"]
    assert known.all[0].algorithms == {"ES256"}
