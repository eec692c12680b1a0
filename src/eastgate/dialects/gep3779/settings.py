"""The settings that only GEP-3779 reads."""

from __future__ import annotations

from enum import StrEnum

from eastgate.basics.records import dataclass
from eastgate.settings import MeshMode, Section, Settings, SettingsError

__all__ = ["DenyOnly", "GepSettings", "ServiceTarget"]


class DenyOnly(StrEnum):
    """The verdict on unmatched requests to a workload that only DENY policies target."""

    DENY = "deny"
    ALLOW = "allow"


class ServiceTarget(StrEnum):
    """The scope of a policy that targets a Service."""

    WORKLOADS = "workloads"
    TRAFFIC = "traffic"


@dataclass(frozen=True, slots=True)
class GepSettings(Section):
    """The settings for the ambiguities of GEP-3779."""

    deny_only: DenyOnly = DenyOnly.DENY
    service_target: ServiceTarget = ServiceTarget.WORKLOADS

    def check(self, settings: Settings) -> None:
        """Raise if policies govern the traffic to a Service, but no proxy knows the Service of a request."""
        if self.service_target is ServiceTarget.TRAFFIC and settings.mesh_mode is not MeshMode.AMBIENT:
            raise SettingsError(
                "serviceTarget: traffic needs meshMode: ambient "
                "(only a waypoint knows which Service the traffic was addressed to)"
            )
