"""The would-be decision: the answer to a question if the audited policies were in force beside the others."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.engine.trace import Trace
from eastgate.ir import Layer, Origin, Outcome, PolicyRef
from eastgate.ir.attributes import Attribute

_LOGGING_ACTION = "AUDIT"  # an observed rule with this action decides nothing, even if its policy is in force


class Would(enum.StrEnum):
    """The effect that an audited policy would have: allow or deny the request, or only log that a rule matches
    (`match`).

    `ask`: only an authorizer could answer. Proxies do not ask the authorizer of an audited policy.
    """

    ALLOW = "allow"
    DENY = "deny"
    MATCH = "match"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Audited:
    """The effect of one audited policy on a request, if it were in force. `changes`: the verdict would change.

    `policy` is None for a default policy that is only audited.
    """

    policy: PolicyRef | None
    verdict: Would
    rule: int | None
    span: Span | None
    reason: str
    changes: bool = False

    @property
    def text(self) -> str:
        """Return the effect in one sentence."""
        who = str(self.policy) if self.policy is not None else "the default policy"
        if self.verdict is Would.MATCH:
            return f"{who} matches it: {self.reason}"
        if self.verdict is Would.ASK:
            return f"{who} would ask an authorizer: {self.reason}"
        return f"{who} would {self.verdict} it{'' if self.changes else ' too'}: {self.reason}"

    @property
    def line(self) -> str:
        """Return the effect as one line of output, with the file and line of the policy."""
        return f"AUDIT  {self.text}" + (f"  ({self.span.location})" if self.span is not None else "")

    def to_json(self) -> dict[str, object]:
        """Return the effect as plain data."""
        return {
            "policy": str(self.policy) if self.policy is not None else None,
            "verdict": self.verdict.value,
            "rule": self.rule,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
            "reason": self.reason,
            "changes": self.changes,
        }


def audited_by(
    layers: Sequence[Layer], now: Outcome, would: Outcome, unknown: Sequence[Attribute] = ()
) -> Iterator[Audited]:
    """Yield the effects of audited policies of these layers that would decide, or would change the verdict.

    `now` is the outcome of the layers. `would` is their outcome with the audited policies in force. `unknown` lists the
    attributes that the request leaves out: with other values the request may be allowed.
    """
    left_out = f"; unknown: {', '.join(map(str, unknown))}" if unknown else ""
    verdict = Would.ALLOW if would.allowed else Would.DENY
    changes = now.allowed is not would.allowed
    audits = [layer.audit for layer in layers if layer.audit is not None]
    origin = would.rule.origin if would.rule is not None else None
    if origin is not None and any(origin.policy == each.policy for audit in audits for each in audit.policies):
        reason = origin.label or f"rule {origin.index}"
        yield Audited(origin.policy, verdict, origin.index, origin.span, reason + left_out, changes)
        return
    if not changes:
        return
    at = [layer.audit for layer in layers if layer.audit is not None and would.layer in (None, layer.name)]
    if origin is not None:  # the rule of a policy in force, which decides only with the audited policy
        reason = f"{origin} would {'allow' if would.allowed else 'deny'} it then"
        blamed = [each for audit in audits for each in audit.policies]
    elif would.allowed:
        reason, blamed = "nothing would deny it then", [each for audit in audits for each in audit.policies]
    else:
        reason = "no rule allows it"
        blamed = [each for audit in at for each in audit.closing or audit.policies]
    yield from _verdict_changes(blamed, now, verdict, reason + left_out)


def _verdict_changes(blamed: Sequence[Origin], now: Outcome, verdict: Would, reason: str) -> Iterator[Audited]:
    """Yield the change of a verdict for each policy that may cause it. Without such a policy, name today's rule."""
    for each in dict.fromkeys(blamed):
        yield Audited(each.policy, verdict, None, each.span, reason, changes=True)
    if not blamed:
        origin = now.rule.origin if now.rule is not None else None
        only = f"only {origin} allows it" if origin is not None and verdict is Would.DENY else reason
        span = origin.span if origin is not None else None
        yield Audited(origin.policy if origin is not None else None, verdict, None, span, only, changes=True)


def matched(trace: Trace) -> Iterator[Audited]:
    """Yield the rules that match a request and only log: they decide nothing, even in force."""
    for rule, would in (each for layer in trace.layers for stage in layer.stages for each in stage.observed):
        if would == _LOGGING_ACTION:
            reason = f"rule {rule.origin.index}; the action AUDIT only logs it"
            yield Audited(rule.origin.policy, Would.MATCH, rule.origin.index, rule.origin.span, reason)
