"""The signature algorithms of each kind of key, so that a key is never used for what it was not made for."""

from __future__ import annotations

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
"""What a token may be signed with unless a policy says otherwise: who can check these cannot forge them."""

SYMMETRIC = {"HS256": 32, "HS384": 48, "HS512": 64}
"""The shared-secret algorithms, and how many bytes each asks of its secret (RFC 7518, section 3.2)."""

KNOWN = frozenset((*ASYMMETRIC, "Ed25519", "Ed448", *SYMMETRIC))
"""Every algorithm that may be asked for. `none` is not an algorithm."""


def fitting(kty: str, crv: str | None) -> frozenset[str]:
    """Return the algorithms that a public key of this type and curve can verify; none for a kind that we do not use."""
    if kty == "RSA":
        return frozenset(_RSA)
    return frozenset(_BY_CURVE.get((kty, crv or ""), ()))
