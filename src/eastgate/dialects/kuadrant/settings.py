"""The settings that only Kuadrant reads."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.settings import Section

__all__ = ["KuadrantSettings"]


@dataclass(frozen=True, slots=True)
class KuadrantSettings(Section):
    """The choice where Authorino evaluates schemes otherwise than it documents, and the namespace where it runs.

    In that namespace are the Secrets that the AuthPolicies of today select. `allow_superseding_host_subsets`: Authorino
    runs with the flag of that name, so that an AuthConfig may have a host that a wildcard of an older one means.
    """

    authorino_compat: bool = False
    authorino_namespace: str = "kuadrant-system"
    allow_superseding_host_subsets: bool = False
