"""Settings: the same names in `--set`, in a test's `settings` and in eastgate.yaml.

Some settings choose between two readings of a specification: their default is the stricter or literal one. A dialect
brings its own settings as a `Section`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import TypeVar

from eastgate.basics.diagnostics import Code, did_you_mean
from eastgate.basics.records import dataclass
from eastgate.ir.addresses import Network, parse_network

__all__ = [
    "BAD_SETTING",
    "DataPlane",
    "McpDenials",
    "MeshMode",
    "Names",
    "Networks",
    "OpenRequests",
    "Section",
    "Settings",
    "SettingsError",
    "Sidecars",
    "Size",
    "bring_sections",
    "networks",
]

S = TypeVar("S", bound="Section")

Networks = tuple[Network, ...]


BAD_SETTING = Code(
    "EG0001",
    "setting not understood",
    "A setting that does not exist, or a value that it cannot have. It is an error, because a setting that is ignored "
    "is a surprise.",
)


class SettingsError(ValueError):
    """A setting that does not exist, or an invalid value."""


class MeshMode(StrEnum):
    """The proxies that enforce policies: beside each workload, or at the node and at waypoints."""

    SIDECAR = "sidecar"
    AMBIENT = "ambient"


class OpenRequests(StrEnum):
    """The ways to treat a request that is still open when policies no longer allow it."""

    END = "end"
    FINISH = "finish"


class McpDenials(StrEnum):
    """The answer of a gateway to a denied MCP request: a JSON-RPC error with its id, or a plain 403."""

    JSON_RPC = "jsonRpc"
    STATUS = "status"


class DataPlane(StrEnum):
    """The proxies that decide: those of the policy's own system, if it has any, or Eastgate's."""

    NATIVE = "native"
    EASTGATE = "eastgate"


class Sidecars(StrEnum):
    """The pods with a proxy of Eastgate: all, as before injection, or only those that really have one."""

    ASSUMED = "assumed"
    ACTUAL = "actual"


class Names(tuple[str, ...]):
    """A list of names, in the order written."""

    __slots__ = ()


class Size(int):
    """A number of bytes, in the form of Kubernetes: `65536`, `64Ki`, `1Mi`."""

    __slots__ = ()

    def __str__(self) -> str:
        for unit, bytes_ in _UNITS.items():
            if self and self % bytes_ == 0:
                return f"{self // bytes_}{unit}"
        return super().__str__()


_UNITS = {"Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10}


def networks(*cidrs: str) -> Networks:
    """Parse networks in CIDR notation. Raises ValueError."""
    return tuple(parse_network(cidr, strict=True) for cidr in cidrs)


@dataclass(frozen=True, slots=True)
class Section:
    """Settings that a dialect brings: a frozen dataclass whose fields have defaults.

    A field is a flag, a size, a StrEnum, a name, names or networks; `linkerd_default_policy` is written
    `linkerdDefaultPolicy`.
    """

    def check(self, settings: Settings) -> None:
        """Raise SettingsError if they contradict other settings."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that belong to no dialect, with their defaults, and the `sections` of dialects."""

    trust_domain: str = "cluster.local"
    namespace: str = "default"
    mesh_mode: MeshMode = MeshMode.SIDECAR
    cluster_domain: str = "cluster.local"
    linkerd_namespace: str = "linkerd"
    open_requests: OpenRequests = OpenRequests.END
    mcp_denials: McpDenials = McpDenials.JSON_RPC
    data_plane: DataPlane = DataPlane.NATIVE
    sidecars: Sidecars = Sidecars.ASSUMED
    policy_limit: Size = Size(2 << 20)
    namespace_limit: Size = Size(8 << 20)
    sections: tuple[Section, ...] = ()
    local_networks: Networks = ()  # for one machine as a cluster; not written by users

    def __post_init__(self) -> None:
        changed = (section for section in self.sections if section != type(section)())
        object.__setattr__(self, "sections", tuple(sorted(changed, key=lambda section: type(section).__name__)))
        for section in self.sections:
            section.check(self)

    def __repr__(self) -> str:
        values = ((setting.name, getattr(self, setting.name), setting.default) for setting in fields(self))
        return f"Settings({', '.join(f'{name}={value!r}' for name, value, default in values if value != default)})"

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, object], base: Settings | None = None) -> Settings:
        """Read settings by their written names, `denyOnly` and so on, on top of others."""
        homes = _homes()
        changes: dict[type[Settings] | type[Section], dict[str, object]] = {}
        for name, value in mapping.items():
            home = homes.get(name)
            if home is None:
                near = did_you_mean(name, homes)
                raise SettingsError(
                    f"there is no setting `{name}`"
                    + (f"; did you mean `{near}`?" if near else f"; the settings are {', '.join(sorted(homes))}")
                )
            owner, attribute = home
            changes.setdefault(owner, {})[attribute] = _value(name, attribute, getattr(owner(), attribute), value)
        settings = base or cls()
        sections = {type(section): section for section in settings.sections}
        for owner, changed in changes.items():
            if issubclass(owner, Section):
                sections[owner] = replace(settings.section(owner), **changed)
        common = changes.get(cls, {})
        return replace(settings, **common, sections=tuple(sections.values()))  # type: ignore[arg-type] # _value has checked each

    def section(self, kind: type[S]) -> S:
        """Return the settings of a dialect: as they were set, or their defaults."""
        return next((section for section in self.sections if isinstance(section, kind)), kind())

    def having(self, section: Section) -> Settings:
        """Return the same settings with another section of a dialect."""
        others = (other for other in self.sections if type(other) is not type(section))
        return replace(self, sections=(*others, section))

    def enforced(self) -> Settings:
        """Return the settings for Eastgate's own proxies: their behaviour is fixed."""
        return replace(self, data_plane=DataPlane.EASTGATE, sidecars=Sidecars.ASSUMED)

    def mesh_name(self, namespace: str, account: str) -> str:
        """Return Linkerd's name of a service account; with `*` as the account, that of all accounts of the namespace.

        By default, Linkerd's own trust domain is the cluster's domain.
        """
        domain = self.trust_domain if self.trust_domain != Settings().trust_domain else self.cluster_domain
        return f"{account}.{namespace}.serviceaccount.identity.{self.linkerd_namespace}.{domain}"

    def to_json(self) -> dict[str, str]:
        """Return all settings under their written names."""
        return {
            name: _format(getattr(self if owner is Settings else self.section(owner), attribute))  # type: ignore[type-var] # a section
            for name, (owner, attribute) in _homes().items()
        }

    def difference_from(self, deciding: Settings) -> str:
        """Return an error: manifests that were read with these settings cannot be decided with others."""
        read_with, given = self.to_json(), deciding.to_json()
        name = next((name for name in given if given[name] != read_with[name]), None)
        if name is None:
            return "the manifests were read for other networks of this machine than those to decide for"
        return (
            f"the manifests were read with {name}: {read_with[name]}, and are to be decided with {name}: {given[name]}"
        )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_UNWRITTEN = ("sections", "local_networks")


class _Brought:
    """The settings of dialects. `eastgate.dialects` sets them, since it is above this module."""

    sections: Callable[[], Iterable[type[Section]]] | None = None


def bring_sections(sections: Callable[[], Iterable[type[Section]]]) -> None:
    """Register the settings of dialects for `Settings.from_mapping`."""
    _Brought.sections = sections


def _homes() -> dict[str, tuple[type[Settings] | type[Section], str]]:
    """Return each setting by its written name: the object that has it, and the name there."""
    if _Brought.sections is None:
        raise RuntimeError("the settings of dialects are not known yet: import eastgate.dialects first")
    owners: list[type[Settings] | type[Section]] = [Settings, *_Brought.sections()]
    names = ((owner, setting.name) for owner in owners for setting in fields(owner) if setting.name not in _UNWRITTEN)
    return {_camel(name): (owner, name) for owner, name in names}


def _format(value: str | bool | Size | Names | Networks) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Size):
        return str(value)
    return value if isinstance(value, str) else ",".join(str(network) for network in value)


def _value(name: str, attribute: str, default: object, value: object) -> str | bool | Size | Names | Networks:
    if isinstance(default, bool):
        return _flag(name, value)
    if isinstance(default, Size):
        return _read_size(name, value)
    if isinstance(default, Names):
        return _read_names(name, value)
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
    if not _is_name(value):
        what = "a trust domain" if attribute == "trust_domain" else "a name"
        raise SettingsError(f"setting `{name}` must be {what} ([a-z0-9._-]+), not `{value}`")
    return value


def _is_name(text: str) -> bool:
    return bool(text) and text.isascii() and all(c.islower() or c.isdigit() or c in "._-" for c in text)


def _read_names(name: str, value: object) -> Names:
    names = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
    if names == [""]:
        return Names()
    if not isinstance(names, list) or not all(isinstance(each, str) and _is_name(each) for each in names):
        raise SettingsError(f"setting `{name}` must be names separated by commas, such as a.example,b.example")
    return Names(names)


def _read_size(name: str, value: object) -> Size:
    written = re.fullmatch(r"([1-9][0-9]{0,14})(Ki|Mi|Gi)?", str(value), re.ASCII)
    if written is None:
        raise SettingsError(f"setting `{name}` must be a number of bytes, such as 65536, 512Ki or 8Mi, not `{value}`")
    return Size(int(written[1]) * _UNITS.get(written[2], 1))


def _flag(name: str, value: object) -> bool:
    if value not in (True, False, "true", "false") or (isinstance(value, int | float) and not isinstance(value, bool)):
        raise SettingsError(f"setting `{name}` is true or false, not `{value}`")
    return value in (True, "true")


def _read_networks(name: str, value: str) -> Networks:
    try:
        return networks(*(cidr.strip() for cidr in value.split(",") if cidr.strip()))
    except ValueError:
        way_out = "separated by commas, such as 10.0.0.0/8,fd00::/8"
        raise SettingsError(f"setting `{name}` must be networks {way_out}, not `{value}`") from None
