"""The codes of errors in a GuestList."""

from eastgate.basics.diagnostics import Code, Severity

GUEST = Code("EG9901", "invalid guest", "A guest is the name of a service account of the policy's own namespace.")
AUDITED = Code(
    "EG9902", "an audited list", "A conversion of a list in audit mode would enforce the list.", Severity.WARNING
)
