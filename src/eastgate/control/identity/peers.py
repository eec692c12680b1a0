"""Verifies the peer of a connection by the certificates that it sent.

Each trust domain is verified against its own roots only. A TLS library that trusts several trust domains accepts a
chain to any of them for any name. Without this check, the CA of one domain could sign identities of another.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Sequence
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from eastgate.control.identity.certificates import NoMemoryFileError, PeerError, SvidExpiredError
from eastgate.control.identity.svid import Svid, TrustBundles, utc_now
from eastgate.ir.spiffe import spiffe_problem, trust_domain_of

# Creates TLS contexts of Python's `ssl` for an SVID, whose key never touches a disk.
#
# Every connection has a full handshake: TLS 1.3 without tickets, since a resumed session would outlive its SVID. A
# context with several trust domains cannot check to which of them a chain belongs, so call `verify_connection` after
# each handshake.


def client_context(svid: Svid, bundles: TrustBundles, trust_domain: str | None = None) -> ssl.SSLContext:
    """Return a context for connections to a server of one trust domain; the default is the own one."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, svid)
    context.load_verify_locations(cadata=bundles.pem(trust_domain or bundles.own))
    return context


def server_context(svid: Svid, bundles: TrustBundles, trust_domains: Iterable[str] | None = None) -> ssl.SSLContext:
    """Return a context for clients with a certificate of any of these trust domains; the default is all."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, svid)
    context.num_tickets = 0
    for trust_domain in bundles.trust_domains if trust_domains is None else trust_domains:
        context.load_verify_locations(cadata=bundles.pem(trust_domain))
    return context


def _context(protocol: ssl._SSLMethod, svid: Svid) -> ssl.SSLContext:
    if svid.expired(utc_now()):
        raise SvidExpiredError(f"the certificate of {svid.identity!r} expired at {svid.not_after:%H:%M:%S} UTC")
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a SPIFFE ID is not a host name; see `verify_connection`
    context.verify_mode = ssl.CERT_REQUIRED
    # Every certificate of a SPIFFE bundle is a trust anchor, even if another CA signed it.
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    load_svid(context, svid)
    return context


def load_svid(context: ssl.SSLContext, svid: Svid) -> None:
    """Use an SVID in connections that begin from now on.

    It is loaded from a file in memory, since Python loads certificates only from a path.
    """
    if not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd"):
        raise NoMemoryFileError(
            "this system has no files in memory (memfd and /proc), which keep keys off the disk; run this on Linux"
        )
    with os.fdopen(os.memfd_create("svid", os.MFD_CLOEXEC), "wb") as file:
        file.write((svid.chain + svid.private_key).encode())
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")


def verify_connection(
    connection: ssl.SSLSocket | ssl.SSLObject, bundles: TrustBundles, expected: str | None = None
) -> str:
    """Return the identity of the peer of a connection whose handshake is done. Raises PeerError."""
    chain = peer_chain(connection)
    if not chain:
        raise PeerError("the peer sent no certificate")
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

    The certificate must have exactly one URI, a SPIFFE ID, and chain to a root of the trust domain of THAT ID. The
    identity must be `expected`, if that is given.
    """
    try:
        leaf = x509.load_der_x509_certificate(der)
        between = [x509.load_der_x509_certificate(certificate) for certificate in intermediates]
    except ValueError:
        raise PeerError("the peer sent something that is not a certificate") from None
    identity = identity_of(leaf)
    trust_domain = trust_domain_of(identity)
    roots = bundles.roots.get(trust_domain)
    if not roots:
        raise PeerError(f"the peer claims to be {identity!r}, but its trust domain is not trusted here")
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
    """Return the SPIFFE ID in a certificate, unverified. Raises PeerError if it is not an X.509-SVID."""
    try:
        extensions = leaf.extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        raise PeerError(
            "the certificate of the peer is not a SPIFFE certificate: it lacks names or a key usage"
        ) from None
    except (ValueError, x509.DuplicateExtension):
        raise PeerError("the certificate of the peer has extensions that cannot be read") from None
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if len(uris) != 1:
        raise PeerError(f"the certificate of the peer has {len(uris)} URIs; a SPIFFE certificate has exactly one")
    problem = spiffe_problem(uris[0])
    if problem:
        raise PeerError(f"the certificate of the peer has a URI that is not a SPIFFE ID: {problem}")
    if usage.key_cert_sign or usage.crl_sign or not usage.digital_signature:
        raise PeerError(f"the certificate of {uris[0]!r} is not for a workload: it may sign certificates, or nothing")
    return uris[0]


def peer_chain(connection: ssl.SSLSocket | ssl.SSLObject) -> list[bytes]:
    """Return the certificates that the peer sent, the leaf first, unverified."""
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
