"""Settings: the same names in `--set`, in a test's `settings`, in eastgate.yaml and in the controller.

Each one that chooses between two readings of a specification has the stricter or literal reading as its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_network

from eastgate.diagnostics import Code, did_you_mean

__all__ = [
    "BAD_SETTING",
    "DataPlane",
    "DenyOnly",
    "InboundPolicy",
    "MeshMode",
    "Networks",
    "OpenRequests",
    "ServiceTarget",
    "Settings",
    "SettingsError",
    "UnlistedCaller",
]

Networks = tuple[IPv4Network | IPv6Network, ...]


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


class OpenRequests(StrEnum):
    """What becomes of a request that is still open when policies stop allowing it."""

    END = "end"
    FINISH = "finish"


class DataPlane(StrEnum):
    """Whose proxies decide: those of the system that a policy is for, where it has its own, or ours."""

    NATIVE = "native"
    EASTGATE = "eastgate"


class InboundPolicy(StrEnum):
    """Linkerd's default policies: what it lets in on a port that nothing else governs."""

    ALL_UNAUTHENTICATED = "all-unauthenticated"
    ALL_AUTHENTICATED = "all-authenticated"
    CLUSTER_UNAUTHENTICATED = "cluster-unauthenticated"
    CLUSTER_AUTHENTICATED = "cluster-authenticated"
    DENY = "deny"
    AUDIT = "audit"


def _networks(*cidrs: str) -> Networks:
    return tuple(ip_network(cidr) for cidr in cidrs)


_PRIVATE = _networks("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fd00::/8")
_EVERYWHERE = _networks("0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, with their defaults."""

    trust_domain: str = "cluster.local"
    namespace: str = "default"
    mesh_mode: MeshMode = MeshMode.SIDECAR
    deny_only: DenyOnly = DenyOnly.DENY
    service_target: ServiceTarget = ServiceTarget.WORKLOADS
    unlisted_caller: UnlistedCaller = UnlistedCaller.DENY
    cluster_domain: str = "cluster.local"
    linkerd_namespace: str = "linkerd"
    linkerd_default_policy: InboundPolicy = InboundPolicy.ALL_UNAUTHENTICATED
    linkerd_cluster_networks: Networks = _PRIVATE
    linkerd_probe_networks: Networks = _EVERYWHERE
    authorino_compat: bool = False
    open_requests: OpenRequests = OpenRequests.END
    data_plane: DataPlane = DataPlane.NATIVE

    def __post_init__(self) -> None:
        if self.service_target is ServiceTarget.TRAFFIC and self.mesh_mode is not MeshMode.AMBIENT:
            raise SettingsError(
                "serviceTarget: traffic needs meshMode: ambient "
                "(only a waypoint knows which Service the traffic was addressed to)"
            )

    @classmethod
    def from_mapping(cls, written: Mapping[str, object], base: Settings | None = None) -> Settings:
        """Read settings by their written names, `denyOnly` and so on, on top of others."""
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

    def enforced(self) -> Settings:
        """The same where our own proxies enforce: what they do is not a matter of choice."""
        return replace(self, data_plane=DataPlane.EASTGATE)

    def mesh_name(self, namespace: str, account: str) -> str:
        """What Linkerd calls a service account; `*` as the account: what it calls all of the namespace.

        Linkerd's own trust domain is the cluster's domain unless somebody sets another one.
        """
        domain = self.trust_domain if self.trust_domain != Settings().trust_domain else self.cluster_domain
        return f"{account}.{namespace}.serviceaccount.identity.{self.linkerd_namespace}.{domain}"

    def to_json(self) -> dict[str, str]:
        """The settings under their written names."""
        return {name: _written(getattr(self, attribute)) for name, attribute in _WRITTEN.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_WRITTEN = {_camel(f.name): f.name for f in fields(Settings)}


def _written(value: str | bool | Networks) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ",".join(str(network) for network in value)


def _value(name: str, attribute: str, value: object) -> str | bool | Networks:
    default = getattr(Settings(), attribute)
    if isinstance(default, bool):
        return _flag(name, value)
    if not isinstance(value, str):
        raise SettingsError(f"setting `{name}` must be a string, not {value!r}")
    if isinstance(default, StrEnum):
        options = [str(option) for option in type(default)]
        if value not in options:
            raise SettingsError(f"setting `{name}` is {' or '.join(options)}, not `{value}`")
        return type(default)(value)
    if isinstance(default, tuple):
        return _read_networks(name, value)
    if attribute == "namespace" and not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", value):
        raise SettingsError(f"setting `{name}` must be the name of a namespace, not `{value}`")
    if not value or not all(c.islower() or c.isdigit() or c in "._-" for c in value) or not value.isascii():
        what = "a trust domain" if attribute == "trust_domain" else "a name"
        raise SettingsError(f"setting `{name}` must be {what} ([a-z0-9._-]+), not `{value}`")
    return value


def _flag(name: str, value: object) -> bool:
    if value not in (True, False, "true", "false") or (isinstance(value, int | float) and not isinstance(value, bool)):
        raise SettingsError(f"setting `{name}` is true or false, not `{value}`")
    return value in (True, "true")


def _read_networks(name: str, value: str) -> Networks:
    try:
        return _networks(*(cidr.strip() for cidr in value.split(",") if cidr.strip()))
    except ValueError:
        way_out = "separated by commas, such as 10.0.0.0/8,fd00::/8"
        raise SettingsError(f"setting `{name}` must be networks {way_out}, not `{value}`") from None
