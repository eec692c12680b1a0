"""Authorization evaluators: patterns, CEL, Rego, SubjectAccessReview."""

from eastgate.authconfig.authorization.agreement import agreed

__all__ = ["agreed"]
