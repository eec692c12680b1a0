"""Codes of what can be wrong with a GuestList."""

from eastgate.diagnostics import Code

GUEST = Code("EG9901", "invalid guest", "A guest is the name of a service account of the policy's own namespace.")
