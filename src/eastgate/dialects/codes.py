"""Codes of documents that look like policies and are none that we can read."""

from eastgate.basics.diagnostics import Code

UNKNOWN_KIND = Code(
    "EG1301",
    "unknown kind in a policy group",
    "The group holds policies, and this is none of its kinds. If it was meant as a policy, ignoring it would open "
    "a hole.",
)
UNKNOWN_VERSION = Code(
    "EG1302", "unknown version of a policy", "The kind exists, but not in this version, so its fields can't be known."
)
