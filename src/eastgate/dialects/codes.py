"""Codes for documents that look like policies and that no dialect reads."""

from eastgate.basics.diagnostics import Code

UNKNOWN_KIND = Code(
    "EG1301",
    "unknown kind in a policy group",
    "The group contains policies, but not this kind. If the document is meant as a policy, ignoring it would allow "
    "requests that it should deny.",
)
UNKNOWN_VERSION = Code(
    "EG1302", "unknown version of a policy", "The kind exists, but not in this version. Its fields are unknown."
)
