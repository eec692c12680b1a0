"""The settings that only Kuadrant reads."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.settings import Section

__all__ = ["KuadrantSettings"]


@dataclass(frozen=True, slots=True)
class KuadrantSettings(Section):
    """The settings of Authorino: its compatible evaluation of schemes, and its namespace.

    The namespace has the Secrets that AuthPolicies of today select. `allow_superseding_host_subsets`: Authorino runs
    with that flag, so an AuthConfig may have a host that a wildcard of an older AuthConfig covers.
    """

    authorino_compat: bool = False
    authorino_namespace: str = "kuadrant-system"
    allow_superseding_host_subsets: bool = False
