"""A CA for a run: the certificate of every proxy, and one for each caller's identity."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_ISSUER = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "istio tests")])


class TestCa:
    """Issues SVIDs of any identity in any trust domain."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[tuple[str | None, tuple[str, ...]], ssl.SSLContext] = {}
        self._pairs: dict[str, Path] = {}
        self.root = self._sign(_ISSUER, self._key, None)
        self.server = self._issue("spiffe://cluster.local/ns/default/sa/server")

    def client_context(self, identity: str | None, protocols: Sequence[str]) -> ssl.SSLContext:
        """Return the TLS of a client that offers some protocols. It has a certificate if it has an identity."""
        key = (identity, tuple(protocols))
        if key not in self._contexts:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE  # the test is only about the server's check of the client
            context.set_alpn_protocols(list(protocols))
            if identity is not None:
                context.load_cert_chain(self._pair(identity))
            self._contexts[key] = context
        return self._contexts[key]

    def _pair(self, identity: str) -> Path:
        """Return a file with certificate and key."""
        if identity not in self._pairs:
            file = self._pairs[identity] = self._folder / f"client-{len(self._pairs)}.pem"
            file.write_text("".join(self._issue(identity)), encoding="utf-8")
        return self._pairs[identity]

    def _issue(self, identity: str) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        return self._sign(x509.Name([]), key, identity), pem

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, identity: str | None) -> str:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(_ISSUER)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=identity is None, path_length=None), critical=True)
        )
        if identity is not None:
            name = x509.UniformResourceIdentifier(identity)
            builder = builder.add_extension(x509.SubjectAlternativeName([name]), critical=True)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
