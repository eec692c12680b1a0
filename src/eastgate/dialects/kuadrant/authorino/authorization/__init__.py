"""Authorization evaluators: patterns, CEL, Rego, SubjectAccessReview, SpiceDB."""

from eastgate.dialects.kuadrant.authorino.authorization.agreement import authorize

__all__ = ["authorize"]
