"""Codes of diagnostics about lines of Istio's logs."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

CALLERS_SIDE = Code(
    "EG2151",
    "line of the caller's proxy",
    "Policies are enforced at the destination. The proxy of a caller logs the answer that it got, and not the policy. "
    "The destination's proxy (a sidecar, a waypoint, the ztunnel of its node) has a line about the same request.",
)
NO_POLICY_DECIDED = Code(
    "EG2152",
    "line without a decision of a policy",
    "The line is from a proxy of Istio, but it reports something else: a malformed request, a broken connection, or a "
    "log format without response details.",
)
CUT_OFF = Code(
    "EG2153",
    "incomplete line of Istio's log",
    "The line begins like one of a proxy of Istio, but it does not contain the decision.",
)
