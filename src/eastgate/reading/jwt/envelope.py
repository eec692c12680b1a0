"""Parses a token: three parts, a known kind of header, and base64url in its only valid spelling."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache

from eastgate.basics.records import dataclass
from eastgate.reading.jwt.outcome import Reason, TokenRefused
from eastgate.reading.strict_json import Json, JsonProblem, read_object

# Decodes the only valid spelling of bytes in tokens and keys (RFC 7515, section 2): base64url, no padding or spare
# bits.


def decoded(text: str) -> bytes | None:
    """Return the bytes, or None if the text is not their only valid spelling."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    # Python skips unknown characters and ignores spare bits. Only the canonical text comes back unchanged.
    return data if urlsafe_b64encode(data).rstrip(b"=") == text.encode("ascii") else None


# The signature algorithms of each kind of key. A key is never used with another algorithm.


_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

_BY_CURVE = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    # RFC 9864 gives each curve of EdDSA a name of its own; both names are in use.
    ("OKP", "Ed25519"): ("EdDSA", "Ed25519"),
    ("OKP", "Ed448"): ("EdDSA", "Ed448"),
}

ASYMMETRIC = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA")
"""The default algorithms of a policy. A verifier of these signatures cannot forge them."""

SYMMETRIC = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The shared-secret algorithms, and the least bytes of a secret for each (RFC 7518, section 3.2)."""

KNOWN = frozenset((*ASYMMETRIC, "Ed25519", "Ed448", *SYMMETRIC))
"""Every algorithm that a policy may allow. `none` is not an algorithm."""


def fitting(kty: str, crv: str | None) -> frozenset[str]:
    """Return the algorithms that a public key of this type and curve can verify; none for an unsupported kind."""
    if kty == "RSA":
        return frozenset(_RSA)
    return frozenset(_BY_CURVE.get((kty, crv or ""), ()))


@dataclass(frozen=True, slots=True)
class Envelope:
    """The unverified header of a token, and the bytes for its verification."""

    header: dict[str, Json]
    algorithm: str
    kid: str | None
    payload: bytes
    signed: bytes
    signature: bytes


def open_token(token: str, max_bytes: int) -> Envelope:
    """Parse a token in compact serialization. Raises `TokenRefused`.

    Headers with a key or the address of a key (`jwk`, `jku`, `x5c`, `x5u`) are ignored. A key that comes with the token
    proves only that its author has a key.
    """
    if len(token) > max_bytes:
        raise TokenRefused(Reason.TOO_LARGE, f"The token is longer than {max_bytes} bytes.")
    if not token.isascii():
        raise _malformed("The token has characters that are not ASCII.")
    parts = token.split(".")
    if len(parts) == 5:
        raise TokenRefused(Reason.UNSUPPORTED, "The token is encrypted (JWE); only signed tokens are accepted.")
    if len(parts) != 3:
        raise _malformed("The token is not three parts with dots between them.")
    header_bytes, payload, signature = (_part(name, text) for name, text in zip(_PARTS, parts, strict=True))
    try:
        header = (
            _read_header(header_bytes) if len(header_bytes) <= _MAX_CACHED_HEADER_BYTES else read_object(header_bytes)
        )
    except JsonProblem as problem:
        raise _malformed(f"The header of the token {problem}.") from None
    _check_kind(header)
    if not parts[1]:
        raise TokenRefused(Reason.UNSUPPORTED, "The token has no payload; detached payloads are not accepted.")
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str):
        raise _malformed("The header of the token does not name its algorithm.")
    if "kid" in header and not isinstance(kid, str):
        raise _malformed("The header of the token names its key by something that is not a string.")
    signed = token.rpartition(".")[0].encode("ascii")
    return Envelope(header, algorithm, kid if isinstance(kid, str) else None, payload, signed, signature)


_PARTS = ("header", "payload", "signature")
_MAX_CACHED_HEADERS, _MAX_CACHED_HEADER_BYTES = 256, 512


@lru_cache(_MAX_CACHED_HEADERS)
def _read_header(header: bytes) -> dict[str, Json]:
    """Read a header. The result is cached, because most tokens of one key have the same header."""
    return read_object(header)


def _part(name: str, text: str) -> bytes:
    data = decoded(text)
    if data is None:
        raise _malformed(f"The {name} of the token is not base64url as RFC 7515 writes it.")
    return data


def _check_kind(header: dict[str, Json]) -> None:
    """Refuse headers that change the meaning of the other parts.

    Other unknown headers are ignored, as RFC 7515 requires.
    """
    content = header.get("cty")
    if "crit" in header:
        raise TokenRefused(Reason.UNSUPPORTED, "The token requires extensions (crit), and none is supported.")
    if "b64" in header:
        raise TokenRefused(Reason.UNSUPPORTED, "The token has an unencoded payload (b64), which is not accepted.")
    if "enc" in header:
        raise TokenRefused(Reason.UNSUPPORTED, "The token is encrypted (enc); only signed tokens are accepted.")
    if isinstance(content, str) and content.lower().removeprefix("application/") == "jwt":
        raise TokenRefused(Reason.UNSUPPORTED, "The token has another token inside, which is not accepted.")


def _malformed(message: str) -> TokenRefused:
    return TokenRefused(Reason.MALFORMED, message)
