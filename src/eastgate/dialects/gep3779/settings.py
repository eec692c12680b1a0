"""The settings that only GEP-3779 reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from eastgate.settings import MeshMode, Section, Settings, SettingsError

__all__ = ["DenyOnly", "GepSettings", "ServiceTarget"]


class DenyOnly(StrEnum):
    """What becomes of the rest where only DENY policies target a workload."""

    DENY = "deny"
    ALLOW = "allow"


class ServiceTarget(StrEnum):
    """What a policy that targets a Service governs."""

    WORKLOADS = "workloads"
    TRAFFIC = "traffic"


@dataclass(frozen=True, slots=True)
class GepSettings(Section):
    """How GEP-3779 is read where it can be read in two ways."""

    deny_only: DenyOnly = DenyOnly.DENY
    service_target: ServiceTarget = ServiceTarget.WORKLOADS

    def check(self, settings: Settings) -> None:
        """Refuse to tell traffic by its Service where nothing knows the Service."""
        if self.service_target is ServiceTarget.TRAFFIC and settings.mesh_mode is not MeshMode.AMBIENT:
            raise SettingsError(
                "serviceTarget: traffic needs meshMode: ambient "
                "(only a waypoint knows which Service the traffic was addressed to)"
            )
