"""Auth schemes: Authorino's AuthConfig, in the names of any of its versions, and what AuthPolicies embed of it.

    AUTH_CONFIG_SPEC   checks an AuthConfig, v1beta2 or v1beta3; AUTH_CONFIG_SPEC_V1BETA1 one of that version
    RULES              checks the `rules` of today's AuthPolicy, NAMED_PATTERNS_ALL_OF and WHEN_PREDICATES what is
                       beside them; `scheme_from` makes the model of the effective rules of several policies
    SCHEME             checks one of the schemes of an AuthPolicy of 2022, LONE_SCHEME one that is for all hosts

`read_scheme` makes the model of one that has been checked. What Authorino can do and Eastgate does not evaluate is an
error: a check that is silently left out lets somebody in.
"""

from eastgate.dialects.kuadrant.schemes.conditions import NAMED_PATTERNS_ALL_OF, WHEN_PREDICATES, pattern_references
from eastgate.dialects.kuadrant.schemes.kinds import AUTH_CONFIG_SPEC, AUTH_CONFIG_SPEC_V1BETA1, RULES
from eastgate.dialects.kuadrant.schemes.meaning import SchemeSection, read_scheme, scheme_from
from eastgate.dialects.kuadrant.schemes.shapes import LONE_SCHEME, SCHEME

__all__ = [
    "AUTH_CONFIG_SPEC",
    "AUTH_CONFIG_SPEC_V1BETA1",
    "LONE_SCHEME",
    "NAMED_PATTERNS_ALL_OF",
    "RULES",
    "SCHEME",
    "WHEN_PREDICATES",
    "SchemeSection",
    "pattern_references",
    "read_scheme",
    "scheme_from",
]
