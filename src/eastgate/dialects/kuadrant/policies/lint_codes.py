"""Codes of lint's findings about today's AuthPolicies."""

from eastgate.basics.diagnostics import Code, Severity

DROPPED_AUTHENTICATION = Code(
    "EG6211",
    "authentication that another policy drops",
    "Atomic defaults count only where no more specific policy has rules, and beside atomic overrides nothing else "
    "counts. What is left asks nobody who they are, and lets requests in.",
    Severity.WARNING,
)
WIDENED_AUTHENTICATION = Code(
    "EG6212",
    "authentication of several policies, of which one is enough",
    "Merged authentication entries are alternatives: whoever one of them recognizes is let in, although the other "
    "policy by itself would not know them.",
    Severity.WARNING,
)
CONDITION_OF_ANOTHER_POLICY = Code(
    "EG6213",
    "`when` that guards rules of another policy",
    "Of merged policies one `when` is left, and it guards all rules: where it does not hold, those of the other policy "
    "are skipped as well, and the request is let through.",
    Severity.WARNING,
)
ERRING_CONDITION = Code(
    "EG6214",
    "`when` of a policy that errs",
    "A predicate that has no answer, since something that it looks at is missing, refuses the request. The gateway of "
    "Kuadrant does the same, with a 500.",
    Severity.WARNING,
)
DANGLING_PATTERN_REF = Code(
    "EG6215",
    "`patternRef` that the effective policy has no patterns for",
    "Named patterns of all policies that are merged count, and none has these. What refers to them errs, which denies; "
    "Authorino leaves the condition out without a word.",
    Severity.WARNING,
)
SAME_TARGET = Code(
    "EG6216",
    "two policies on one target",
    "The newer one is the more specific: of defaults it counts first, of overrides last. Nothing but the time of "
    "creation decides.",
    Severity.WARNING,
)
ASKS_NOTHING = Code(
    "EG6217",
    "effective policy that lets everybody in",
    "It has neither authentication nor authorization. A policy for responses alone replaces the defaults of others "
    "like any other, unless these are merged.",
    Severity.WARNING,
)
ON_NO_ROUTE = Code(
    "EG6218",
    "policy that no route is behind",
    "Policies are enforced at the rules of routes, and none is attached to the target: the policy is not enforced.",
    Severity.WARNING,
)
OVERRIDDEN = Code(
    "EG6219",
    "policy of which no rule is in force",
    "Everywhere that it applies, other policies have rules that count instead.",
    Severity.INFO,
)
