"""Creates TLS contexts of Python's `ssl` for an SVID, whose key never touches a disk.

Every connection proves its identity anew: TLS 1.3 without tickets, since a resumed session would outlive the SVID that
began it. A context that trusts several trust domains cannot check to which of them a chain belongs, so call
`verify_connection` after each handshake.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable

from eastgate.control.identity.bundles import TrustBundles
from eastgate.control.identity.problems import NoMemoryFileError, SvidExpiredError
from eastgate.control.identity.svid import Svid, utc_now


def client_context(svid: Svid, bundles: TrustBundles, trust_domain: str | None = None) -> ssl.SSLContext:
    """Return a context for connections to a server of one trust domain, by default the own one."""
    context = _context(ssl.PROTOCOL_TLS_CLIENT, svid)
    context.load_verify_locations(cadata=bundles.pem(trust_domain or bundles.own))
    return context


def server_context(svid: Svid, bundles: TrustBundles, trust_domains: Iterable[str] | None = None) -> ssl.SSLContext:
    """Return a context for clients with a certificate of any of these trust domains, by default all."""
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
    context.check_hostname = False  # a SPIFFE ID is no host name; see `verify_connection`
    context.verify_mode = ssl.CERT_REQUIRED
    # Every certificate of a SPIFFE bundle is an anchor, also one that another authority signed.
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    load_svid(context, svid)
    return context


def load_svid(context: ssl.SSLContext, svid: Svid) -> None:
    """Prove an SVID in connections that begin from now on.

    It is loaded through a file in memory: Python takes certificates only from a path.
    """
    if not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd"):
        raise NoMemoryFileError(
            "this system has no files in memory (memfd and /proc), which keep keys off the disk; run this on Linux"
        )
    with os.fdopen(os.memfd_create("svid", os.MFD_CLOEXEC), "wb") as file:
        file.write((svid.chain + svid.private_key).encode())
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
