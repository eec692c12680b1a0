"""Stores the embedded CA across restarts: its state is in one private file, which is replaced as a whole.

One file is safer than several: a root without its key, or an intermediate of another root, would be worse than none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from secrets import token_hex

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from eastgate.control.identity.ca import CaState, EmbeddedCa, Retired
from eastgate.control.identity.certificates import Signer, StoredCaError, UnsafeFileError, key_pem
from eastgate.control.identity.svid import utc_now

# Writes keys to disk, if requested, so that no other user can ever read them.
#
# A file gets its mode when it is created, under a new name, and then replaces the old one.


_OTHERS_MODE = 0o077


def write_private(directory: Path, name: str, content: bytes) -> Path:
    """Write a file that only its owner can read; create its folder if needed."""
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    temporary = f".{name}.{token_hex(8)}"
    with _folder(directory) as folder:
        try:
            _create(folder, temporary, content)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)
    return directory / name


def read_private(directory: Path, name: str) -> bytes | None:
    """Read a private file, or return None if it does not exist. Raises UnsafeFileError if other users can access it."""
    path = directory / name
    try:
        with _folder(directory) as folder:
            # Opening a FIFO would block until a writer opens it.
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeFileError(f"the key file {str(path)!r} cannot be opened: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeFileError(f"the key file {str(path)!r} is not a regular file")
        _check_private(path, status, "600")
        return file.read()


@contextmanager
def _folder(directory: Path) -> Iterator[int]:
    """Open a folder and yield its descriptor, so that the folder cannot be replaced during its use."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeFileError(f"the key folder {str(directory)!r} cannot be opened: {error.strerror}") from error
    try:
        _check_private(directory, os.fstat(descriptor), "700")
        yield descriptor
    finally:
        os.close(descriptor)


def _create(folder: int, name: str, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _check_private(path: Path, status: os.stat_result, wanted: str) -> None:
    if status.st_uid != os.geteuid():
        raise UnsafeFileError(f"{str(path)!r} belongs to another user; keys must be in files of the user who runs this")
    if status.st_mode & _OTHERS_MODE:
        raise UnsafeFileError(
            f"other users can access {str(path)!r} (mode {stat.S_IMODE(status.st_mode):o}): run `chmod {wanted} {path}`"
            f", and make new keys if another user may have read it"
        )


STATE_FILE = "authority.json"


class _StoredSigner(msgspec.Struct, forbid_unknown_fields=True):
    certificate: str
    key: str


class _StoredRetired(msgspec.Struct, forbid_unknown_fields=True):
    certificate: str
    until: datetime


class _StoredState(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    trust_domain: str
    root: _StoredSigner
    intermediate: _StoredSigner
    prepared: _StoredSigner | None = None
    retired: tuple[_StoredRetired, ...] = ()
    version: int = 1


def stored_ca(directory: Path, trust_domain: str, *, clock: Callable[[], datetime] = utc_now) -> EmbeddedCa:
    """Return the CA that is stored in this folder, or a new one that will be stored there."""
    return EmbeddedCa(
        trust_domain,
        state=load_state(directory),
        clock=clock,
        save=partial(save_state, directory),
    )


def save_state(directory: Path, state: CaState) -> None:
    """Write the state, including keys, to a file that no other user can read."""
    write_private(directory, STATE_FILE, encode_state(state))


def encode_state(state: CaState) -> bytes:
    """Return the state as JSON, including keys."""
    stored = _StoredState(
        trust_domain=state.trust_domain,
        root=_store_signer(state.root),
        intermediate=_store_signer(state.intermediate),
        prepared=None if state.prepared is None else _store_signer(state.prepared),
        retired=tuple(_StoredRetired(_pem(old.certificate), old.until) for old in state.retired),
    )
    return msgspec.json.format(msgspec.json.encode(stored))


def decode_state(content: bytes) -> CaState:
    """Read a state from JSON. Raises ValueError, with a text that may quote keys, and TypeError."""
    return _restore_state(msgspec.json.decode(content, type=_StoredState))


def load_state(directory: Path) -> CaState | None:
    """Read the state in this folder, or return None if there is none yet."""
    content = read_private(directory, STATE_FILE)
    if content is None:
        return None
    path = directory / STATE_FILE
    try:
        return decode_state(content)
    except (ValueError, TypeError):  # without the text of the error, which may quote the key
        raise StoredCaError(
            f"the stored CA {str(path)!r} is damaged; restore it from a backup, or move it away to start with "
            f"a new root, which every peer must then trust"
        ) from None


def _restore_state(stored: _StoredState) -> CaState:
    if stored.version != 1:
        raise ValueError("unknown version")
    state = CaState(
        stored.trust_domain,
        _restore_signer(stored.root),
        _restore_signer(stored.intermediate),
        None if stored.prepared is None else _restore_signer(stored.prepared),
        tuple(Retired(_certificate(old.certificate), _check_zone(old.until)) for old in stored.retired),
    )
    try:
        state.intermediate.certificate.verify_directly_issued_by(state.root.certificate)
    except Exception as error:  # InvalidSignature is not a ValueError
        raise ValueError("the intermediate belongs to another root") from error
    return state


def _store_signer(signer: Signer) -> _StoredSigner:
    return _StoredSigner(signer.pem, key_pem(signer.key))


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _certificate(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def _restore_signer(stored: _StoredSigner) -> Signer:
    certificate, key = _certificate(stored.certificate), load_pem_private_key(stored.key.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ValueError("the key is not that of the certificate")
    return Signer(certificate, key)


def _check_zone(until: datetime) -> datetime:
    if until.tzinfo is None:
        raise ValueError("a time without a zone")
    return until
