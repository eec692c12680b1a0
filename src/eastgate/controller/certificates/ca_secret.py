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
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.basics.records import dataclass
from eastgate.control.identity.ca import (
    CaState,
    Lifetimes,
    activate_root,
    create_state,
    drop_retired,
    prepare_root,
)
from eastgate.control.identity.certificates import key_pem
from eastgate.control.identity.issuer import IssuerFiles, read_issuer
from eastgate.control.identity.problems import StoredCaError
from eastgate.control.identity.storage import decode_state, encode_state
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

    @property
    def is_embedded(self) -> bool:
        """Return whether the CA is ours to replace."""
        return isinstance(self.content, CaState)


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
