"""Codes of errors in Kubernetes objects beside the policies, in fields that determine callers and destinations."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

WRONG_TYPE = Code(
    "EG1101",
    "field of the wrong type",
    "The API server would reject the object: the field needs a value of another type. The object was left out.",
)
BAD_PORT = Code(
    "EG1102",
    "port out of range",
    "A port is a number between 1 and 65535. The object was left out.",
)
MISSING = Code(
    "EG1103",
    "required field missing",
    "The object cannot be understood without this field. The object was left out.",
)
NOT_A_STRING = Code(
    "EG1104",
    "label or annotation is not a string",
    "Labels, annotations and the selector of a Service hold strings only. YAML reads an unquoted 1, true or null as "
    "something else, and the API server rejects it. The object was left out.",
)
BAD_ADDRESS = Code(
    "EG1105",
    "not an IP address",
    "The address of a pod in its status, or of an ExternalWorkload, is no IP address. The object was left out.",
)
BAD_PROTOCOL = Code(
    "EG1106",
    "unknown protocol",
    "The protocol of a port is TCP, UDP or SCTP, in capitals; TCP by default. The object was left out.",
)
BAD_NAME = Code(
    "EG1107",
    "invalid name",
    "The API server would reject this name of an object, a namespace or a service account, or no certificate could "
    "hold it; and an identity with it could equal another identity. The object was left out.",
)
BAD_VALUE = Code(
    "EG1108",
    "value not allowed here",
    "The field takes one of a few words, or a number within limits, and this is none of them. The object was left out.",
)
BAD_HOSTNAME = Code(
    "EG1109",
    "invalid hostname",
    "A hostname of a listener or a route is a DNS name in lower case, without port; its first label may be `*`, which "
    "matches one or more labels. The object was left out.",
)
BAD_PATH = Code(
    "EG1110",
    "invalid path in a route",
    "A path that a route compares exactly or as a prefix is absolute, and has no query, no empty or dot segments and "
    "no encoded slash: no request could match it. The object was left out.",
)
BAD_PATTERN = Code(
    "EG1111",
    "regular expression not understood",
    "Regular expressions in routes are read as RE2, as Envoy reads them: without look-around and back-references, so "
    "that the time is linear in the length of the text. The object was left out.",
)
BAD_SELECTOR = Code(
    "EG1112",
    "label selector not understood",
    "A label selector has matchLabels and matchExpressions, and nothing else. The API server would drop what it does "
    "not know, and the selector would select more than intended. The object was left out.",
)
BAD_CALL = Code(
    "EG1113",
    "invalid gRPC service or method in a route",
    "The name of a gRPC service is made of letters, digits, `_` and dots, that of a method of letters, digits and `_`: "
    "no call could match another. The object was left out.",
)
BAD_SECRET = Code(
    "EG1114",
    "Secret not understood",
    "The data of a Secret is base64, and its stringData are strings. Its content is not shown. The Secret was left "
    "out, and a policy that reads it closes its targets.",
)
