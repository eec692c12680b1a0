"""Builds headers and metadata for the application, and the response to a denied client, without secrets."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from eastgate.dialects.kuadrant.authorino.calls import ask_cached
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    Denial,
    Identity,
    Json,
    Jwt,
    Plain,
    PlainResponse,
    Response,
    SigningKey,
    Value,
    Wristband,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Finding, Found, NotKnown
from eastgate.dialects.kuadrant.authorino.values import properties, resolve, stringified
from eastgate.ir.attributes import steers_proxy

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


# Issues tokens about a caller ("festival wristbands"), signed with a key in a Secret under `key.pem`.


_CURVE_BITS: Final = {"ES256": 256, "ES384": 384, "ES512": 521}


def issue_wristband(wristband: Wristband, evaluation: Evaluation) -> Finding:
    """Return a token. A caller whose own token is of the same issuer gets none."""
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
    """Return the hash of the identity. It reveals nothing about the identity, and does not change."""
    auth = evaluation.document.plain_for((("auth", "identity"),)).get("auth")
    identity = auth.get("identity") if isinstance(auth, Mapping) else None
    text = stringified(identity) if isinstance(identity, Mapping | list) else json.dumps(identity, ensure_ascii=False)
    escaped = "".join(f"\\u{ord(each):04x}" if each in "<>&\u2028\u2029" else each for each in text)
    return hashlib.sha256(escaped.encode("utf-8", "surrogatepass")).hexdigest()


def _private_key(key: SigningKey, evaluation: Evaluation) -> RSAPrivateKey | EllipticCurvePrivateKey | Broken:
    """Return the key in a Secret, if it fits the algorithm."""
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
    except Exception:  # many kinds of errors, for bytes that are no key
        return Broken(f"The key.pem of the Secret {key.name} cannot be read.")
    if isinstance(private, RSAPrivateKey) and key.algorithm.startswith("RS"):
        return private
    if isinstance(private, EllipticCurvePrivateKey) and private.key_size == _CURVE_BITS.get(key.algorithm):
        return private
    return Broken(f"The key.pem of the Secret {key.name} is not a key for {key.algorithm}.")


def _signed(claims: Mapping[str, object], key: SigningKey, private: RSAPrivateKey | EllipticCurvePrivateKey) -> str:
    """Return a JSON Web Token in compact form."""
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


REASON_HEADER = "X-Ext-Auth-Reason"


def build_response(response: Response, evaluation: Evaluation) -> Finding:
    """Build a response. Skip a header with more than one line, and a header that controls the proxy."""
    if response.in_header and steers_proxy(response.key):
        return Broken("Its header controls the proxy, and a policy must not set it.")
    finding = ask_cached(
        evaluation.services.cache,
        response.cache,
        (evaluation.scheme, response),
        evaluation.document,
        lambda: _build_content(response, evaluation),
    )
    if isinstance(finding, Found) and isinstance(response.content, Wristband):
        evaluation.secrets.add_issued(stringified(finding.value))
    if isinstance(finding, Found) and response.in_header and not is_header_value(stringified(finding.masked)):
        return Broken("It has characters that a header cannot contain.")
    return finding


def _build_content(response: Response, evaluation: Evaluation) -> Finding:
    match response.content:
        case PlainResponse(value):
            finding = resolve(value, evaluation.document)
        case Json(listed):
            finding = properties(listed, evaluation.document)
        case Wristband() as wristband:
            return issue_wristband(wristband, evaluation)
    if isinstance(finding, Found):
        return Found(finding.value, evaluation.secrets.mask_answer(finding.masked))
    return finding


def is_header_value(text: str) -> bool:
    """Return whether a text can be the value of a header."""
    return all(character == "\t" or (" " <= character != "\x7f") for character in text)


def challenges(identities: Iterable[Identity]) -> list[tuple[str, str]]:
    """Return the challenges for an unrecognized client, one for each identity."""
    return [("WWW-Authenticate", f'{_scheme(each)} realm="{_quoted(each.name)}"') for each in identities]


def _scheme(identity: Identity) -> str:
    match identity.method:
        case X509():
            return "Certificate"  # as Authorino has it
        case Plain(selector, expression):
            return _one_line(expression or selector)
        case _:
            return identity.credentials.key


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def customize_denial(
    denial: Denial, status: int, message: str, headers: list[tuple[str, str]], evaluation: Evaluation
) -> tuple[int, str, tuple[tuple[str, str], ...], str]:
    """Return status, message, headers and body of the scheme's denial. Its headers replace the challenges."""
    message = evaluation.secrets.mask_text(message) if denial.message is None else _text(denial.message, evaluation)
    message = _one_line(message)
    body = "" if denial.body is None else _text(denial.body, evaluation)
    if denial.headers:
        headers = [(each.name, _one_line(_text(each.value, evaluation))) for each in denial.headers]
    return denial.code or status, message, (*headers, (REASON_HEADER, message)), body


def _text(value: Value, evaluation: Evaluation) -> str:
    """Return the value, or nothing if it cannot be resolved, because that must not change the denial."""
    finding = resolve(value, evaluation.document)
    return stringified(evaluation.secrets.mask_answer(finding.masked)) if isinstance(finding, Found) else ""


def _one_line(text: str) -> str:
    """Return the text in a form for headers: ASCII, on one line."""
    if text.isascii() and text.isprintable():
        return text
    return json.dumps(text)[1:-1].replace('\\"', '"')
