"""Callers with a client certificate (RFC 5280), signed by an authority that a Secret holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from eastgate.cluster import Secret
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.facts import Unavailable
from eastgate.dialects.kuadrant.authorino.findings import Broken, Finding, Found, Refused
from eastgate.dialects.kuadrant.authorino.identity.presented_certificates import presented_certificate
from eastgate.dialects.kuadrant.authorino.model import X509

if TYPE_CHECKING:
    from cryptography.x509 import BasicConstraints, Certificate, ExtendedKeyUsage, KeyUsage, Name
    from cryptography.x509.verification import ClientVerifier, Policy

MAX_CHAIN = 8
_PEM_BEGIN, _PEM_END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def by_certificate(authorities: X509, evaluation: Evaluation) -> Finding:
    """Return the subject of the certificate, if one of the authorities vouches for it now, for a client."""
    pem = presented_certificate(authorities.source, evaluation)
    if not isinstance(pem, str):
        return pem
    namespace = None if authorities.all_namespaces else evaluation.scheme.namespace
    try:
        secrets = list(evaluation.services.secrets(namespace, authorities.secrets))
    except Unavailable as problem:
        return Broken(f"The Secrets with the authorities cannot be read: {problem}.")
    client = _certificate(pem)
    if client is None:
        return Refused("The client certificate cannot be read.")
    trusted = [authority for authority in map(_authority, secrets) if authority is not None]
    if not trusted:
        return Refused("There is no authority that could have signed the client certificate.")
    from cryptography.x509.verification import VerificationError

    try:
        _verifier(trusted, evaluation.request.time).verify(client, [])
    except VerificationError as problem:
        return Refused(f"The client certificate is not good: {_describe(problem)}.")
    except Exception:  # whatever the library stumbles over in it, it is not a good certificate
        return Refused("The client certificate is not good.")
    subject = _subject(client.subject)
    return Found(subject, subject, "The client certificate is good.")


def _certificate(pem: str) -> Certificate | None:
    """Return the last certificate of a PEM text: the one that Authorino takes."""
    from cryptography.x509 import load_pem_x509_certificate

    if len(pem) > 1 << 17 or pem.count(_PEM_END) > MAX_CHAIN:
        return None
    try:
        return load_pem_x509_certificate(pem[pem.rfind(_PEM_BEGIN) :].encode())
    except Exception:  # of many kinds, for bytes that are no certificate
        return None


def _authority(secret: Secret) -> Certificate | None:
    """Return the certificate of `tls.crt`, else of `ca.crt`."""
    held = secret.data.get("tls.crt", secret.data.get("ca.crt"))
    return _certificate(held.decode("utf-8", "replace")) if held else None


def _verifier(trusted: Iterable[Certificate], now: float) -> ClientVerifier:
    """Build a verifier of client certificates that asks for no names: the identity of the client is its subject."""
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
    """Return the library's message, without the certificate that it repeats."""
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
