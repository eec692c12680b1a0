"""The codes of diagnostics about clusters."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

NO_CLUSTER = Code(
    "EG0140",
    "no cluster to read",
    "The kubeconfig cannot be used, or its API server does not answer.",
)
REFUSED_BY_CLUSTER = Code("EG0141", "the API server refuses a request", "The API server answers with an error.")
POLICY_TOO_LARGE = Code(
    "EG0142",
    "policy too large",
    "Every replica of the controller holds every policy, so that one huge policy could use up the memory. "
    "The size is that of its JSON, and 32 bytes for each value in it; the setting `policyLimit` limits it. "
    "Admission refuses a larger policy. A larger policy that exists anyway closes its targets.",
)
NAMESPACE_TOO_LARGE = Code(
    "EG0143",
    "policies of a namespace too large",
    "All policies of a namespace together are larger than the setting `namespaceLimit` allows. The oldest count first. "
    "Admission refuses a policy beyond the limit. A policy beyond it that exists anyway closes its targets.",
)
