"""Builds the secrets of a proxy: its SVID, and the trust bundles.

Each trust domain has its own roots, and Envoy's SPIFFE validator holds them apart: the CA of one domain cannot vouch
for another.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from envoy.extensions.transport_sockets.tls.v3 import secret_pb2

from eastgate.envoy.config.packing import serialize
from eastgate.envoy.config.typed import filter_, message, typed
from eastgate.envoy.server.resources import SECRET, XdsResource

OPTIONAL_TRUST = "optional-trust"


def svid_secret(chain: bytes, key: bytes) -> XdsResource:
    """Build the secret with the SVID of a workload, and its key."""
    return certificate_secret("svid", chain, key)


def certificate_secret(name: str, chain: bytes, key: bytes) -> XdsResource:
    """Build a secret with a certificate, and its key."""
    plain = {"name": name, "tls_certificate": {"certificate_chain": _inline(chain), "private_key": _inline(key)}}
    return XdsResource(SECRET, name, serialize(message(secret_pb2.Secret, plain)))


def client_ca_secret(name: str, roots: bytes) -> XdsResource:
    """Build a secret with the CAs that certificates of clients must come from."""
    plain = {"name": name, "validation_context": {"trusted_ca": _inline(roots)}}
    return XdsResource(SECRET, name, serialize(message(secret_pb2.Secret, plain)))


def optional_trust_secret(roots: bytes) -> XdsResource:
    """Build the secret for clients that need not show a certificate: if they do, one of these roots has signed it.

    Envoy's SPIFFE validator would require one, and so would a test of names. So the roots are of one trust domain only.
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
