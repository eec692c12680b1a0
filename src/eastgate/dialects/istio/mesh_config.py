"""The MeshConfig in force: what the ConfigMap `istio` or an installation says, and where it says nothing, settings.

It is in the namespace of the control plane, which is the root namespace unless it names another. A revision has one of
its own, `istio-<revision>`, which counts where it is the only one. Without a ConfigMap, the objects that install Istio
count together; what two of them say differently is an error. A setting that is not at its default counts more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import ConfigMap, World
from eastgate.dialects.istio.providers import Provider, read_providers
from eastgate.dialects.istio.settings import IstioSettings, PathNormalization
from eastgate.ir.spiffe import trust_domain_problem
from eastgate.reading.manifests import read_nodes_text
from eastgate.settings import Settings

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


@dataclass(frozen=True, slots=True)
class _Written:
    """What is written in a MeshConfig; None where it says nothing."""

    trust_domain: str | None = None
    aliases: tuple[str, ...] | None = None
    root_namespace: str | None = None
    path_normalization: PathNormalization | None = None
    providers: tuple[Provider, ...] | None = None
    problems: tuple[str, ...] = ()


_FIELDS: Final[Mapping[str, object]] = {
    "trust_domain": Settings().trust_domain,
    "aliases": (),
    "root_namespace": IstioSettings().root_namespace,
    "path_normalization": PathNormalization.BASE,
    "providers": (),
}
"""The fields of a MeshConfig that are read, with Istio's defaults."""


@dataclass(frozen=True, slots=True)
class MeshSource:
    """An object that holds a MeshConfig. `is_whole`: what it does not say is at its default, and not said elsewhere."""

    kind: str
    name: str
    written: _Written
    span: Span | None
    is_whole: bool

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def mesh_sources(settings: Settings, world: World) -> list[MeshSource]:
    """Return the sources of the MeshConfig: first those in force, then those of other revisions, and installations."""
    maps = (
        MeshSource("ConfigMap", each.key, _read(each.data.get(_KEY, "")), each.span, is_whole=True)
        for each in _config_maps(settings, world)
    )
    installed = (
        MeshSource(
            each.kind,
            each.key if each.namespace else each.name,
            _read(each.mesh, each.root_namespace),
            each.span,
            is_whole=False,
        )
        for _, each in sorted(world.installations.items())
        if each.mesh or each.root_namespace
    )
    return [*maps, *installed]


def _config_maps(settings: Settings, world: World) -> list[ConfigMap]:
    """Return the ConfigMaps with a MeshConfig of a control plane: first that in force, then those of revisions."""
    root = settings.section(IstioSettings).root_namespace
    for namespace in dict.fromkeys((root, IstioSettings().root_namespace)):
        own = world.config_maps.get(f"{namespace}/{CONFIG_MAP}")
        revisions = sorted(key for key in world.config_maps if key.startswith(f"{namespace}/{CONFIG_MAP}-"))
        others = [world.config_maps[key] for key in revisions if _KEY in world.config_maps[key].data]
        if own is not None or others:
            return [*([own] if own is not None else []), *others]
    return []


def says_otherwise(source: MeshSource, sources: Sequence[MeshSource], settings: Settings, world: World) -> bool:
    """Return whether a source contradicts what is in force, as far as it matters to authorization."""
    if source.written.problems:
        return True
    in_force, written = _combined(sources), source.written
    if source.is_whole:
        return _mesh_of(written, settings, world) != _mesh_of(in_force, settings, world)
    return any(
        (said := getattr(written, name)) is not None and said != (getattr(in_force, name) or default)
        for name, default in _FIELDS.items()
    )


def mesh_settings(settings: Settings, world: World) -> MeshConfig:
    """Return the MeshConfig in force."""
    return _mesh_of(_combined(mesh_sources(settings, world)), settings, world)


def _combined(sources: Sequence[MeshSource]) -> _Written:
    """Return what is in force: what the first source says, or what installations say together."""
    if not sources or sources[0].is_whole:
        return sources[0].written if sources else _Written()
    return reduce(_over, (source.written for source in sources))


def _over(first: _Written, second: _Written) -> _Written:
    """Return what either says, and the first where both do."""
    unsaid = {name: getattr(second, name) for name in _FIELDS if getattr(first, name) is None}
    return replace(first, **unsaid)


def _mesh_of(written: _Written, settings: Settings, world: World) -> MeshConfig:
    mesh = _in_force(written, settings.trust_domain, settings.section(IstioSettings))
    known = tuple(provider for provider in mesh.providers if not _is_short(provider.host, world))
    return mesh if known == mesh.providers else replace(mesh, providers=known)


def _is_short(host: str, world: World) -> bool:
    """Return whether a host is the short name of a Service, by which istiod finds none."""
    service, dot, namespace = host.partition(".")
    return not dot or f"{namespace}/{service}" in world.services


def _in_force(written: _Written, trust_domain: str, settings: IstioSettings) -> MeshConfig:
    default = IstioSettings()
    domain = written.trust_domain if trust_domain == Settings().trust_domain else None
    aliases = written.aliases if settings.trust_domain_aliases == default.trust_domain_aliases else None
    chosen = written.path_normalization if settings.path_normalization is default.path_normalization else None
    bundle = (domain or trust_domain, *(settings.trust_domain_aliases if aliases is None else aliases))
    return MeshConfig(bundle, chosen or settings.path_normalization, written.providers or ())


@lru_cache(maxsize=64)
def _read(text: str, namespace: str | None = None) -> _Written:
    """Read the text of a MeshConfig, which is YAML. `namespace` is the root namespace where it names none."""
    content, problem = _parsed(text)
    if problem is not None:
        return _Written(problems=(problem,))
    problems: list[str] = []
    domain, root = (_name(content, key, problems) for key in ("trustDomain", "rootNamespace"))
    return _Written(
        domain,
        _aliases(content, problems),
        root or namespace,
        _normalization(content, problems),
        tuple(read_providers(providers)) if (providers := content.get("extensionProviders")) is not None else None,
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
