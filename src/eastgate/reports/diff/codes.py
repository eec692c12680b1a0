"""The findings of a comparison."""

from eastgate.basics.diagnostics import Code, Severity

WIDER = Code(
    "EG6201",
    "requests are allowed that were denied",
    "Between the two sets of policies that were compared, some requests change their verdict from deny to allow.",
    Severity.WARNING,
)
NARROWER = Code(
    "EG6202",
    "requests are denied that were allowed",
    "Between the two sets of policies that were compared, some requests change their verdict from allow to deny.",
    Severity.WARNING,
)
NOT_PROVEN = Code(
    "EG6203",
    "not all changes of verdicts are proven",
    "Eastgate could not prove whether some requests change their verdict between the two sets of policies: there are "
    "too many cases, an authorizer changed, or an object cannot be read.",
    Severity.WARNING,
)
