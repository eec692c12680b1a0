"""The scheme of an effective policy as an authorizer, whose rulings name the policy that the deciding rule is of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from eastgate.dialects.kuadrant.authorino.authorizer import SchemeAuthorizer
from eastgate.dialects.kuadrant.authorino.judgement import DECISIVE, StepKind
from eastgate.dialects.kuadrant.policies.model import RuleKey
from eastgate.dialects.kuadrant.schemes import Section
from eastgate.ir import Origin, RawRequest, Request, Ruling, RulingStep, StepVerdict
from eastgate.records import dataclass

__all__ = ["EffectiveAuthorizer"]

_SECTIONS = {
    StepKind.WHEN: Section.CONDITIONS,
    StepKind.IDENTITY: Section.AUTHENTICATION,
    StepKind.METADATA: Section.METADATA,
    StepKind.AUTHORIZATION: Section.AUTHORIZATION,
}


@dataclass(frozen=True, slots=True)
class EffectiveAuthorizer(SchemeAuthorizer):
    """Evaluates the scheme of an effective policy; `origins` are those of its rules."""

    origins: Mapping[RuleKey, Origin] = field(default_factory=dict, compare=False, repr=False)

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Evaluate the scheme for a request, and tell which policy decided."""
        ruling = super().answer(request, raw)
        return replace(ruling, origin=self._origin_of(ruling))

    def _origin_of(self, ruling: Ruling) -> Origin | None:
        """Return the origin of the rule that refused; of an allowed request, of what recognized the caller."""
        if ruling.allowed:
            decided = (step for step in ruling.steps if step.kind == StepKind.IDENTITY)
            return next((self._origin(step) for step in decided if step.verdict is StepVerdict.ACCEPTED), None)
        return next((self._origin(step) for step in reversed(ruling.steps) if step.verdict in DECISIVE), None)

    def _origin(self, step: RulingStep) -> Origin | None:
        section = _SECTIONS.get(StepKind(step.kind))
        if section is None:
            return None
        return self.origins.get(RuleKey(section, "" if section is Section.CONDITIONS else step.name))
