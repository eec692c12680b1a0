"""Codes of objects whose kinds are not read."""

from eastgate.basics.diagnostics import Code, Severity

UNREAD_POLICY = Code(
    "EG1310",
    "policy of a kind that is not read",
    "The object decides who may talk to whom, and its kind is not read. Answers that it could change say so, and end "
    "with exit status 3, or 2 where nobody can tell what it is about; `lint` ends with 2. `--unread` says what becomes "
    "of them.",
)
UNREAD_BESIDE = Code(
    "EG1311",
    "object of the network or of proxies that is not read",
    "The object decides what passes at the network, or changes what proxies do, beside the policies that are read. "
    "Answers that it could change say so, and end with exit status 3, or 2 where nobody can tell what it is about.",
    Severity.INFO,
)
