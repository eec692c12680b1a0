"""Verifies the peer of a connection by the certificates that it showed.

Each trust domain is checked against its own roots and no others. A TLS library that trusts several trust domains
accepts a chain to any of them for any name; without this check, the CA of one domain could vouch for another.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from eastgate.control.identity.bundles import TrustBundles
from eastgate.control.identity.problems import PeerError
from eastgate.control.identity.svid import utc_now
from eastgate.ir.spiffe import spiffe_problem, trust_domain_of


def verify_connection(
    connection: ssl.SSLSocket | ssl.SSLObject, bundles: TrustBundles, expected: str | None = None
) -> str:
    """Return the identity of the peer of a connection whose handshake is done. Raises PeerError."""
    chain = peer_chain(connection)
    if not chain:
        raise PeerError("the peer showed no certificate")
    return verify_peer(chain[0], bundles, expected, intermediates=chain[1:])


def verify_peer(
    der: bytes,
    bundles: TrustBundles,
    expected: str | None = None,
    *,
    intermediates: Sequence[bytes] = (),
    at: datetime | None = None,
) -> str:
    """Return the identity that a certificate proves. Raises PeerError.

    It has exactly one URI, which is a SPIFFE ID, and it chains to a root of the trust domain of THAT id. Where an
    identity is expected it must be that one.
    """
    try:
        leaf = x509.load_der_x509_certificate(der)
        between = [x509.load_der_x509_certificate(certificate) for certificate in intermediates]
    except ValueError:
        raise PeerError("the peer showed something that is not a certificate") from None
    identity = identity_of(leaf)
    trust_domain = trust_domain_of(identity)
    roots = bundles.roots.get(trust_domain)
    if not roots:
        raise PeerError(f"the peer says to be {identity!r}, and its trust domain is not one that is trusted here")
    policy = PolicyBuilder().store(Store(list(roots))).time(at or utc_now())
    try:
        policy.build_client_verifier().verify(leaf, between)
    except VerificationError as error:
        raise PeerError(
            f"the certificate of {identity!r} is not proven by the roots of {trust_domain!r}: {error}"
        ) from None
    if expected is not None and identity != expected:
        raise PeerError(f"the peer is {identity!r}, and not {expected!r}")
    return identity


def identity_of(leaf: x509.Certificate) -> str:
    """Return the SPIFFE ID that a certificate claims, unverified. Raises PeerError where it is no X.509-SVID."""
    try:
        extensions = leaf.extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        raise PeerError("the certificate of the peer is no SPIFFE certificate: it lacks names or a key usage") from None
    except (ValueError, x509.DuplicateExtension):
        raise PeerError("the certificate of the peer has extensions that cannot be read") from None
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1:
        raise PeerError(f"the certificate of the peer has {len(uris)} URIs; a SPIFFE certificate has exactly one")
    problem = spiffe_problem(uris[0])
    if problem:
        raise PeerError(f"the certificate of the peer has a URI that is not a SPIFFE ID: {problem}")
    if usage.key_cert_sign or usage.crl_sign or not usage.digital_signature:
        raise PeerError(f"the certificate of {uris[0]!r} may sign certificates, or nothing: it is not for a workload")
    return uris[0]


def peer_chain(connection: ssl.SSLSocket | ssl.SSLObject) -> list[bytes]:
    """Return the certificates that the peer showed, the leaf first, unverified."""
    public = getattr(connection, "get_unverified_chain", None)
    if public is not None:  # from Python 3.13 on
        return list(public() or ())
    inner = getattr(connection, "_sslobj", None)
    if inner is None:
        return []
    listed = inner.get_unverified_chain() or ()
    return [
        x509.load_pem_x509_certificate(certificate.public_bytes().encode()).public_bytes(Encoding.DER)
        for certificate in listed
    ]
