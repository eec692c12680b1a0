"""The codes of diagnostics about clusters."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

NO_CLUSTER = Code(
    "EG0140",
    "no cluster to read",
    "The kubeconfig cannot be used, or its API server does not answer.",
)
REFUSED_BY_CLUSTER = Code("EG0141", "the cluster refuses to be read", "The API server answers with an error.")
POLICY_TOO_LARGE = Code(
    "EG0142",
    "policy too large",
    "Every replica of the controller holds every policy, so that one of any size could take the memory of all others. "
    "The size is that of its JSON, and 32 bytes for each value in it; the setting `policyLimit` says how large it may "
    "be. Admission refuses a larger one. One that is there all the same closes what it targets.",
)
NAMESPACE_TOO_LARGE = Code(
    "EG0143",
    "policies of a namespace too large",
    "All policies of a namespace together are larger than the setting `namespaceLimit` allows. The oldest count first. "
    "Admission refuses a policy that would be beyond the limit. One that is there all the same closes what it targets.",
)
