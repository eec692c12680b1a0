"""The keys that an issuer publishes (a JWKS, RFC 7517), limited to those that can verify signatures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from eastgate.basics.records import dataclass
from eastgate.reading.jwt.envelope import SYMMETRIC, decoded, fitting
from eastgate.reading.strict_json import JsonProblem, read_object

if TYPE_CHECKING:
    from joserfc.jwa import JWSAlgModel
    from joserfc.jwk import Key as Material

MAX_TRIES = 16
"""The most keys that one token is tried with. Each costs a signature check, and any client may send a token."""

RSA_BITS = range(2048, 8192 + 1)
"""Shorter keys can be broken (NIST SP 800-131A), longer keys make each check slow."""

_PUBLIC = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x"), "oct": ("k",)}
_PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth")


class NoKeysError(ValueError):
    """Error: a key set has no key that verifies signatures."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key, with the algorithms for its type and curve, limited by its own `alg`."""

    kid: str | None
    algorithms: frozenset[str]
    material: Material = field(repr=False)

    def signed(self, algorithm: str, message: bytes, signature: bytes) -> bool:
        """Return whether this key signed these bytes."""
        implementation = _implementations()[algorithm]
        try:
            implementation.check_key(self.material)
            return implementation.verify(message, signature, self.material)
        except Exception:  # any error of the libraries means that the signature is not valid
            return False


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one issuer that verify signatures. Make it with `Keys.of`."""

    all: tuple[Key, ...]

    @classmethod
    def of(cls, jwks: Mapping[str, object] | bytes, *, symmetric: bool = False) -> Keys:
        """Read the keys in a JWKS. Raises ValueError with the problem.

        Keys for encryption and keys of unknown kinds are left out, as RFC 7517 requires. Shared secrets (`oct`) are
        left out unless `symmetric` is set: if a published key were used as a secret, everyone would know the secret.
        """
        if isinstance(jwks, bytes):
            try:
                jwks = read_object(jwks)
            except JsonProblem as problem:
                raise ValueError(f"the key set {problem}") from None
        listed = jwks.get("keys")
        if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
            raise ValueError("the key set has no list of keys under 'keys'")
        read = (_key(f"keys[{index}]", jwk, symmetric) for index, jwk in enumerate(listed))
        keys = tuple(key for key in read if key is not None)
        if not keys:
            raise NoKeysError("the key set has no key that verifies signatures" + _secrets_only(listed))
        return cls(keys)

    def candidates(self, algorithm: str, kid: str | None) -> tuple[Key, ...]:
        """Return the keys to try for a token: those that it names, or all if it names none, up to a limit."""
        keys = self.all if kid is None else self.with_id(kid)
        return tuple(islice((key for key in keys if algorithm in key.algorithms), MAX_TRIES))

    def with_id(self, kid: str) -> tuple[Key, ...]:
        """Return the keys of this id; RFC 7517 lets keys of different types share one."""
        return tuple(key for key in self.all if key.kid == kid)


def _key(location: str, jwk: object, symmetric: bool) -> Key | None:
    """Read a key; None if it cannot verify signatures. Raises ValueError for an invalid key."""
    if not isinstance(jwk, Mapping):
        raise ValueError(f"{location} is not an object")
    kty, kid, alg = (_text(location, jwk, name) for name in ("kty", "kid", "alg"))
    if kty is None:
        raise ValueError(f"{location} has no 'kty'")
    if not _for_signatures(location, jwk) or kty not in _PUBLIC or (kty == "oct" and not symmetric):
        return None
    members = {name: _member(location, jwk, name) for name in _PUBLIC[kty]}
    if kty == "oct":
        algorithms = _fitting_secret(location, members["k"])
    else:
        algorithms = fitting(kty, members.get("crv"))
        _check_public(location, jwk)
    if alg is not None:
        algorithms &= {alg}
    if not algorithms:
        return None
    if kty == "RSA":
        _check_size(location, members["n"])
    return Key(kid, algorithms, _imported(location, kty, members))


def _for_signatures(location: str, jwk: Mapping[str, object]) -> bool:
    operations = jwk.get("key_ops", ["verify"])
    if not isinstance(operations, Sequence) or isinstance(operations, str | bytes):
        raise ValueError(f"{location}.key_ops is not a list")
    return _text(location, jwk, "use") in (None, "sig") and "verify" in operations


def _check_public(location: str, jwk: Mapping[str, object]) -> None:
    """Refuse a key with its private part. Every reader of the key set could sign as the issuer."""
    if any(name in jwk for name in _PRIVATE):
        raise ValueError(f"{location} contains its private part; publish the public part of a new key instead")


def _check_size(location: str, modulus: str) -> None:
    bits = int.from_bytes(decoded(modulus) or b"", "big").bit_length()
    if bits not in RSA_BITS:
        raise ValueError(f"{location} has {bits} bits; RSA keys must have {RSA_BITS[0]} to {RSA_BITS[-1]}")


def _fitting_secret(location: str, secret: str) -> frozenset[str]:
    length = len(decoded(secret) or b"")
    fits = frozenset(name for name, least in SYMMETRIC.items() if length >= least)
    if not fits:
        raise ValueError(f"{location} has a secret of {length} bytes; {min(SYMMETRIC.values())} is the least")
    return fits


def _text(location: str, jwk: Mapping[str, object], name: str) -> str | None:
    value = jwk.get(name)
    if name in jwk and not isinstance(value, str):
        raise ValueError(f"{location}.{name} is not a string")
    return value if isinstance(value, str) else None


def _member(location: str, jwk: Mapping[str, object], name: str) -> str:
    value = _text(location, jwk, name)
    if value is None:
        raise ValueError(f"{location} has no {name!r}")
    if name != "crv" and (not value.isascii() or not decoded(value)):
        raise ValueError(f"{location}.{name} is not base64url")
    return value


def _imported(location: str, kty: str, members: Mapping[str, str]) -> Material:
    from joserfc.jwk import JWKRegistry

    try:
        # Import only the members of the key. joserfc would read URLs and certificates from the others.
        return JWKRegistry.import_key({"kty": kty, **members})
    except Exception as error:  # the libraries raise many kinds of errors for invalid numbers
        raise ValueError(f"{location} is not a valid {kty} key") from error


def _secrets_only(listed: Iterable[object]) -> str:
    secrets = any(isinstance(jwk, Mapping) and jwk.get("kty") == "oct" for jwk in listed)
    return "; shared secrets (oct) are not accepted" if secrets else ""


@cache
def _implementations() -> Mapping[str, JWSAlgModel]:
    """Return the algorithms from joserfc's classes.

    Its registry warns about EdDSA by name, and allows only its defaults.
    """
    from joserfc.jwa import JWS_ALGORITHMS

    return {algorithm.name: algorithm for algorithm in JWS_ALGORITHMS}
