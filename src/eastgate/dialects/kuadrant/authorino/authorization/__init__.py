"""Authorization evaluators: patterns, CEL, Rego, SubjectAccessReview."""

from eastgate.dialects.kuadrant.authorino.authorization.agreement import agreed

__all__ = ["agreed"]
