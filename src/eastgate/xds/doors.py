"""Where a port of a workload is to be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    are those of callers of whom neither is known. `tells_of_open_requests`: the proxy logs requests also while they are
    open. `ended`: how often the requests of a caller were ended, by its name; it names the caller's filter chain.
    """

    workload: str
    address: str
    port: int
    bound: int
    by_address: tuple[tuple[str, str], ...] = ()
    tokens: TokenIdentity | None = None
    tells_of_open_requests: bool = False
    ended: Mapping[str, int] = field(default_factory=dict, compare=False)
