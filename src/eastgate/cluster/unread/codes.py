"""Codes of objects whose kinds are not read."""

from eastgate.basics.diagnostics import Code, Severity

UNREAD_POLICY = Code(
    "EG1310",
    "policy of an unread kind",
    "The object decides which callers reach which destinations, and Eastgate does not read its kind. An answer that it "
    "could change names it, and the exit status is 3, or 2 if its targets are unknown; that of `lint` is 3. `--unread` "
    "changes the treatment of such answers.",
)
UNREAD_BESIDE = Code(
    "EG1311",
    "unread object of the network or of proxies",
    "The object decides about packets of the network, or changes the behaviour of proxies, beside the policies that "
    "Eastgate reads. An answer that it could change names it, and the exit status is 3, or 2 if its targets are "
    "unknown.",
    Severity.INFO,
)
LEFT_OUT = Code(
    "EG1312",
    "part that is left out",
    "A file, an object, a kustomization or a chart cannot be read, so that it is left out. An answer that it could "
    "change has the note `(from what was read)` and exit status 3; with `--strict` there is no answer.",
)
IDLE_SECRET = Code(
    "EG1313",
    "Secret not understood, which no policy reads",
    "The data of a Secret is base64, and its stringData are strings. No policy reads this one, so that it "
    "decides nothing.",
    Severity.INFO,
)
