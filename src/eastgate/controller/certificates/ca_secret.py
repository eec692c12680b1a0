"""The Secret of the CA: its content, and the next step of a root rotation. Pure functions from Secrets to Secrets.

The Secret of an embedded CA has the root and its key (`tls.crt`, `tls.key`) and all trusted roots (`ca.crt`).
`state.json` also holds a prepared root and the retired roots. Each replica signs with its own intermediate, which no
Secret holds. A Secret without `state.json` belongs to another program, such as cert-manager, and is never written.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from hashlib import sha256
from types import TracebackType
from typing import Any, Final

import grpc
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.basics.records import dataclass
from eastgate.control.identity import Rotation, Svid, SvidSource, TrustBundles, client_context, server_context
from eastgate.control.identity.ca import CaState, Lifetimes, activate_root, create_state, drop_retired, prepare_root
from eastgate.control.identity.certificates import StoredCaError, key_pem
from eastgate.control.identity.issuer import IssuerFiles, read_issuer
from eastgate.control.identity.storage import decode_state, encode_state
from eastgate.ir.spiffe import service_account_id
from eastgate.reading.kubernetes import JsonObject, Resource

SYSTEM_NAMESPACE: Final = "eastgate-system"
CA_NAME: Final = "eastgate-ca"
SECRET_RESOURCE: Final = Resource("", "v1", "secrets", "Secret")
_CERTIFICATE, _KEY, _ROOTS, _STATE = "tls.crt", "tls.key", "ca.crt", "state.json"
_PREPARED_AT: Final = "eastgate.dev/prepared-at"
_MANAGED: Final = {"app.kubernetes.io/managed-by": "eastgate"}


@dataclass(frozen=True, slots=True)
class Rollover:
    """The times of a root rotation: a new root is prepared `before_end` of the old one, and signs after `spread`.

    Within `spread`, the new root must reach every proxy and every replica. A replica that learns of the change late
    still signs with the old root. So the old root is trusted for `spread` after the expiry of the last SVID that it
    signed.
    """

    before_end: timedelta = timedelta(days=365)
    spread: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class StoredCa:
    """The content of a Secret: the state of an embedded CA, or the files of another issuer."""

    content: CaState | IssuerFiles
    session_key: str = field(repr=False)


def new_secret(trust_domain: str, namespace: str, name: str, lifetimes: Lifetimes, now: datetime) -> JsonObject:
    """Create a CA, and return its Secret."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(_MANAGED)},
    }
    return _with_state(secret, create_state(trust_domain, lifetimes, now))


def read_secret(secret: Mapping[str, Any]) -> StoredCa:
    """Read the CA in a Secret. Raises StoredCaError, whose message never contains key material."""
    chain, key, roots, state = (_data(secret, name) for name in (_CERTIFICATE, _KEY, _ROOTS, _STATE))
    own_key = session_key(key)
    if not state:
        return StoredCa(read_issuer(chain, key, roots), own_key)
    try:
        restored = decode_state(state)
    except (ValueError, TypeError):
        raise StoredCaError("the state in the CA's Secret is damaged") from None
    if key_pem(restored.root.key).encode() != key:
        raise StoredCaError("the key and the state in the CA's Secret belong to different CAs")
    return StoredCa(restored, own_key)


def session_key(key: bytes) -> str:
    """Return a secret that all replicas derive from the CA's key, and that does not reveal the key."""
    return hmac.new(sha256(key).digest(), b"eastgate sessions", sha256).hexdigest()


def next_secret(
    secret: Mapping[str, Any], lifetimes: Lifetimes, rollover: Rollover, now: datetime
) -> JsonObject | None:
    """Return the Secret of an embedded CA after its next step, or None if no step is due.

    The resourceVersion is kept, so that one of two concurrent writers fails.
    """
    stored = read_secret(secret).content
    if not isinstance(stored, CaState):
        return None
    annotations = secret["metadata"].get("annotations") or {}
    state = drop_retired(stored, now)
    if state.prepared is None and state.root.end - now <= rollover.before_end:
        prepared = _with_state(secret, prepare_root(state, lifetimes, now))
        prepared["metadata"]["annotations"] = {**annotations, _PREPARED_AT: now.isoformat()}
        return prepared
    if state.prepared is not None and now >= _prepared_at(annotations, state) + rollover.spread:
        overlap = rollover.spread + lifetimes.svid + lifetimes.backdate
        activated = _with_state(secret, activate_root(state, lifetimes, now, overlap))
        activated["metadata"]["annotations"] = {
            name: value for name, value in annotations.items() if name != _PREPARED_AT
        }
        return activated
    return _with_state(secret, state) if state != stored else None


def _prepared_at(annotations: Mapping[str, str], state: CaState) -> datetime:
    """Return the time at which a root was prepared; if that is lost, the start of its validity."""
    try:
        at = datetime.fromisoformat(annotations.get(_PREPARED_AT, ""))
    except ValueError:
        at = None
    if at is not None and at.tzinfo is not None:
        return at
    if state.prepared is None:
        raise ValueError("no root was prepared")
    return state.prepared.certificate.not_valid_before_utc


def _with_state(secret: Mapping[str, Any], state: CaState) -> JsonObject:
    roots = b"".join(root.public_bytes(Encoding.PEM) for root in state.roots)
    data = {
        _CERTIFICATE: state.root.pem.encode(),
        _KEY: key_pem(state.root.key).encode(),
        _ROOTS: roots,
        _STATE: encode_state(state),
    }
    encoded = {name: base64.b64encode(content).decode() for name, content in data.items()}
    return {**secret, "metadata": dict(secret["metadata"]), "data": encoded}


def _data(secret: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode((secret.get("data") or {}).get(name) or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise StoredCaError(f"{name} of the CA's Secret is not in base64") from None


# The server certificate of the control plane, which is renewed while connections stay open.
#
# Every new connection gets the newest certificate and is verified with the newest trust bundle. Open connections are
# not touched.


CONTROL_PLANE: Final = "eastgate"  # the name of the Service and of the account


def control_plane_identity(trust_domain: str, namespace: str = SYSTEM_NAMESPACE) -> str:
    """Return the SPIFFE ID of the control plane."""
    return service_account_id(trust_domain, namespace, CONTROL_PLANE)


def control_plane_names(cluster_domain: str, namespace: str = SYSTEM_NAMESPACE) -> tuple[str, ...]:
    """Return the host names at which proxies reach the control plane."""
    name = f"{CONTROL_PLANE}.{namespace}"
    return f"{name}.svc", f"{name}.svc.{cluster_domain}", name


class ServerTls:
    """The SVID of the server, and the trust bundle for its clients. Use it with `async with`."""

    def __init__(self, source: SvidSource, identity: str, dns_names: Sequence[str] = ()) -> None:
        self._source = source
        self._identity = identity
        self._dns_names = tuple(dns_names)
        self._rotation = Rotation(source)
        self._context: tuple[Svid, TrustBundles, ssl.SSLContext] | None = None

    async def __aenter__(self) -> ServerTls:
        await self._rotation.hold(self._identity, self._dns_names)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._rotation.close()

    @property
    def bundles(self) -> TrustBundles:
        """Return the trust bundles for clients."""
        return self._source.bundles

    @property
    def end(self) -> datetime:
        """Return the expiry of the server certificate. Raises IdentityError."""
        return self._rotation.current(self._identity).not_after

    def context(self) -> ssl.SSLContext:
        """Return a context for a new connection of a client with an SVID. Raises IdentityError."""
        svid, bundles = self._rotation.current(self._identity), self.bundles
        if self._context is None or self._context[:2] != (svid, bundles):
            self._context = svid, bundles, server_context(svid, bundles, [bundles.own])
        return self._context[2]

    def client_context(self) -> ssl.SSLContext:
        """Return a context for a connection to another server of the own trust domain. Raises IdentityError."""
        return client_context(self._rotation.current(self._identity), self.bundles)

    def grpc_credentials(self, *, verify_clients: bool) -> grpc.ServerCredentials:
        """Return credentials for a gRPC server. `verify_clients`: clients need a certificate of its trust domain."""
        last = self._snapshot()

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            """Return the new configuration, or None. gRPC calls this for each handshake, in its own threads."""
            nonlocal last
            current = self._snapshot()
            if current == last:
                return None
            last = current
            return _configuration(*current, verify_clients=verify_clients)

        initial = _configuration(*last, verify_clients=verify_clients)
        # In spite of the types, it may return None: nothing has changed.
        return grpc.dynamic_ssl_server_credentials(initial, fetch, verify_clients)  # type: ignore[arg-type]

    def _snapshot(self) -> tuple[Svid, str]:
        bundles = self.bundles
        return self._rotation.current(self._identity), bundles.pem(bundles.own)


def _configuration(svid: Svid, roots: str, *, verify_clients: bool) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(svid.private_key.encode(), svid.chain.encode())],
        root_certificates=roots.encode() if verify_clients else None,
    )
