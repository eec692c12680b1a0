"""Codes of lint's findings about today's AuthPolicies."""

from eastgate.basics.diagnostics import Code, Severity

DROPPED_AUTHENTICATION = Code(
    "EG6211",
    "authentication that another policy drops",
    "Atomic defaults count only if no more specific policy has rules. Beside atomic overrides no other rules count. "
    "The remaining rules authenticate no caller, and allow requests.",
    Severity.WARNING,
)
WIDENED_AUTHENTICATION = Code(
    "EG6212",
    "merged authentication of which one entry is enough",
    "Merged authentication entries are alternatives: a caller that one of them recognizes is allowed, even if the "
    "other policy alone would not recognize the caller.",
    Severity.WARNING,
)
CONDITION_OF_ANOTHER_POLICY = Code(
    "EG6213",
    "`when` that guards rules of another policy",
    "Merged policies have one `when`, and it guards all rules. If it does not hold, the rules of the other policy are "
    "skipped as well, and the request is allowed.",
    Severity.WARNING,
)
ERRING_CONDITION = Code(
    "EG6214",
    "`when` of a policy that errs",
    "A predicate has no answer if it reads a missing value. Then the request is refused. The gateway of Kuadrant does "
    "the same, with status 500.",
    Severity.WARNING,
)
DANGLING_PATTERN_REF = Code(
    "EG6215",
    "`patternRef` that the effective policy has no patterns for",
    "A `patternRef` can name patterns of any merged policy, and no policy has these. The condition errs, which "
    "denies. Authorino silently leaves the condition out.",
    Severity.WARNING,
)
SAME_TARGET = Code(
    "EG6216",
    "two policies on one target",
    "The newer policy is more specific: its defaults count first, and its overrides last. Only the creation time "
    "decides.",
    Severity.WARNING,
)
ASKS_NOTHING = Code(
    "EG6217",
    "effective policy that allows every caller",
    "It has neither authentication nor authorization. A policy with responses alone replaces the defaults of other "
    "policies, unless they are merged.",
    Severity.WARNING,
)
ON_NO_ROUTE = Code(
    "EG6218",
    "policy without routes",
    "Policies are enforced at the rules of routes, and no rule is attached to the target. So the policy is not "
    "enforced.",
    Severity.WARNING,
)
OVERRIDDEN = Code(
    "EG6219",
    "policy without a rule in force",
    "Wherever the policy applies, rules of other policies are in force instead.",
    Severity.INFO,
)
