"""The Secret with the CA: what is in it, and what it becomes next. Pure: Secrets in, Secrets out.

The Secret of an embedded CA has the root and its key (`tls.crt`, `tls.key`), all roots to trust (`ca.crt`), and beside
these `state.json`, which holds a root to come and those that are no longer signed with. Each replica signs with an
intermediate of its own making, which no Secret needs to hold. A Secret without `state.json` is somebody else's, such as
cert-manager's, and never written.
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
    """When a root is replaced: a new one is prepared so long `before_end` of the old, and signs after `spread`.

    Within `spread` the new root must have reached every proxy and every replica, and a replica that hears of the change
    late signs with the old one; so the old is trusted for `spread` longer than the last SVID that it vouches for.
    """

    before_end: timedelta = timedelta(days=365)
    spread: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class StoredCa:
    """The content of a Secret: the state of an embedded CA, or that of somebody else's."""

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
    """Read the CA in a Secret. Raises StoredCaError; no message has anything of a key."""
    chain, key, roots, state = (_data(secret, name) for name in (_CERTIFICATE, _KEY, _ROOTS, _STATE))
    own_key = session_key(key)
    if not state:
        return StoredCa(read_issuer(chain, key, roots), own_key)
    try:
        restored = decode_state(state)
    except (ValueError, TypeError):
        raise StoredCaError("the state in the CA's Secret is damaged") from None
    if key_pem(restored.root.key).encode() != key:
        raise StoredCaError("the key and the state in the CA's Secret are of two CAs")
    return StoredCa(restored, own_key)


def session_key(key: bytes) -> str:
    """Return the secret that all replicas of a control plane share beside the CA's key, by which nobody learns that."""
    return hmac.new(sha256(key).digest(), b"eastgate sessions", sha256).hexdigest()


def next_secret(
    secret: Mapping[str, Any], lifetimes: Lifetimes, rollover: Rollover, now: datetime
) -> JsonObject | None:
    """Return what the Secret of an embedded CA should become now; None where it is as it should be.

    Its resourceVersion is kept, so that of two writers one fails.
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
    """Return when a root was prepared; where that was lost, when it became valid."""
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


# The certificate that the control plane serves with: renewed while connections stay.
#
# Every new connection gets the newest certificate and is verified with the newest trust bundle; those that are open
# are not touched.


CONTROL_PLANE: Final = "eastgate"  # the Service, and the account


def control_plane_identity(trust_domain: str, namespace: str = SYSTEM_NAMESPACE) -> str:
    """Return the SPIFFE ID of the control plane."""
    return service_account_id(trust_domain, namespace, CONTROL_PLANE)


def control_plane_names(cluster_domain: str, namespace: str = SYSTEM_NAMESPACE) -> tuple[str, ...]:
    """Return the host names by which proxies reach the control plane."""
    name = f"{CONTROL_PLANE}.{namespace}"
    return f"{name}.svc", f"{name}.svc.{cluster_domain}", name


class ServerTls:
    """The server's own SVID and the bundle to verify clients with. Use it with `async with`."""

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
        """Return the bundles to verify clients with."""
        return self._source.bundles

    @property
    def end(self) -> datetime:
        """Return when the server's certificate expires. Raises IdentityError."""
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
        """Return credentials for a gRPC server: clients need a certificate of the own trust domain, or none counts."""
        last = self._snapshot()

        def fetch() -> grpc.ServerCertificateConfiguration | None:
            """Return what has changed. gRPC calls this for each handshake, on threads of its own."""
            nonlocal last
            current = self._snapshot()
            if current == last:
                return None
            last = current
            return _configuration(*current, verify_clients=verify_clients)

        initial = _configuration(*last, verify_clients=verify_clients)
        # It may return None, whatever the types say: nothing has changed.
        return grpc.dynamic_ssl_server_credentials(initial, fetch, verify_clients)  # type: ignore[arg-type]

    def _snapshot(self) -> tuple[Svid, str]:
        bundles = self.bundles
        return self._rotation.current(self._identity), bundles.pem(bundles.own)


def _configuration(svid: Svid, roots: str, *, verify_clients: bool) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(svid.private_key.encode(), svid.chain.encode())],
        root_certificates=roots.encode() if verify_clients else None,
    )
