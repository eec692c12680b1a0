"""The MeshConfig in force: what the ConfigMap `istio` says, and where it says nothing, settings.

It is in the namespace of the control plane, which is the root namespace unless it names another. A revision has one of
its own, `istio-<revision>`, which counts where it is the only one. A setting that is not at its default counts more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from eastgate.cluster import ConfigMap, World
from eastgate.dialects.istio.providers import Provider, read_providers
from eastgate.dialects.istio.settings import IstioSettings, PathNormalization
from eastgate.ir.spiffe import trust_domain_problem
from eastgate.manifests import read_nodes_text
from eastgate.records import dataclass
from eastgate.settings import Settings

__all__ = [
    "CONFIG_MAP",
    "MeshConfig",
    "config_map_of",
    "config_maps_of",
    "mesh_problems",
    "mesh_settings",
    "says_otherwise",
    "written_root",
]

CONFIG_MAP: Final = "istio"
_KEY: Final = "mesh"
_NORMALIZATIONS: Final[Mapping[str, PathNormalization]] = {
    "DEFAULT": PathNormalization.BASE,
    "BASE": PathNormalization.BASE,
    "NONE": PathNormalization.NONE,
    "MERGE_SLASHES": PathNormalization.MERGE_SLASHES,
    "DECODE_AND_MERGE_SLASHES": PathNormalization.DECODE_AND_MERGE_SLASHES,
}


@dataclass(frozen=True, slots=True)
class MeshConfig:
    """What matters of a MeshConfig to authorization. `trust_domains` are the trust domain and its aliases."""

    trust_domains: tuple[str, ...]
    path_normalization: PathNormalization
    providers: tuple[Provider, ...] = ()

    @property
    def trust_domain(self) -> str:
        """Return the trust domain of the mesh."""
        return self.trust_domains[0]

    def provider(self, name: str) -> Provider | None:
        """Return the extension provider of a name that can be asked; None where there is none, or it is invalid."""
        return next((provider for provider in self.providers if provider.name == name), None)


def config_map_of(settings: Settings, world: World) -> ConfigMap | None:
    """Return the ConfigMap with the MeshConfig; None where the manifests have none."""
    return next(iter(config_maps_of(settings, world)), None)


def config_maps_of(settings: Settings, world: World) -> list[ConfigMap]:
    """Return the ConfigMaps with a MeshConfig of a control plane: first that in force, then those of revisions."""
    root = settings.section(IstioSettings).root_namespace
    for namespace in dict.fromkeys((root, IstioSettings().root_namespace)):
        own = world.config_maps.get(f"{namespace}/{CONFIG_MAP}")
        revisions = sorted(key for key in world.config_maps if key.startswith(f"{namespace}/{CONFIG_MAP}-"))
        others = [world.config_maps[key] for key in revisions if _KEY in world.config_maps[key].data]
        if own is not None or others:
            return [*([own] if own is not None else []), *others]
    return []


def says_otherwise(config_map: ConfigMap, settings: Settings, world: World) -> bool:
    """Return whether a MeshConfig is another than that in force, as far as it matters to authorization."""
    return _mesh_of(config_map, settings, world) != mesh_settings(settings, world)


def mesh_settings(settings: Settings, world: World) -> MeshConfig:
    """Return the MeshConfig in force."""
    return _mesh_of(config_map_of(settings, world), settings, world)


def _mesh_of(config_map: ConfigMap | None, settings: Settings, world: World) -> MeshConfig:
    written = _Written() if config_map is None else _read(config_map.data.get(_KEY, ""))
    mesh = _in_force(written, settings.trust_domain, settings.section(IstioSettings))
    known = tuple(provider for provider in mesh.providers if not _is_short(provider.host, world))
    return mesh if known == mesh.providers else replace(mesh, providers=known)


def _is_short(host: str, world: World) -> bool:
    """Return whether a host is the short name of a Service, by which istiod finds none."""
    service, dot, namespace = host.partition(".")
    return not dot or f"{namespace}/{service}" in world.services


def mesh_problems(config_map: ConfigMap) -> tuple[str, ...]:
    """Return what is wrong with a MeshConfig, as far as it matters to authorization."""
    return _read(config_map.data.get(_KEY, "")).problems


def written_root(config_map: ConfigMap) -> str | None:
    """Return the root namespace that a MeshConfig names; None where it names none."""
    return _read(config_map.data.get(_KEY, "")).root_namespace


@dataclass(frozen=True, slots=True)
class _Written:
    """What is written in a MeshConfig; None where it says nothing."""

    trust_domain: str | None = None
    aliases: tuple[str, ...] | None = None
    root_namespace: str | None = None
    path_normalization: PathNormalization | None = None
    providers: tuple[Provider, ...] = ()
    problems: tuple[str, ...] = ()


def _in_force(written: _Written, trust_domain: str, settings: IstioSettings) -> MeshConfig:
    default = IstioSettings()
    domain = written.trust_domain if trust_domain == Settings().trust_domain else None
    aliases = written.aliases if settings.trust_domain_aliases == default.trust_domain_aliases else None
    chosen = written.path_normalization if settings.path_normalization is default.path_normalization else None
    bundle = (domain or trust_domain, *(settings.trust_domain_aliases if aliases is None else aliases))
    return MeshConfig(bundle, chosen or settings.path_normalization, written.providers)


@lru_cache(maxsize=64)
def _read(text: str) -> _Written:
    """Read the text of a MeshConfig, which is YAML."""
    content, problem = _parsed(text)
    if problem is not None:
        return _Written(problems=(problem,))
    problems: list[str] = []
    domain, root = (_name(content, key, problems) for key in ("trustDomain", "rootNamespace"))
    return _Written(
        domain,
        _aliases(content, problems),
        root,
        _normalization(content, problems),
        tuple(read_providers(content.get("extensionProviders"))),
        tuple(problems),
    )


def _parsed(text: str) -> tuple[Mapping[str, object], str | None]:
    if not text:
        return {}, None
    roots = read_nodes_text("mesh", text)
    if roots.reporter.diagnostics:
        return {}, f"it is not YAML that Istio reads: {roots.reporter.diagnostics[0].message}"
    if len(roots.nodes) > 1:
        return {}, "it has several documents, and Istio reads the first"
    content = roots.nodes[0].plain() if roots.nodes else {}
    return (content, None) if isinstance(content, dict) else ({}, "it is not a mapping")


def _name(content: Mapping[str, object], key: str, problems: list[str]) -> str | None:
    value = content.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or trust_domain_problem(value) is not None:
        problems.append(f"`{key}` must be a name, not {value!r}")
        return None
    return value


def _aliases(content: Mapping[str, object], problems: list[str]) -> tuple[str, ...] | None:
    value = content.get("trustDomainAliases")
    if value is None:
        return None
    names = list(_texts(value)) if isinstance(value, list) else None
    if names is None or any(trust_domain_problem(name) is not None for name in names):
        problems.append("`trustDomainAliases` must be a list of trust domains")
        return None
    return tuple(names)


def _texts(values: list[object]) -> Iterator[str]:
    for value in values:
        yield value if isinstance(value, str) else ""


def _normalization(content: Mapping[str, object], problems: list[str]) -> PathNormalization | None:
    value = content.get("pathNormalization")
    if value is None:
        return None
    name = str(value.get("normalization", "DEFAULT")) if isinstance(value, dict) else ""
    if name not in _NORMALIZATIONS:
        problems.append(f"`pathNormalization.normalization` must be one of {', '.join(_NORMALIZATIONS)}")
        return None
    return _NORMALIZATIONS[name]
