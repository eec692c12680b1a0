"""Certificates and trust, as Envoy is given them.

Each trust domain has its own roots, and Envoy's SPIFFE validator holds them apart: who may vouch for one domain can say
nothing about another.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from envoy.extensions.transport_sockets.tls.v3 import secret_pb2

from eastgate.xds.packing import serialized
from eastgate.xds.server.resources import SECRET, Resource
from eastgate.xds.typed import filter_, message, typed

__all__ = ["svid_secret", "trust_secret"]


def svid_secret(chain: bytes, key: bytes) -> Resource:
    """The certificate by which a workload is known, and its key."""
    plain = {"name": "svid", "tls_certificate": {"certificate_chain": _inline(chain), "private_key": _inline(key)}}
    return Resource(SECRET, "svid", serialized(message(secret_pb2.Secret, plain)))


def trust_secret(bundles: Mapping[str, bytes]) -> Resource:
    """Whose certificates are believed, for each trust domain."""
    domains = [{"name": domain, "trust_bundle": _inline(roots)} for domain, roots in sorted(bundles.items())]
    kind = "envoy.extensions.transport_sockets.tls.v3.SPIFFECertValidatorConfig"
    validator = filter_("envoy.tls.cert_validator.spiffe", typed(kind, trust_domains=domains))
    plain = {"name": "trust", "validation_context": {"custom_validator_config": validator}}
    return Resource(SECRET, "trust", serialized(message(secret_pb2.Secret, plain)))


def _inline(content: bytes) -> dict[str, str]:
    return {"inline_bytes": base64.b64encode(content).decode()}
