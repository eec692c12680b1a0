"""Forged tokens. Each is a known attack that once worked against some verifier."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from hmac import digest

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from joserfc.jwk import OctKey

from eastgate.reading.jwt import Expectations, Keys, Reason, VerifiedToken, verify
from eastgate.reading.jwt.envelope import ASYMMETRIC
from eastgate.reading.jwt.keys import MAX_TRIES
from tests.reading.jwt.mint import (
    ALGORITHMS,
    CLAIMS,
    EXPECTED,
    ISSUER,
    NOW,
    b64,
    jwk,
    key_for,
    keys,
    pair,
    reason,
    sealed,
    text,
    token,
)

KNOWN = keys("rsa", "p256", "p384", "p521", "ed25519")
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

NONES = ["none", "None", "NONE", "nOnE", "none ", " none", "none\u0000", "", "ｎｏｎｅ", "\u200bnone"]


@pytest.mark.parametrize("spelling", NONES, ids=repr)
@pytest.mark.parametrize("signature", ["", "AAAA"])
def test_no_signature_is_no_algorithm(spelling: str, signature: str) -> None:
    forged = f"{text({'alg': spelling})}.{text(CLAIMS)}.{signature}"
    assert reason(forged, KNOWN) is Reason.ALGORITHM_NOT_ALLOWED


PUBLIC_BYTES: dict[str, Callable[[], bytes]] = {
    "PEM": lambda: pair("rsa").as_pem(),  # type: ignore[union-attr]
    "PEM without its last newline": lambda: pair("rsa").as_pem().rstrip(),  # type: ignore[union-attr]
    "DER": lambda: pair("rsa").as_der(),  # type: ignore[union-attr]
    "JWK": lambda: json.dumps(jwk("rsa")).encode(),
    "the modulus": lambda: str(jwk("rsa")["n"]).encode(),
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("form", PUBLIC_BYTES)
@pytest.mark.parametrize("kid", ["rsa", None])
def test_a_public_key_is_never_a_shared_secret(form: str, kid: str | None) -> None:
    header = {"alg": "HS256"} if kid is None else {"alg": "HS256", "kid": kid}
    signed = f"{text(header)}.{text(CLAIMS)}"
    forged = f"{signed}.{b64(digest(PUBLIC_BYTES[form](), signed.encode(), sha256))}"
    assert reason(forged, KNOWN) is Reason.ALGORITHM_NOT_ALLOWED
    # Not even if a policy allows the algorithm by mistake.
    allowing = Expectations(ISSUER, algorithms=(*ASYMMETRIC, "HS256"))
    assert reason(forged, KNOWN, allowing) is (Reason.UNKNOWN_KEY if kid is None else Reason.KEY_MISMATCH)


CONFUSED = [
    ("ES256", "rsa"),
    ("RS256", "p256"),
    ("ES384", "p256"),
    ("ES256", "p384"),
    ("EdDSA", "p256"),
    ("PS256", "p521"),
]


@pytest.mark.parametrize(("algorithm", "kid"), CONFUSED)
def test_a_key_of_another_kind_is_not_used(algorithm: str, kid: str) -> None:
    signed = token(signer=key_for(algorithm), algorithm=algorithm, kid=kid)
    assert reason(signed, KNOWN) is Reason.KEY_MISMATCH


def test_a_key_is_used_only_for_the_algorithm_it_names() -> None:
    known = Keys.of({"keys": [jwk("rsa", alg="RS256")]})
    assert reason(token(signer="rsa", algorithm="RS256"), known) is None
    assert reason(token(signer="rsa", algorithm="RS512"), known) is Reason.KEY_MISMATCH
    assert reason(token(signer="rsa", algorithm="PS256", kid=None), known) is Reason.UNKNOWN_KEY


KIDS = [
    "P256",
    "p256 ",
    "",
    "../../../../dev/null",
    "p256' OR '1'='1",
    "p256\u0000",
    "0",
    "*",
    "\ud83e\udd8a",
    "p25б",
    "x" * 999,
]


@pytest.mark.parametrize("kid", KIDS, ids=ascii)
def test_a_key_that_is_not_there_has_no_stand_in(kid: str) -> None:
    assert reason(token(kid=kid), KNOWN) is Reason.UNKNOWN_KEY
    assert reason(token(kid=kid), keys("p256")) is Reason.UNKNOWN_KEY


def test_a_key_without_an_id_is_not_found_by_any_id() -> None:
    """Not by its thumbprint either, which libraries derive for it."""
    nameless = {name: value for name, value in jwk("p256").items() if name != "kid"}
    known = Keys.of({"keys": [nameless]})
    assert reason(token(kid=None), known) is None
    assert reason(token(kid=pair("p256").thumbprint()), known) is Reason.UNKNOWN_KEY


@pytest.mark.parametrize("kid", [1, True, ["p256"], {"p256": 1}], ids=repr)
def test_a_key_is_named_by_a_string(kid: object) -> None:
    assert reason(token(kid=kid), KNOWN) is Reason.MALFORMED


def test_a_kid_of_null_is_not_a_missing_one() -> None:
    assert reason(sealed({"alg": "ES256", "kid": None}, CLAIMS, "p256", "ES256"), KNOWN) is Reason.MALFORMED


def test_only_so_many_keys_are_tried() -> None:
    """A token without the name of a key costs at most this many signature checks, however long the key set is."""
    others = [jwk(f"p256-{number}") for number in range(MAX_TRIES)]
    assert reason(token(kid=None), Keys.of({"keys": [*others[1:], jwk("p256")]})) is None
    assert reason(token(kid=None), Keys.of({"keys": [*others, jwk("p256")]})) is Reason.BAD_SIGNATURE


def test_a_key_that_the_token_brings_along_is_not_used() -> None:
    for header in ({"kid": None}, {"kid": "p256"}):
        forged = token(signer="p256-evil", jwk=jwk("p256-evil"), jku="https://evil.example/jwks.json", **header)
        assert reason(forged, KNOWN) is Reason.BAD_SIGNATURE
    assert reason(token(signer="p256-evil", jwk=jwk("p256-evil")), KNOWN) is Reason.UNKNOWN_KEY


def tampered(part: int, change: Callable[[str], str]) -> str:
    parts = token().split(".")
    parts[part] = change(parts[part])
    return ".".join(parts)


UNSUPPORTED = {
    "an extension it insists on": token(crit=["exp"], exp=NOW),
    "an extension without a value": token(crit=["made-up"]),
    "no extension to insist on": token(crit=[]),
    "something other than a list to insist on": token(crit="none"),
    "an unencoded payload": token(b64=False),
    "an unencoded payload that it insists on": token(b64=False, crit=["b64"]),
    "encryption": token(enc="A256GCM"),
    "five parts": "e30.e30.e30.e30.e30",
    "a nested token": sealed({"alg": "ES256", "cty": "JWT"}, token().encode(), "p256", "ES256"),
    "a nested token by its media type": token(cty="application/jwt"),
    "a detached payload": tampered(1, lambda _: ""),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_other_kinds_of_tokens_are_not_read(name: str) -> None:
    assert reason(UNSUPPORTED[name], KNOWN) is Reason.UNSUPPORTED


def raised_last_bit(part: str) -> str:
    """Return the same bytes in a spelling with a spare bit set, for parts whose length leaves spare bits."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    assert len(part) % 4
    return part[:-1] + letters[letters.index(part[-1]) + 1]


MALFORMED = {
    "nothing": "",
    "dots": "..",
    "one part": "e30",
    "two parts": "e30.e30",
    "four parts": token() + ".",
    "a bearer prefix": "Bearer " + token(),
    "a newline at the end": token() + "\n",
    "a space in front": " " + token(),
    "padding": tampered(2, lambda part: part + "=="),
    "the other base64 alphabet": tampered(2, lambda _: "+/" * 43),
    "a spare bit": tampered(2, raised_last_bit),
    "a length that no bytes have": tampered(2, lambda part: part + "AAA"),
    "a character that decoders skip": tampered(1, lambda part: part[:8] + "~" + part[8:]),
    "a line break that decoders skip": tampered(1, lambda part: part[:8] + "\n" + part[8:]),
    "the JSON serialization": json.dumps(
        {"protected": text({"alg": "ES256"}), "payload": text(CLAIMS), "signature": "AA"}
    ),
    "letters that are not ASCII": token()[:-2] + "ÁÁ",
    "half a surrogate pair": "\ud800.e30.e30",
    "full-width dots": token().replace(".", "．"),
    "a header that is a list": tampered(0, lambda _: text(["alg"])),
    "a header that is not JSON": tampered(0, lambda _: text(b"{alg:ES256}")),
    "a header without alg": tampered(0, lambda _: text({"typ": "JWT"})),
    "an alg that is a list": tampered(0, lambda _: text({"alg": ["ES256"]})),
    "an alg that is null": tampered(0, lambda _: text({"alg": None})),
    "two algs": sealed(b'{"alg":"none","alg":"ES256"}', CLAIMS, "p256", "ES256"),
    "two algs, one escaped": sealed(b'{"alg":"none","\\u0061lg":"ES256"}', CLAIMS, "p256", "ES256"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_text_that_is_not_a_token_is_malformed(name: str) -> None:
    assert reason(MALFORMED[name], KNOWN) is Reason.MALFORMED


GOOD = json.dumps(CLAIMS)
PAYLOADS: dict[str, bytes] = {
    "a string": b'"alice"',
    "a list": b"[]",
    "null": b"null",
    "nothing but a space": b" ",
    "half of it": GOOD[:-1].encode(),
    "more after it": f"{GOOD}{GOOD}".encode(),
    "a claim twice": GOOD.replace("}", ', "sub": "root"}').encode(),
    "a claim twice, one escaped": GOOD.replace("}", ', "s\\u0075b": "root"}').encode(),
    "a claim twice, further in": GOOD.replace("}", ', "realm": {"roles": [], "roles": ["admin"]}}').encode(),
    "NaN": GOOD.replace(f"{NOW + 60}", "NaN").encode(),
    "Infinity": GOOD.replace(f"{NOW + 60}", "Infinity").encode(),
    "-Infinity": GOOD.replace(f"{NOW - 60}", "-Infinity").encode(),
    "a float that is infinite": GOOD.replace(f"{NOW + 60}", "1e999").encode(),
    "an integer of 65 bits": GOOD.replace(f"{NOW + 60}", str(2**64)).encode(),
    "an integer of 5000 digits": GOOD.replace(f"{NOW + 60}", "9" * 5000).encode(),
    "many lists inside each other": GOOD.replace("}", ', "x": ' + "[" * 5000 + "]" * 5000 + "}").encode(),
    "many objects inside each other": GOOD.replace("}", ', "x": ' + '{"a":' * 40 + "1" + "}" * 41).encode(),
    "an open bomb": b'{"x":' + b"[" * 10_000,
    "half a surrogate pair": GOOD.replace("alice", "\\ud800").encode(),
    "half a surrogate pair as a key": GOOD.replace("sub", "\\udc00").encode(),
    "bytes that are not UTF-8": GOOD.encode().replace(b"alice", b"\xff\xfe"),
    "an overlong encoding": GOOD.encode().replace(b"alice", b"\xc0\xaf"),
    "UTF-16": GOOD.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "a raw line break in a string": GOOD.replace("alice", "a\nb").encode(),
    "a comment": GOOD.replace("}", "/**/}").encode(),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_claims_that_could_be_read_in_two_ways_are_not_read(name: str) -> None:
    assert reason(sealed({"alg": "ES256", "kid": "p256"}, PAYLOADS[name], "p256", "ES256"), KNOWN) is Reason.MALFORMED


def test_brackets_in_strings_are_not_depth() -> None:
    assert reason(token({**CLAIMS, "art": '[{"' * 100, "\\": "\\" + "[" * 100}), KNOWN) is None


def test_the_largest_token_is_read_and_no_larger_one() -> None:
    signed = token()
    assert reason(signed, KNOWN, Expectations(ISSUER, max_bytes=len(signed))) is None
    assert reason(signed, KNOWN, Expectations(ISSUER, max_bytes=len(signed) - 1)) is Reason.TOO_LARGE
    assert reason("A" * 10_000_000, KNOWN) is Reason.TOO_LARGE
    assert reason(token({**CLAIMS, "padding": "x" * 16 * 1024}), KNOWN) is Reason.TOO_LARGE


def es256(r: int, s: int) -> str:
    return b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def numbers() -> tuple[str, int, int]:
    signed = token()
    head = signed.rpartition(".")[0]
    raw = ALGORITHMS["ES256"].sign(head.encode(), pair("p256"))
    return head, int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")


HEAD, R, S = numbers()
SIGNATURES = {
    "none at all": "",
    "r = s = 0": es256(0, 0),  # CVE-2022-21449
    "r = 0": es256(0, S),
    "s = 0": es256(R, 0),
    "r = s = the order of the curve": es256(P256_ORDER, P256_ORDER),
    "r = s = 1": es256(1, 1),
    "r and s exchanged": es256(S, R),
    "r of another signature": es256(R ^ 1, S),
    "all ones": es256(2**256 - 1, 2**256 - 1),
    "in DER": b64(encode_dss_signature(R, S)),
    "cut short": es256(R, S)[:-2] + "A",
    "half": b64(R.to_bytes(32, "big")),
    "longer": b64(R.to_bytes(32, "big") + S.to_bytes(32, "big") + b"\x00\x00\x00"),
    "padded numbers": b64(R.to_bytes(33, "big") + S.to_bytes(33, "big")),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_that_is_not_the_signature_is_bad(name: str) -> None:
    assert reason(f"{HEAD}.{SIGNATURES[name]}", KNOWN) in (Reason.BAD_SIGNATURE, Reason.MALFORMED)


def test_the_twin_of_an_ecdsa_signature_proves_the_same_claims() -> None:
    """The standard allows both forms, and issuers write either. So nothing may depend on the text of a token."""
    outcomes = [verify(f"{HEAD}.{es256(R, s)}", KNOWN, EXPECTED, NOW) for s in (S, P256_ORDER - S)]
    assert outcomes[0] == outcomes[1]
    assert isinstance(outcomes[0], VerifiedToken)


@pytest.mark.parametrize("algorithm", ASYMMETRIC)
@pytest.mark.parametrize("change", ["payload", "header", "signature", "truncated", "empty", "zeros", "of another key"])
def test_a_changed_token_is_not_believed(algorithm: str, change: str) -> None:
    signer = key_for(algorithm)
    header, payload, signature = token(signer=signer, algorithm=algorithm).split(".")
    match change:
        case "payload":
            payload = text({**CLAIMS, "sub": "root"})
        case "header":
            header = text({"alg": algorithm, "kid": signer})
        case "signature":
            signature = ("B" if signature[0] == "A" else "A") + signature[1:]
        case "truncated":
            signature = signature[: len(signature) // 8 * 4]
        case "empty":
            signature = ""
        case "zeros":
            signature = "A" * len(signature)
        case "of another key":
            signature = token(signer=f"{signer}-2", algorithm=algorithm, kid=signer).split(".")[2]
    assert reason(f"{header}.{payload}.{signature}", KNOWN) is Reason.BAD_SIGNATURE


def test_messages_repeat_nothing_that_a_stranger_wrote() -> None:
    marker = "STRANGER"
    strange = [
        token(kid=marker),
        token({**CLAIMS, "iss": marker}),
        token({**CLAIMS, "aud": marker}),
        token({**CLAIMS, "exp": marker}),
        f"{text({'alg': marker})}.e30.AAAA",
        marker,
    ]
    for one in strange:
        outcome = verify(one, KNOWN, EXPECTED, NOW)
        assert marker not in repr(outcome)


def test_a_secret_is_not_shown() -> None:
    key = OctKey.generate_key(512)
    assert str(key["k"]) not in repr(Keys.of({"keys": [key.as_dict()]}, symmetric=True))
