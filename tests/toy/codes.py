"""The codes of errors in a GuestList."""

from eastgate.basics.diagnostics import Code, Severity

GUEST = Code("EG9901", "invalid guest", "A guest is the name of a service account of the policy's own namespace.")
AUDITED = Code(
    "EG9902", "an audited list", "Whoever converts a list that is only audited would enforce it.", Severity.WARNING
)
