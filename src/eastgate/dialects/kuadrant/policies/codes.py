"""Codes of the errors in today's AuthPolicy. The codes of its rules are in `schemes`."""

from eastgate.basics.diagnostics import Code, Severity

SECTION_TARGET_GROUP = Code(
    "EG5021",
    "target of another group",
    "“Invalid targetRef.group. The only supported value is 'gateway.networking.k8s.io'.”",
)
SECTION_TARGET_KIND = Code(
    "EG5022",
    "target of another kind",
    "“Invalid targetRef.kind. The only supported values are 'HTTPRoute', 'GRPCRoute' and 'Gateway'.”",
)
IMPLICIT_AND_EXPLICIT = Code(
    "EG5023",
    "rules beside `defaults` or `overrides`",
    "“Implicit and explicit defaults are mutually exclusive”, and so are implicit defaults and explicit overrides.",
)
DEFAULTS_AND_OVERRIDES = Code(
    "EG5024",
    "both `defaults` and `overrides`",
    "“Explicit overrides and explicit defaults are mutually exclusive.”",
)
NO_RULES = Code(
    "EG5025",
    "no rules",
    "“At least one spec.rules must be defined”: of authentication, metadata, authorization, response or callbacks.",
)
NO_SUCH_TARGET = Code(
    "EG5026",
    "target or section that no manifest declares",
    "If the target does not exist, the policy is not accepted (TargetNotFound), and guards nothing. A Gateway that a "
    "route names counts as existing elsewhere.",
    Severity.WARNING,
    needs_cluster=True,
)
