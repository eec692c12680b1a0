"""The codes of errors in the shape of any policy."""

from eastgate.basics.diagnostics import Code

UNKNOWN_FIELD = Code(
    "EG1201",
    "unknown field",
    "The resource has no such field. The API server would drop it silently; in authorization a dropped line is a hole, "
    "so here it is an error.",
)
WRONG_TYPE = Code("EG1202", "wrong type", "The field exists, but cannot have a value of this type.")
MISSING_FIELD = Code("EG1203", "required field missing", "The resource means nothing without this field.")
NULL_VALUE = Code(
    "EG1204",
    "null value",
    "A null is neither an absent field (which usually means anything) nor an empty one (which means nothing), and "
    "readers of a policy take it for either. Leave the field out, or write the empty value.",
)
NOT_A_CHOICE = Code("EG1205", "value not allowed", "The field takes one of a few values, and this is none of them.")
OUT_OF_RANGE = Code("EG1206", "number out of range", "The number is smaller or larger than the field allows.")
BAD_NAME = Code("EG1207", "invalid name", "The API server would reject an object of this name or namespace.")
BAD_LABEL = Code("EG1208", "invalid label", "A label key or value that no Kubernetes object can have selects nothing.")
BAD_MODE = Code(
    "EG1209",
    "invalid eastgate.dev/mode",
    "The annotation `eastgate.dev/mode` is `audit` (report what the policy would do) or `enforce` (the default). "
    "With any other value, it is unclear whether the policy is in force.",
)
NAMESPACE_ON_CLUSTER_SCOPED = Code(
    "EG1210", "namespace on a cluster-scoped policy", "A cluster-scoped resource has no namespace."
)
BAD_OPERATOR = Code(
    "EG1211",
    "invalid selector requirement",
    "A requirement has a key, one of the operators In, NotIn, Exists, DoesNotExist, and values for the first two only.",
)
