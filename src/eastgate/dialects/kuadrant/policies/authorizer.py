"""The scheme of an effective policy as an authorizer. Its rulings name the policy of the deciding rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer
from eastgate.dialects.kuadrant.authorino.outcomes import DECISIVE, StepKind
from eastgate.dialects.kuadrant.policies.model import RuleKey
from eastgate.dialects.kuadrant.schemes import SchemeSection
from eastgate.ir import Origin, RulingStep

if TYPE_CHECKING:
    from eastgate.dialects.kuadrant.authorino.outcomes import Judgement


_SECTIONS = {
    StepKind.WHEN: SchemeSection.CONDITIONS,
    StepKind.IDENTITY: SchemeSection.AUTHENTICATION,
    StepKind.METADATA: SchemeSection.METADATA,
    StepKind.AUTHORIZATION: SchemeSection.AUTHORIZATION,
}


@dataclass(frozen=True, slots=True)
class EffectiveAuthorizer(SchemeAuthorizer):
    """Evaluates the scheme of an effective policy. `origins` are the origins of its rules."""

    origins: Mapping[RuleKey, Origin] = field(default_factory=dict, compare=False, repr=False)

    def origin_of(self, judged: Judgement) -> Origin | None:
        """Return the origin of the rule that refused; for an allowed request, of the recognizing identity."""
        if judged.allowed:
            return self.origins.get(RuleKey(SchemeSection.AUTHENTICATION, judged.recognized_by or ""))
        return next((self._origin(step) for step in reversed(judged.steps) if step.verdict in DECISIVE), None)

    def _origin(self, step: RulingStep) -> Origin | None:
        section = _SECTIONS.get(StepKind(step.kind))
        name = "" if section is SchemeSection.CONDITIONS else step.name
        return None if section is None else self.origins.get(RuleKey(section, name))
