"""Settings: the same names in `--set`, in a test's `settings`, in eastgate.yaml and in the controller.

Each one that chooses between two readings of a specification has the stricter or literal reading as its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum

from eastgate.diagnostics import Code, did_you_mean

__all__ = ["BAD_SETTING", "DenyOnly", "MeshMode", "ServiceTarget", "Settings", "SettingsError", "UnlistedCaller"]


BAD_SETTING = Code(
    "EG0001",
    "setting not understood",
    "A setting that does not exist, or a value that it cannot have. It is an error, because a setting that is ignored "
    "is a surprise.",
)


class SettingsError(ValueError):
    """A setting that does not exist, or a value that it cannot have."""


class MeshMode(StrEnum):
    """Where policies are enforced: beside each workload, or at the node and at waypoints."""

    SIDECAR = "sidecar"
    AMBIENT = "ambient"


class DenyOnly(StrEnum):
    """What becomes of the rest where only DENY policies target a workload."""

    DENY = "deny"
    ALLOW = "allow"


class ServiceTarget(StrEnum):
    """What a policy that targets a Service governs."""

    WORKLOADS = "workloads"
    TRAFFIC = "traffic"


class UnlistedCaller(StrEnum):
    """What becomes of a caller whom no InlineTools rule of a level names."""

    DENY = "deny"
    PROCEED = "proceed"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, with their defaults."""

    trust_domain: str = "cluster.local"
    mesh_mode: MeshMode = MeshMode.SIDECAR
    deny_only: DenyOnly = DenyOnly.DENY
    service_target: ServiceTarget = ServiceTarget.WORKLOADS
    unlisted_caller: UnlistedCaller = UnlistedCaller.DENY

    def __post_init__(self) -> None:
        if self.service_target is ServiceTarget.TRAFFIC and self.mesh_mode is not MeshMode.AMBIENT:
            raise SettingsError(
                "serviceTarget: traffic needs meshMode: ambient "
                "(only a waypoint knows which Service the traffic was addressed to)"
            )

    @classmethod
    def of(cls, written: Mapping[str, object], base: Settings | None = None) -> Settings:
        """Settings from their written names and values, on top of others."""
        changes: dict[str, object] = {}
        for name, value in written.items():
            attribute = _WRITTEN.get(name)
            if attribute is None:
                near = did_you_mean(name, _WRITTEN)
                raise SettingsError(
                    f"there is no setting `{name}`"
                    + (f"; did you mean `{near}`?" if near else f"; the settings are {', '.join(sorted(_WRITTEN))}")
                )
            changes[attribute] = _value(name, attribute, value)
        return replace(base or cls(), **changes)  # type: ignore[arg-type] # _value has checked each

    def to_json(self) -> dict[str, str]:
        """The settings under their written names."""
        return {name: str(getattr(self, attribute)) for name, attribute in _WRITTEN.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_WRITTEN = {_camel(f.name): f.name for f in fields(Settings)}
_CHOICES: dict[str, type[StrEnum]] = {
    "mesh_mode": MeshMode,
    "deny_only": DenyOnly,
    "service_target": ServiceTarget,
    "unlisted_caller": UnlistedCaller,
}


def _value(name: str, attribute: str, value: object) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"setting `{name}` must be a string, not {value!r}")
    if attribute in _CHOICES:
        options = [str(option) for option in _CHOICES[attribute]]
        if value not in options:
            raise SettingsError(f"setting `{name}` is {' or '.join(options)}, not `{value}`")
        return _CHOICES[attribute](value)
    if not value or not all(c.islower() or c.isdigit() or c in "._-" for c in value) or not value.isascii():
        raise SettingsError(f"setting `{name}` must be a trust domain ([a-z0-9._-]+), not `{value}`")
    return value
