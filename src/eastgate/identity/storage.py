"""An authority that survives a restart: its state in one private file, which is replaced as a whole.

One file, since a root without its key, or an intermediate of another root, would be worse than none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from eastgate.identity.authority import AuthorityState, EmbeddedAuthority, Lifetimes, Retired
from eastgate.identity.certificates import Signer, key_pem
from eastgate.identity.files import read_private, write_private
from eastgate.identity.problems import StoredAuthorityError
from eastgate.identity.svid import utc_now

__all__ = ["load_state", "save_state", "stored_authority"]

STATE_FILE = "authority.json"


class _Signer(msgspec.Struct, forbid_unknown_fields=True):
    certificate: str
    key: str


class _Retired(msgspec.Struct, forbid_unknown_fields=True):
    certificate: str
    until: datetime


class _State(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    trust_domain: str
    root: _Signer
    intermediate: _Signer
    prepared: _Signer | None = None
    retired: tuple[_Retired, ...] = ()
    version: int = 1


def stored_authority(
    directory: Path,
    trust_domain: str,
    *,
    lifetimes: Lifetimes | None = None,
    clock: Callable[[], datetime] = utc_now,
) -> EmbeddedAuthority:
    """The authority that is kept in this folder, or a new one that will be."""
    return EmbeddedAuthority(
        trust_domain,
        state=load_state(directory),
        lifetimes=lifetimes,
        clock=clock,
        saved=partial(save_state, directory),
    )


def save_state(directory: Path, state: AuthorityState) -> None:
    """Write the state, keys included, where nobody else can read it."""
    written = _State(
        trust_domain=state.trust_domain,
        root=_written(state.root),
        intermediate=_written(state.intermediate),
        prepared=None if state.prepared is None else _written(state.prepared),
        retired=tuple(_Retired(_pem(old.certificate), old.until) for old in state.retired),
    )
    write_private(directory, STATE_FILE, msgspec.json.format(msgspec.json.encode(written)))


def load_state(directory: Path) -> AuthorityState | None:
    """The state in this folder; None where there is none yet."""
    content = read_private(directory, STATE_FILE)
    if content is None:
        return None
    path = directory / STATE_FILE
    try:
        return _state(msgspec.json.decode(content, type=_State))
    except (ValueError, TypeError):  # never with their text: it may quote what it could not read
        raise StoredAuthorityError(
            f"the stored authority {str(path)!r} is damaged; restore it from a backup, or move it away to start with "
            f"a new root, which every peer must then be told of"
        ) from None


def _state(written: _State) -> AuthorityState:
    if written.version != 1:
        raise ValueError("unknown version")
    state = AuthorityState(
        written.trust_domain,
        _signer(written.root),
        _signer(written.intermediate),
        None if written.prepared is None else _signer(written.prepared),
        tuple(Retired(_certificate(old.certificate), _aware(old.until)) for old in written.retired),
    )
    try:
        state.intermediate.certificate.verify_directly_issued_by(state.root.certificate)
    except Exception as error:  # InvalidSignature is not a ValueError
        raise ValueError("the intermediate is of another root") from error
    return state


def _written(signer: Signer) -> _Signer:
    return _Signer(signer.pem, key_pem(signer.key))


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def _signer(written: _Signer) -> Signer:
    certificate, key = _certificate(written.certificate), load_pem_private_key(written.key.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ValueError("the key is not that of the certificate")
    return Signer(certificate, key)


def _aware(until: datetime) -> datetime:
    if until.tzinfo is None:
        raise ValueError("a time without a zone")
    return until
