"""Identities of workloads: X.509 certificates with a SPIFFE ID, and their verification.

- an `SvidSource` supplies `Svid`s and `TrustBundles`: `EmbeddedCa` makes them here (`stored_ca` keeps
  its root on disk), `WorkloadApi` gets them from a SPIRE agent;
- a `Rotation` keeps the SVIDs of some identities fresh;
- `client_context`, `server_context` and `verify_connection` use them with Python's `ssl`, without a key on disk.
"""

from eastgate.control.identity.ca import CaState, EmbeddedCa, Lifetimes
from eastgate.control.identity.certificates import (
    BadBundleError,
    BadIdentityError,
    IdentityError,
    IdentityNotGrantedError,
    MissingDnsNameError,
    NoMemoryFileError,
    NoWorkloadApiError,
    PeerError,
    StoredCaError,
    SvidExpiredError,
    UnknownTrustDomainError,
    UnsafeFileError,
)
from eastgate.control.identity.peers import client_context, load_svid, server_context, verify_connection, verify_peer
from eastgate.control.identity.rotation import Clock, Rotation
from eastgate.control.identity.storage import stored_ca
from eastgate.control.identity.svid import (
    BundlesChanged,
    IdentityChange,
    Svid,
    SvidSource,
    SvidsRenewed,
    TrustBundles,
    read_bundle,
    roots_of_jwks,
    roots_of_pem,
)
from eastgate.control.identity.workload_api import WorkloadApi

__all__ = [
    "BadBundleError",
    "BadIdentityError",
    "BundlesChanged",
    "CaState",
    "Clock",
    "EmbeddedCa",
    "IdentityChange",
    "IdentityError",
    "IdentityNotGrantedError",
    "Lifetimes",
    "MissingDnsNameError",
    "NoMemoryFileError",
    "NoWorkloadApiError",
    "PeerError",
    "Rotation",
    "StoredCaError",
    "Svid",
    "SvidExpiredError",
    "SvidSource",
    "SvidsRenewed",
    "TrustBundles",
    "UnknownTrustDomainError",
    "UnsafeFileError",
    "WorkloadApi",
    "client_context",
    "load_svid",
    "read_bundle",
    "roots_of_jwks",
    "roots_of_pem",
    "server_context",
    "stored_ca",
    "verify_connection",
    "verify_peer",
]
