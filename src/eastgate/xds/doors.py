"""Where a port of a workload is to be reached."""

from __future__ import annotations

from dataclasses import dataclass

from eastgate.xds.tokens import TokenIdentity

__all__ = ["DETECTION", "HTTP", "NETWORK", "Door"]

DETECTION = (
    "1s"  # how long a silent client is waited for, before it is taken to speak something else than is looked for
)
NETWORK = "envoy.extensions.filters.network"
HTTP = "envoy.extensions.filters.http"


@dataclass(frozen=True, slots=True)
class Door:
    """Where a port of a workload is to be reached, and how callers without a certificate may be known.

    A certificate comes first. `by_address` are identities by source address, of callers who come without TLS; `tokens`
    are those of callers of whom neither is known.
    """

    workload: str
    address: str
    port: int
    bound: int
    by_address: tuple[tuple[str, str], ...] = ()
    tokens: TokenIdentity | None = None
