"""Issues tokens about a caller ("festival wristbands"), signed with a key that a Secret holds under `key.pem`."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.model import Jwt, SigningKey, Wristband
from eastgate.dialects.kuadrant.authorino.values import properties, stringified

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_CURVE_BITS: Final = {"ES256": 256, "ES384": 384, "ES512": 521}


def issue_wristband(wristband: Wristband, evaluation: Evaluation) -> Finding:
    """Return a token, or nothing for a caller whose own token is of the same issuer."""
    recognized = evaluation.recognized.identity
    if recognized is not None and isinstance(recognized.method, Jwt) and recognized.method.issuer == wristband.issuer:
        return Found(None, None, "The caller has a token of this issuer already.")
    if unknown := evaluation.document.unknown_to((("auth", "identity"),)):
        return NotKnown(unknown)
    claims = properties(wristband.claims, evaluation.document)
    if not isinstance(claims, Found):
        return claims
    key = wristband.keys[0]
    private = _private_key(key, evaluation)
    if isinstance(private, Broken):
        return private
    issued = int(evaluation.request.time)
    custom = evaluation.secrets.mask_answer(claims.masked)
    token = _signed(
        {
            "iss": wristband.issuer,
            "iat": issued,
            "exp": issued + wristband.seconds,
            "sub": _subject(evaluation),
            **(custom if isinstance(custom, Mapping) else {}),
        },
        key,
        private,
    )
    return Found(token, token, "A token is issued.")


def _subject(evaluation: Evaluation) -> str:
    """Return the hash of the identity, which says nothing about it and stays the same."""
    auth = evaluation.document.plain_for((("auth", "identity"),)).get("auth")
    identity = auth.get("identity") if isinstance(auth, Mapping) else None
    text = stringified(identity) if isinstance(identity, Mapping | list) else json.dumps(identity, ensure_ascii=False)
    escaped = "".join(f"\\u{ord(each):04x}" if each in "<>&\u2028\u2029" else each for each in text)
    return hashlib.sha256(escaped.encode("utf-8", "surrogatepass")).hexdigest()


def _private_key(key: SigningKey, evaluation: Evaluation) -> RSAPrivateKey | EllipticCurvePrivateKey | Broken:
    """Return the key of a Secret, if it is one for the algorithm."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    secret = evaluation.services.secret(evaluation.scheme.namespace, key.name)
    pem = secret.data.get("key.pem") if secret is not None else None
    if not pem:
        return Broken(f"There is no key.pem in a Secret {key.name} to sign with.")
    evaluation.secrets.add_proven(pem.decode("utf-8", "replace"))
    try:
        private = load_pem_private_key(pem, None)
    except Exception:  # of many kinds, for bytes that are no key
        return Broken(f"The key.pem of the Secret {key.name} cannot be read.")
    if isinstance(private, RSAPrivateKey) and key.algorithm.startswith("RS"):
        return private
    if isinstance(private, EllipticCurvePrivateKey) and private.key_size == _CURVE_BITS.get(key.algorithm):
        return private
    return Broken(f"The key.pem of the Secret {key.name} is not a key for {key.algorithm}.")


def _signed(claims: Mapping[str, object], key: SigningKey, private: RSAPrivateKey | EllipticCurvePrivateKey) -> str:
    """Return a JSON Web Token in its compact form."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    header = {"alg": key.algorithm, "kid": key.name, "typ": "JWT"}
    signed = ".".join(_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    algorithms = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
    algorithm = algorithms[key.algorithm[2:]]
    if isinstance(private, RSAPrivateKey):
        signature = private.sign(signed.encode(), PKCS1v15(), algorithm)
    else:
        size = (private.key_size + 7) // 8
        pair = decode_dss_signature(private.sign(signed.encode(), ECDSA(algorithm)))
        signature = b"".join(number.to_bytes(size, "big") for number in pair)
    return f"{signed}.{_encoded(signature)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
