"""The certificates of listeners: Secrets that they name, if they may, and if there is something in them."""

from __future__ import annotations

import enum

from eastgate.cluster import GATEWAY_GROUP, Gateway, Listener, Secret, TlsReference, World
from eastgate.records import dataclass

__all__ = ["CertificateProblem", "ListenerCertificate", "listener_certificates"]

_TLS_TYPE = "kubernetes.io/tls"
_CERTIFICATE, _KEY = "tls.crt", "tls.key"


class CertificateProblem(enum.StrEnum):
    """Why a listener cannot use a certificate that it names."""

    OTHER_KIND = "not-a-secret"
    NOT_GRANTED = "reference-not-granted"
    NOT_DECLARED = "secret-not-declared"
    WRONG_TYPE = "wrong-type"
    NO_CERTIFICATE = "no-certificate"


@dataclass(frozen=True, slots=True)
class ListenerCertificate:
    """A certificate that a listener names: the Secret of it or, where there is a problem, none."""

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


def listener_certificates(world: World, gateway: Gateway, listener: Listener) -> tuple[ListenerCertificate, ...]:
    """Return the certificates that a listener names, in order. Whether they are any good, nobody has looked."""
    references = listener.tls.certificates if listener.tls is not None else ()
    return tuple(_resolve(world, gateway, reference) for reference in references)


def _resolve(world: World, gateway: Gateway, reference: TlsReference) -> ListenerCertificate:
    secret = world.secrets.get(f"{reference.namespace}/{reference.name}")
    problem = _problem(world, gateway, reference, secret)
    return ListenerCertificate(reference, secret if problem is None else None, problem)


def _problem(
    world: World, gateway: Gateway, reference: TlsReference, secret: Secret | None
) -> CertificateProblem | None:
    if (reference.group, reference.kind) != ("", "Secret"):
        return CertificateProblem.OTHER_KIND
    origin = GATEWAY_GROUP, "Gateway", gateway.namespace
    if not world.granted(*origin, reference.group, reference.kind, reference.namespace, reference.name):
        return CertificateProblem.NOT_GRANTED
    if secret is None:
        return CertificateProblem.NOT_DECLARED
    if secret.type != _TLS_TYPE:
        return CertificateProblem.WRONG_TYPE
    if not secret.data.get(_CERTIFICATE) or not secret.data.get(_KEY):
        return CertificateProblem.NO_CERTIFICATE
    return None
