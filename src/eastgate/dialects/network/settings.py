"""The setting of Kubernetes' network policies: whether the network of the cluster enforces them."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.settings import Section

__all__ = ["NetworkEnforcement", "NetworkSettings"]


class NetworkEnforcement(StrEnum):
    """Whether the network plugin of a cluster enforces network policies. Without such a plugin they have no effect."""

    ENFORCE = "enforce"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class NetworkSettings(Section):
    """The settings of the network of a cluster."""

    network_policies: NetworkEnforcement = NetworkEnforcement.ENFORCE
