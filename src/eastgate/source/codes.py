"""The codes of diagnostics about clusters."""

from __future__ import annotations

from eastgate.diagnostics import Code

__all__ = ["NO_CLUSTER", "REFUSED_BY_CLUSTER"]

NO_CLUSTER = Code(
    "EG0140",
    "no cluster to read",
    "The kubeconfig cannot be used, or its API server does not answer.",
)
REFUSED_BY_CLUSTER = Code("EG0141", "the cluster refuses to be read", "The API server answers with an error.")
