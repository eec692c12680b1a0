"""Expressions that find faults in a client's certificate that Envoy does not check itself.

Envoy's SPIFFE validator ignores the extended key usage: a certificate for servers alone would be accepted from a
client. It also accepts a signature with SHA-1 and a small RSA key. If client certificates are optional, it accepts the
certificate of a CA. Envoy has the certificate as PEM, and all these faults are visible in the encoded bytes.

A certificate may have no purpose, or the purpose "client", alone or with another usual purpose (RFC 5280, id-kp). Any
other list of purposes is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from functools import cache

from envoy.extensions.transport_sockets.tls.v3 import secret_pb2

from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.spelling import STANDARD, bits, encodings
from eastgate.envoy.config.typed import filter_, message, typed
from eastgate.envoy.server.resources import SECRET, XdsResource

# Builds the secrets of a proxy: its SVID, and the trust bundles. Each trust domain has its own roots, and Envoy's
# SPIFFE validator separates them: the CA of one domain cannot sign for another.


OPTIONAL_TRUST = "optional-trust"


def svid_secret(chain: bytes, key: bytes) -> XdsResource:
    """Build the secret with the SVID of a workload, and its key."""
    return certificate_secret("svid", chain, key)


def certificate_secret(name: str, chain: bytes, key: bytes) -> XdsResource:
    """Build a secret with a certificate, and its key."""
    plain = {"name": name, "tls_certificate": {"certificate_chain": _inline(chain), "private_key": _inline(key)}}
    return XdsResource(SECRET, name, serialize(message(secret_pb2.Secret, plain)))


def client_ca_secret(name: str, roots: bytes) -> XdsResource:
    """Build a secret with the CAs that sign the certificates of clients."""
    plain = {"name": name, "validation_context": {"trusted_ca": _inline(roots)}}
    return XdsResource(SECRET, name, serialize(message(secret_pb2.Secret, plain)))


def optional_trust_secret(roots: bytes) -> XdsResource:
    """Build the secret for optional client certificates: a certificate that a client shows is signed by one of these
    roots.

    Envoy's SPIFFE validator would require a certificate, and so would a test of names. So the roots are of one trust
    domain only.
    """
    return client_ca_secret(OPTIONAL_TRUST, roots)


def trust_secret(bundles: Mapping[str, bytes]) -> XdsResource:
    """Build the secret with the trust bundle of each trust domain."""
    domains = [{"name": domain, "trust_bundle": _inline(roots)} for domain, roots in sorted(bundles.items())]
    kind = "envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig"
    validator = filter_("envoy.tls.cert_validator.spiffe", typed(kind, trust_domains=domains))
    plain = {"name": "trust", "validation_context": {"custom_validator_config": validator}}
    return XdsResource(SECRET, "trust", serialize(message(secret_pb2.Secret, plain)))


def _inline(content: bytes) -> dict[str, str]:
    return {"inline_bytes": base64.b64encode(content).decode()}


CERTIFICATE = "%DOWNSTREAM_PEER_CERT%"  # as PEM, and that in URL encoding

_BEGIN, _BREAK = "-----BEGIN%20CERTIFICATE-----", "(?:%0A)?"  # lines break between groups of four characters
_ANY = "(?:[0-9A-Za-z]|%2[BF])"
_GROUP = f"{_ANY}{{4}}{_BREAK}"

# In DER
_PURPOSES = bytes.fromhex("0603551d25")  # id-ce-extKeyUsage
_CRITICAL = bytes.fromhex("0101ff")
_CONSTRAINTS = bytes.fromhex("0603551d13")  # id-ce-basicConstraints
_USAGE = bytes.fromhex("0603551d0f")  # id-ce-keyUsage
_USUAL_PURPOSE = bytes.fromhex("06082b060105050703")  # id-kp, without its last byte
_CLIENTS = b"\x02"
_MAX_PURPOSES = 2
_RSA = bytes.fromhex("06092a864886f70d010101050003")  # a key, without its length
_ANY_BYTE = "?" * 8
_LONG = bits(b"\x82") + 2 * _ANY_BYTE + bits(b"\x00\x30")  # 256 bytes or more; the modulus may have fewer
_SHORT = (
    "0???????",
    bits(b"\x81"),
    *(
        _LONG + sequence + bits(modulus)
        for sequence in (bits(b"\x81") + _ANY_BYTE, bits(b"\x82") + 2 * _ANY_BYTE)
        for modulus in (b"\x02\x81", b"\x02\x82\x01\x00")  # a 2,048-bit modulus has 257 bytes, since it is positive
    ),
)
_OLD_SIGNATURES = (
    bytes.fromhex("06072a8648ce3d0401"),  # ecdsa-with-SHA1
    *(bytes.fromhex(f"06092a864886f70d0101{number}") for number in ("02", "03", "04", "05")),  # RSA, MD2 to SHA-1
)


def _for_clients() -> Iterator[str]:
    """Yield the extension, with the client's purpose at any position of a list of purposes."""
    for critical in (b"", _CRITICAL):
        for length in range(1, _MAX_PURPOSES + 1):
            size = length * (len(_USUAL_PURPOSE) + len(_CLIENTS))
            head = bits(_PURPOSES + critical + bytes([0x04, size + 2, 0x30, size]))
            for position in range(length):
                ends = (bits(_CLIENTS) if index == position else "?" * 8 for index in range(length))
                yield head + "".join(bits(_USUAL_PURPOSE) + end for end in ends)


def _of_authorities() -> Iterator[str]:
    """Yield the encoded extensions of a certificate that may sign certificates or revocation lists."""
    for critical in (b"", _CRITICAL):
        constraints = bits(_CONSTRAINTS + critical + b"\x04") + _ANY_BYTE + bits(b"\x30") + _ANY_BYTE
        yield constraints + bits(bytes.fromhex("0101ff"))
        usage = bits(_USAGE + critical + b"\x04") + _ANY_BYTE + bits(b"\x03") + 2 * _ANY_BYTE
        yield from (usage + flag for flag in ("?????1??", "??????1?"))


def _encoded(*data: str) -> str:
    return "|".join(_characters(encoding) for bytes_as_bits in data for encoding in encodings(bytes_as_bits, STANDARD))


def _characters(encoding: list[str]) -> str:
    breaks = (_BREAK if number % 4 == 3 else "" for number in range(len(encoding)))
    return "".join(_one_of(characters) + end for characters, end in zip(encoding, breaks, strict=True))


@cache
def _one_of(characters: str) -> str:
    if characters == STANDARD:
        return _ANY
    plain = "".join(character for character in characters if character.isalnum())
    encoded = [f"%{ord(character):X}" for character in characters if not character.isalnum()]
    alternatives = ([plain if len(plain) == 1 else f"[{plain}]"] if plain else []) + encoded
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def _somewhere(*patterns: str) -> str:
    groups = f"(?:{_GROUP})*"
    return f"{_BEGIN}{_BREAK}" + "".join(f"{groups}(?:{pattern})" for pattern in patterns) + "(?s:.*)"


_NAMED = _encoded(bits(_PURPOSES))
WITH_PURPOSES = _somewhere(_NAMED)
NAMED_TWICE = _somewhere(f"(?:{_NAMED}){_ANY}{{0,3}}{_BREAK}", _NAMED)
FOR_CLIENTS = _somewhere(_encoded(*_for_clients()))
SHOWN = f"{_BEGIN}(?s:.*)"
WITH_USAGE = _somewhere(_encoded(bits(_USAGE)))
AUTHORITY = _somewhere(_encoded(*_of_authorities()))
WEAK = _somewhere(_encoded(*map(bits, _OLD_SIGNATURES), *(bits(_RSA) + length for length in _SHORT)))
