"""The certificates of listeners: Secrets that they name, if the reference is allowed and the Secret is usable.

Beside its own certificates, a listener has those of the CAs that sign the certificates of clients.
"""

from __future__ import annotations

import enum

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from eastgate.basics.records import dataclass
from eastgate.cluster import GATEWAY_GROUP, Gateway, Listener, Secret, TlsReference, World

_TLS_TYPE = "kubernetes.io/tls"
_CERTIFICATE, _KEY, _CA = "tls.crt", "tls.key", "ca.crt"


class CertificateProblem(enum.StrEnum):
    """The reason why a listener cannot use a certificate that it names."""

    OTHER_KIND = "not-a-secret"
    NOT_GRANTED = "reference-not-granted"
    NOT_DECLARED = "secret-not-declared"
    WRONG_TYPE = "wrong-type"
    NO_CERTIFICATE = "no-certificate"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class ListenerCertificate:
    """A certificate that a listener names: its Secret, or none if there is a problem."""

    reference: TlsReference
    secret: Secret | None
    problem: CertificateProblem | None = None

    @property
    def chain(self) -> bytes:
        """Return the certificates, in PEM."""
        return self.secret.data[_CERTIFICATE] if self.secret is not None else b""

    @property
    def key(self) -> bytes:
        """Return the private key, in PEM."""
        return self.secret.data[_KEY] if self.secret is not None else b""


@dataclass(frozen=True, slots=True)
class ClientAuthority:
    """The CAs that a listener demands for the certificates of clients, in PEM; empty if there is a problem."""

    reference: TlsReference
    roots: bytes
    problem: CertificateProblem | None = None


def listener_certificates(world: World, gateway: Gateway, listener: Listener) -> tuple[ListenerCertificate, ...]:
    """Return the certificates that a listener names, in order. Neither their issuers nor their dates are checked."""
    references = listener.tls.certificates if listener.tls is not None else ()
    return tuple(_resolve(world, gateway, reference) for reference in references)


def _resolve(world: World, gateway: Gateway, reference: TlsReference) -> ListenerCertificate:
    secret = world.secrets.get(_key(reference))
    problem = _problem(world, gateway, reference, secret)
    return ListenerCertificate(reference, secret if problem is None else None, problem)


def client_authorities(world: World, gateway: Gateway, listener: Listener) -> tuple[ClientAuthority, ...]:
    """Return the CAs that a listener demands for the certificates of clients, in order."""
    validation = listener.tls.client_validation if listener.tls is not None else None
    references = validation.ca_certificates if validation is not None else ()
    return tuple(_resolve_authority(world, gateway, reference) for reference in references)


def _resolve_authority(world: World, gateway: Gateway, reference: TlsReference) -> ClientAuthority:
    problem, secret = _reference_problem(world, gateway, reference), world.secrets.get(_key(reference))
    if problem is None and (secret is None or not secret.data.get(_CA)):
        problem = CertificateProblem.NOT_DECLARED if secret is None else CertificateProblem.NO_CERTIFICATE
    return ClientAuthority(reference, secret.data[_CA] if secret is not None and problem is None else b"", problem)


def _key(reference: TlsReference) -> str:
    return f"{reference.namespace}/{reference.name}"


def _problem(
    world: World, gateway: Gateway, reference: TlsReference, secret: Secret | None
) -> CertificateProblem | None:
    problem = _reference_problem(world, gateway, reference)
    if problem is not None:
        return problem
    if secret is None:
        return CertificateProblem.NOT_DECLARED
    if secret.type != _TLS_TYPE:
        return CertificateProblem.WRONG_TYPE
    if not secret.data.get(_CERTIFICATE) or not secret.data.get(_KEY):
        return CertificateProblem.NO_CERTIFICATE
    return None if _is_pair(secret.data[_CERTIFICATE], secret.data[_KEY]) else CertificateProblem.MALFORMED


def _is_pair(chain: bytes, key: bytes) -> bool:
    """Return whether these are certificates and the key of the first: Envoy refuses all others."""
    try:
        (certificate, *_), private = x509.load_pem_x509_certificates(chain), load_pem_private_key(key, None)
        return certificate.public_key() == private.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return False


def _reference_problem(world: World, gateway: Gateway, reference: TlsReference) -> CertificateProblem | None:
    if (reference.group, reference.kind) != ("", "Secret"):
        return CertificateProblem.OTHER_KIND
    origin = GATEWAY_GROUP, "Gateway", gateway.namespace
    if not world.granted(*origin, reference.group, reference.kind, reference.namespace, reference.name):
        return CertificateProblem.NOT_GRANTED
    return None
