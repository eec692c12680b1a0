"""Auth schemes: Authorino's AuthConfig in the field names of any version, and its parts in AuthPolicies.

    AUTH_CONFIG_SPEC   checks an AuthConfig, v1beta2 or v1beta3; AUTH_CONFIG_SPEC_V1BETA1 one of that version
    RULES              checks the `rules` of today's AuthPolicy; NAMED_PATTERNS_ALL_OF and WHEN_PREDICATES check
                       its other fields; `scheme_from` builds the model of the rules of several policies
    SCHEME             checks one of the schemes of an AuthPolicy of 2022; LONE_SCHEME one for all hosts

`read_scheme` builds the model of a checked scheme. A feature of Authorino that Eastgate does not evaluate is an error,
because a check that is silently left out would allow requests.
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
