"""The setting of Kubernetes' network policies: whether the network of the cluster applies them."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.settings import Section

__all__ = ["NetworkEnforcement", "NetworkSettings"]


class NetworkEnforcement(StrEnum):
    """Whether the network plugin of a cluster applies network policies; without one they are stored and do nothing."""

    ENFORCE = "enforce"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class NetworkSettings(Section):
    """The settings of the network of a cluster."""

    network_policies: NetworkEnforcement = NetworkEnforcement.ENFORCE
