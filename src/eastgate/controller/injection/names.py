"""The names, ports and paths of a sidecar in a pod."""

from __future__ import annotations

from typing import Final

from eastgate.cluster.pods import PROXY_CONTAINER
from eastgate.cluster.proxies import EXCLUDED_INBOUND_PORTS, SIDECAR
from eastgate.cluster.proxies import PROXY_LABEL as PROXY

__all__ = [
    "ADMIN_VOLUME",
    "AUDIENCE",
    "CAPTURED_INBOUND",
    "CAPTURED_OUTBOUND",
    "CA_VOLUME",
    "EXCLUDED_INBOUND_PORTS",
    "EXCLUDED_OUTBOUND_PORTS",
    "EXCLUDED_OUTBOUND_RANGES",
    "INJECT",
    "INJECTION",
    "ORIGINAL_PROBES",
    "OWN_PORTS",
    "PROXY",
    "PROXY_CONTAINER",
    "PROXY_UID",
    "REDIRECT_CONTAINER",
    "SCRATCH_VOLUME",
    "SIDECAR",
    "SOURCES_VOLUME",
    "SOURCE_ANNOTATIONS",
    "TOKEN_VOLUME",
    "VOLUMES",
]

INJECTION: Final = "eastgate.dev/injection"  # label of namespaces
INJECT: Final = "eastgate.dev/inject"  # label or annotation of pods
EXCLUDED_OUTBOUND_PORTS: Final = "eastgate.dev/exclude-outbound-ports"
EXCLUDED_OUTBOUND_RANGES: Final = "eastgate.dev/exclude-outbound-ranges"
ORIGINAL_PROBES: Final = "eastgate.dev/original-probes"
SOURCE_ANNOTATIONS: Final = {"token.json": "eastgate.dev/token-source", "trust.json": "eastgate.dev/trust-source"}

AUDIENCE: Final = "eastgate"  # of the tokens by which the control plane knows proxies
REDIRECT_CONTAINER: Final = "eastgate-redirect"
PROXY_UID: Final = 1337

CAPTURED_INBOUND: Final = 15006
CAPTURED_OUTBOUND: Final = 15001
OWN_PORTS: Final = frozenset({15000, CAPTURED_OUTBOUND, CAPTURED_INBOUND, 15021})

TOKEN_VOLUME: Final = "eastgate-token"  # noqa: S105 - a name
CA_VOLUME: Final = "eastgate-ca"
SOURCES_VOLUME: Final = "eastgate-sources"
ADMIN_VOLUME: Final = "eastgate-admin"
SCRATCH_VOLUME: Final = "eastgate-scratch"
VOLUMES: Final = frozenset({TOKEN_VOLUME, CA_VOLUME, SOURCES_VOLUME, ADMIN_VOLUME, SCRATCH_VOLUME})
