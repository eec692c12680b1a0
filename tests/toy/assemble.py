"""From the guest lists of a workload to its layers: one layer with one stage."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.ir import AllowAny, Attachment, Chain, Layer, Observe, Placement, Refusal, Site, Stage
from eastgate.settings import Settings
from tests.toy.model import GuestList
from tests.toy.settings import GuestRefusal, ToySettings

__all__ = ["AT", "layers"]

AT = Placement(Site.WORKLOAD, "guests")
_REFUSALS = {GuestRefusal.CLOSED: Refusal.CLOSED, GuestRefusal.FORBIDDEN: Refusal.FORBIDDEN}


def layers(attached: Sequence[Attachment[GuestList]], settings: Settings) -> list[Layer]:
    """Allow a caller that any of the lists names. A list in audit mode is only observed and denies nothing."""
    lists = [one.policy for one in attached]
    enforced = [policy for policy in lists if not policy.audit]
    observed = tuple(rule for policy in lists if policy.audit for rule in policy.rules)
    stages: list[Stage] = [Observe("audit", observed, ("ALLOW",) * len(observed))] if observed else []
    if enforced:
        rules = tuple(rule for policy in enforced for rule in policy.rules)
        stages.append(AllowAny("guests", rules, _REFUSALS[settings.section(ToySettings).guest_refusal]))
    return [Layer(AT, Chain(tuple(stages)))]
