"""Callers with a client certificate (RFC 5280) that a CA in a Secret signed."""

from __future__ import annotations

import base64
import binascii
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from eastgate.basics.regexes import regex
from eastgate.cluster import Secret
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.model import X509, CelExpression, CertificateFormat, CertificateHeader
from eastgate.dialects.kuadrant.authorino.outcomes import Broken, Finding, Found, NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.values import resolve
from eastgate.ir.attributes import UNKNOWN

if TYPE_CHECKING:
    from cryptography.x509 import BasicConstraints, Certificate, ExtendedKeyUsage, KeyUsage, Name
    from cryptography.x509.verification import ClientVerifier, Policy


# Finds the client certificate of a request: of its connection, or in a header that a proxy in front wrote.


_MALFORMED = regex(r"%(?![0-9A-Fa-f]{2})")
_UNREADABLE = Refused("The client certificate cannot be read.")


def presented_certificate(
    source: CertificateHeader | CelExpression | None, evaluation: Evaluation
) -> str | Refused | NotKnown | Broken:
    """Return the certificate as PEM. A header is only as trustworthy as the proxy that wrote it."""
    match source:
        case None:
            return _of_connection(evaluation)
        case CertificateHeader(name, format_):
            headers = evaluation.request.headers
            if headers is UNKNOWN:
                return NotKnown("the headers")
            if name not in headers:
                return Refused(f"There is no client certificate in the header {name!r}.")
            pem = from_xfcc(headers[name]) if format_ is CertificateFormat.XFCC else from_client_cert(headers[name])
            return pem or _UNREADABLE
        case CelExpression():
            finding = resolve(source, evaluation.document)
            if not isinstance(finding, Found):
                return finding
            return (_decoded(finding.value) if isinstance(finding.value, str) else None) or _UNREADABLE


def _of_connection(evaluation: Evaluation) -> str | Refused | NotKnown:
    pem = evaluation.request.certificate
    if pem is UNKNOWN:
        return NotKnown("the client certificate")
    if not pem:
        return Refused("The client has no certificate.")
    return pem if "-----BEGIN CERTIFICATE" in pem else unquote(pem)


def from_xfcc(header: str) -> str | None:
    """Return the certificate of the first element of an X-Forwarded-Client-Cert header; without one, the chain."""
    first = next((element for element in _split(header, ",") if element), "")
    fields: dict[str, str] = {}
    for pair in _split(first.strip(), ";"):
        name, *value = _split(pair.strip(), "=", 1)
        if value:
            text = value[0].strip()
            quoted = len(text) >= 2 and text.startswith('"') and text.endswith('"')
            fields[name.strip().lower()] = text[1:-1] if quoted else text
    return _decoded(fields.get("cert") or fields.get("chain") or "")


def _split(text: str, separator: str, most: int = -1) -> Iterator[str]:
    """Yield the parts of a text between unquoted separators, at most `most` parts."""
    start, in_quotes = 0, False
    for at, character in enumerate(text):
        if character == '"':
            in_quotes = not in_quotes
        elif character == separator and not in_quotes and most:
            yield text[start:at]
            start, most = at + 1, most - 1
    yield text[start:]


def from_client_cert(header: str) -> str | None:
    """Return the certificate of a Client-Cert header (RFC 9440): DER in Base64, between colons."""
    text = header.strip()
    if len(text) < 2 or not text.startswith(":") or not text.endswith(":"):
        return None
    try:
        der = base64.b64decode(text[1:-1].strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64))
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" if der else None


def _decoded(text: str) -> str | None:
    """Decode a PEM text with the URL encoding of queries."""
    return None if not text or _MALFORMED.search(text) else unquote_plus(text)


MAX_CHAIN = 8
_PEM_BEGIN, _PEM_END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def by_certificate(authorities: X509, evaluation: Evaluation) -> Finding:
    """Return the subject of the certificate, if one of the CAs has signed it and it is valid now for a client."""
    pem = presented_certificate(authorities.source, evaluation)
    if not isinstance(pem, str):
        return pem
    namespace = None if authorities.all_namespaces else evaluation.scheme.namespace
    try:
        secrets = list(evaluation.services.secrets(namespace, authorities.secrets))
    except Unavailable as problem:
        return Broken(f"The Secrets with the CAs cannot be read: {problem}.")
    client = _certificate(pem)
    if client is None:
        return Refused("The client certificate cannot be read.")
    trusted = [authority for authority in map(_authority, secrets) if authority is not None]
    if not trusted:
        return Refused("There is no CA that could have signed the client certificate.")
    from cryptography.x509.verification import VerificationError

    try:
        _verifier(trusted, evaluation.request.time).verify(client, [])
    except VerificationError as problem:
        return Refused(f"The client certificate is not valid: {_describe(problem)}.")
    except Exception:  # any error of the library means that the certificate is not valid
        return Refused("The client certificate is not valid.")
    subject = _subject(client.subject)
    return Found(subject, subject, "The client certificate is valid.")


def _certificate(pem: str) -> Certificate | None:
    """Return the last certificate of a PEM text, as Authorino does."""
    from cryptography.x509 import load_pem_x509_certificate

    if len(pem) > 1 << 17 or pem.count(_PEM_END) > MAX_CHAIN:
        return None
    try:
        return load_pem_x509_certificate(pem[pem.rfind(_PEM_BEGIN) :].encode())
    except Exception:  # many kinds of errors, for bytes that are no certificate
        return None


def _authority(secret: Secret) -> Certificate | None:
    """Return the certificate of `tls.crt`, or else of `ca.crt`."""
    held = secret.data.get("tls.crt", secret.data.get("ca.crt"))
    return _certificate(held.decode("utf-8", "replace")) if held else None


def _verifier(trusted: Iterable[Certificate], now: float) -> ClientVerifier:
    """Build a verifier of client certificates. It checks no names: the identity of the client is the subject."""
    from cryptography import x509
    from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store

    any_ = Criticality.AGNOSTIC
    leaf = ExtensionPolicy.permit_all().may_be_present(x509.ExtendedKeyUsage, any_, _for_clients)
    authority = (
        ExtensionPolicy.permit_all()
        .require_present(x509.BasicConstraints, any_, _is_authority)
        .may_be_present(x509.KeyUsage, any_, _may_sign)
        .may_be_present(x509.ExtendedKeyUsage, any_, _for_clients)
    )
    return (
        PolicyBuilder()
        .store(Store(list(trusted)))
        .time(datetime.fromtimestamp(now, UTC))
        .max_chain_depth(MAX_CHAIN)
        .extension_policies(ca_policy=authority, ee_policy=leaf)
        .build_client_verifier()
    )


def _for_clients(_policy: Policy, _certificate: Certificate, usage: ExtendedKeyUsage | None) -> None:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    wanted = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
    if usage is not None and not any(each in usage for each in wanted):
        raise ValueError("not for clients")


def _is_authority(_policy: Policy, _certificate: Certificate, constraints: BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("not an authority")


def _may_sign(_policy: Policy, _certificate: Certificate, usage: KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("not allowed to sign certificates")


def _describe(problem: Exception) -> str:
    """Return the library's message without the certificate that it contains."""
    message = str(problem).partition(" (encountered")[0]
    return message.rpartition(": ")[2]


def _subject(name: Name) -> dict[str, object]:
    """Return the subject as Go's crypto/x509/pkix writes it."""
    from cryptography.x509.oid import NameOID

    def all_of(oid: object) -> list[str] | None:
        return [_text(each.value) for each in name if each.oid == oid] or None

    def last_of(oid: object) -> str:
        return next((_text(each.value) for each in reversed(list(name)) if each.oid == oid), "")

    return {
        "Country": all_of(NameOID.COUNTRY_NAME),
        "Organization": all_of(NameOID.ORGANIZATION_NAME),
        "OrganizationalUnit": all_of(NameOID.ORGANIZATIONAL_UNIT_NAME),
        "Locality": all_of(NameOID.LOCALITY_NAME),
        "Province": all_of(NameOID.STATE_OR_PROVINCE_NAME),
        "StreetAddress": all_of(NameOID.STREET_ADDRESS),
        "PostalCode": all_of(NameOID.POSTAL_CODE),
        "SerialNumber": last_of(NameOID.SERIAL_NUMBER),
        "CommonName": last_of(NameOID.COMMON_NAME),
        "Names": [
            {"Type": [int(part) for part in each.oid.dotted_string.split(".")], "Value": _text(each.value)}
            for each in name
        ],
        "ExtraNames": None,
    }


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.hex()
