"""Codes of objects whose kinds are not read."""

from eastgate.basics.diagnostics import Code, Severity

UNREAD_POLICY = Code(
    "EG1310",
    "policy of a kind that is not read",
    "The object decides who may talk to whom, and its kind is not read. Answers that it could change say so, and end "
    "with exit status 3, or 2 where nobody can tell what it is about; `lint` ends with 3. `--unread` says what becomes "
    "of them.",
)
UNREAD_BESIDE = Code(
    "EG1311",
    "object of the network or of proxies that is not read",
    "The object decides what passes at the network, or changes what proxies do, beside the policies that are read. "
    "Answers that it could change say so, and end with exit status 3, or 2 where nobody can tell what it is about.",
    Severity.INFO,
)
LEFT_OUT = Code(
    "EG1312",
    "part that is left out",
    "A file, an object, a kustomization or a chart cannot be read, so that it is left out. Answers that it could "
    "change say `(from what was read)` and end with exit status 3; with `--strict` nothing is answered.",
)
IDLE_SECRET = Code(
    "EG1313",
    "Secret not understood, which no policy reads",
    "The data of a Secret is base64, and its stringData are strings. No policy reads this one, so that it "
    "decides nothing.",
    Severity.INFO,
)
