"""Placements, stages, readings and rules that nobody wrote: as data, with words for people in `str`."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.cluster.points import Direction
from eastgate.dialects.network.settings import NetworkEnforcement
from eastgate.ir import Placement, RuleKind, Site

PLACEMENTS = {direction: Placement(Site.NETWORK, direction) for direction in Direction}


class StageName(enum.StrEnum):
    """The stages of a direction."""

    AUDIT = "audit"
    ITSELF = "itself"
    ADMIN = "admin"
    NAMESPACED = "networkpolicy"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class ToItself:
    """The origin of a rule for what a pod sends to its own address, which no network policy is about."""

    kind: ClassVar[RuleKind] = RuleKind.ITSELF

    def __str__(self) -> str:
        return "a pod's access to itself, which no network policy can block,"


@dataclass(frozen=True, slots=True)
class NodeTraffic:
    """The origin of a rule for traffic between a pod and its own node, which NetworkPolicies always allow."""

    kind: ClassVar[RuleKind] = RuleKind.PROBE

    def __str__(self) -> str:
        return "traffic between a pod and its own node, which a NetworkPolicy always allows,"


@dataclass(frozen=True, slots=True)
class EnforcementReading:
    """The setting that says whether the network applies the policies."""

    choice: NetworkEnforcement
    setting: ClassVar[str] = "networkPolicies"

    def __str__(self) -> str:
        applies = "applies" if self.choice is NetworkEnforcement.ENFORCE else "does not apply"
        return f"{self.setting}: {self.choice} (the network {applies} these policies)"
