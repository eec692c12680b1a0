"""Placements, stages, readings and implied rules, as data. `str` is for output."""

from __future__ import annotations

import enum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.cluster.points import Direction
from eastgate.dialects.network.settings import NetworkEnforcement
from eastgate.ir import ImpliedRule, Placement, RuleKind, Site

PLACEMENTS = {direction: Placement(Site.NETWORK, direction) for direction in Direction}


class StageName(enum.StrEnum):
    """The stages of a direction."""

    AUDIT = "audit"
    ITSELF = "itself"
    ADMIN = "admin"
    NAMESPACED = "networkpolicy"
    BASELINE = "baseline"


TO_ITSELF = ImpliedRule(RuleKind.ITSELF, "a pod's access to itself, which no network policy can block,")
"""The rule for connections from a pod to its own address. No network policy applies to them."""


NODE_TRAFFIC = ImpliedRule(
    RuleKind.PROBE, "traffic between a pod and its own node, which a NetworkPolicy always allows,"
)
"""The rule for traffic between a pod and its own node. NetworkPolicies always allow it."""


@dataclass(frozen=True, slots=True)
class EnforcementReading:
    """The setting that says whether the network enforces the policies."""

    choice: NetworkEnforcement
    setting: ClassVar[str] = "networkPolicies"

    def __str__(self) -> str:
        applies = "applies" if self.choice is NetworkEnforcement.ENFORCE else "does not apply"
        return f"{self.setting}: {self.choice} (the network {applies} these policies)"
