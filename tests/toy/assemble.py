"""From the guest lists of a workload to its layers: one layer with one stage."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.policy import AllowAny, Attachment, Chain, Layer, Observe, Refusal, Stage
from tests.toy.model import GuestList

__all__ = ["layers"]


def layers(attached: Sequence[Attachment[GuestList]]) -> list[Layer]:
    """Let in whoever is on any of the lists. A list that is only audited is observed and closes nothing."""
    lists = [one.policy for one in attached]
    enforced = [policy for policy in lists if not policy.audit]
    observed = tuple(rule for policy in lists if policy.audit for rule in policy.rules)
    stages: list[Stage] = [Observe("audit", observed, ("ALLOW",) * len(observed))] if observed else []
    if enforced:
        rules = tuple(rule for policy in enforced for rule in policy.rules)
        stages.append(AllowAny("guests", rules, Refusal.CLOSED))
    return [Layer("workload/guests", Chain(tuple(stages)))]
