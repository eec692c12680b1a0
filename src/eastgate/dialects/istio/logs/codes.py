"""Codes of diagnostics about lines of Istio's logs."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

CALLERS_SIDE = Code(
    "EG2151",
    "a line of the caller's proxy",
    "Policies are enforced at the destination. The proxy of a caller logs the answer that it got, and not who decided. "
    "The destination's proxy (a sidecar, a waypoint, the ztunnel of its node) has a line about the same request.",
)
NO_POLICY_DECIDED = Code(
    "EG2152",
    "a line that tells of no decision of a policy",
    "The line is of a proxy of Istio, and tells of something else: a request that is malformed, a connection that "
    "broke, or a log format without the details of the answer.",
)
CUT_OFF = Code(
    "EG2153",
    "a line of Istio's log that is not complete",
    "The line begins like one of a proxy of Istio, and lacks what would say what was decided.",
)
