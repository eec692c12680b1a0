"""Codes of lint's findings about GEP-3779 policies."""

from eastgate.basics.diagnostics import Code, Severity

READING_DENY_ONLY = Code(
    "EG6042",
    "the two readings of denyOnly differ here",
    "Only DENY policies target the workload. The drafts contradict each other: other requests are denied, or "
    "permitted. The setting `denyOnly` decides.",
    Severity.INFO,
)
READING_SERVICE_TARGET = Code(
    "EG6043",
    "the two readings of serviceTarget differ here",
    "A policy that targets a Service governs its pods, or only the traffic to the Service. The setting "
    "`serviceTarget` decides.",
    Severity.INFO,
)
