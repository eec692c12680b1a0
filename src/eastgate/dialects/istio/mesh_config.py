"""The MeshConfig in force: from the ConfigMap `istio`, from an installation, or from Eastgate's settings.

The ConfigMap is in the namespace of the control plane, which is the root namespace unless the MeshConfig names another.
A revision has its own ConfigMap, `istio-<revision>`, which is in force if it is the only one. Without a ConfigMap, the
objects that install Istio are combined; a contradiction between two of them is an error. A setting of Eastgate that is
not at its default overrides all of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from typing import Final

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster import ConfigMap, World, dns_label_problem
from eastgate.dialects.istio.settings import IstioSettings, PathNormalization
from eastgate.ir import AuthorizerName, ExternalAuthorizer, ExternalProtocol
from eastgate.ir.spiffe import trust_domain_problem
from eastgate.reading.manifests import read_nodes_text
from eastgate.settings import Settings

# Extension providers: the external authorizers of CUSTOM policies, as the MeshConfig declares them


_KINDS: Final = {"envoyExtAuthzGrpc": ExternalProtocol.GRPC, "envoyExtAuthzHttp": ExternalProtocol.HTTP}
_HEADER_LISTS: Final = (
    "includeRequestHeadersInCheck",
    "includeHeadersInCheck",
    "headersToDownstreamOnDeny",
    "headersToDownstreamOnAllow",
    "headersToUpstreamOnAllow",
)
_SERVICE = regex(r"(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc(?:\..+)?")
_HOST = regex(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_STATUS = regex("[1-5][0-9]{2}")


@dataclass(frozen=True, slots=True)
class Provider:
    """An external authorizer, by its name in the mesh. `authorizer` is its name in answers."""

    name: str
    protocol: ExternalProtocol
    authorizer: str
    host: str
    fail_open: bool = False


def read_providers(written: object) -> Iterator[Provider]:
    """Yield the valid providers. A provider with errors, or with the name of another, is left out."""
    entries = [entry for entry in written if isinstance(entry, dict)] if isinstance(written, list) else []
    names = Counter(entry.get("name") for entry in entries if isinstance(entry.get("name"), str))
    for entry in entries:
        name = entry.get("name")
        kinds = [kind for kind in _KINDS if isinstance(entry.get(kind), dict)]
        if isinstance(name, str) and names[name] == 1 and dns_label_problem(name) is None and len(kinds) == 1:
            provider = _provider(name, _KINDS[kinds[0]], entry[kinds[0]])
            if provider is not None:
                yield provider


def _provider(name: str, protocol: ExternalProtocol, content: Mapping[str, object]) -> Provider | None:
    service, port = content.get("service"), _number(content.get("port"))
    if not isinstance(service, str) or port is None or not 1 <= port <= 65535:
        return None
    _, _, host = service.rpartition("/")
    prefix, fail_open = content.get("pathPrefix") or "/", content.get("failOpen") or False
    status = str(content.get("statusOnError") or "403")
    if not _HOST.fullmatch(host) or not str(prefix).startswith("/") or not isinstance(fail_open, bool):
        return None
    if not _STATUS.fullmatch(status) or any("*" in _list(content, field) for field in _HEADER_LISTS):
        return None
    return Provider(name, protocol, _authorizer(host, port, protocol, str(prefix)), host, fail_open)


def _number(value: object) -> int | None:
    """Return a number. In protobuf's JSON, it may also be written as a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _list(content: Mapping[str, object], field: str) -> list[object]:
    value = content.get(field)
    return value if isinstance(value, list) else []


def _authorizer(host: str, port: int, protocol: ExternalProtocol, prefix: str) -> str:
    """Return the name of an authorizer: a Service of the cluster, or else a host and its port."""
    service = _SERVICE.fullmatch(host)
    if service is None:
        return f"{host}:{port}"
    path = prefix if protocol is ExternalProtocol.HTTP and prefix != "/" else ""
    return AuthorizerName(ExternalAuthorizer(service["namespace"], service["service"], port, protocol, path))


# Trust domain aliases: a principal of one trust domain of the mesh matches that of all of them


_DEFAULT_TRUST_DOMAIN: Final = "cluster.local"  # represents all trust domains of the mesh
_SEGMENTS: Final = 5  # of <trust domain>/ns/<namespace>/sa/<name>


def replace_trust_domains(principals: Iterable[str], bundle: Sequence[str]) -> list[str]:
    """Return the principals with each trust domain of the mesh expanded to the trust domain and its aliases."""
    return [each for principal in principals for each in _replaced(principal, bundle)]


def _replaced(principal: str, bundle: Sequence[str]) -> Iterator[str]:
    domain, _, rest = principal.partition("/")
    is_enforced = principal.count("/") == _SEGMENTS - 1 and domain != "*"
    if not is_enforced or not (
        domain == _DEFAULT_TRUST_DOMAIN or any(_matches_domain(each, domain) for each in bundle)
    ):
        yield principal
        return
    yield from dict.fromkeys(principal if _is_suffix(each, domain) else f"{each}/{rest}" for each in bundle)


def _matches_domain(domain: str, pattern: str) -> bool:
    return domain == pattern or pattern == "*" or _is_suffix(domain, pattern) or _is_prefix(domain, pattern)


def _is_suffix(domain: str, pattern: str) -> bool:
    return pattern.startswith("*") and domain.endswith(pattern[1:])


def _is_prefix(domain: str, pattern: str) -> bool:
    return pattern.endswith("*") and domain.startswith(pattern[:-1])


def expand_trust_domains(domains: Iterable[str], bundle: Sequence[str]) -> list[str]:
    """Return trust domains, each one of the mesh expanded to all of the mesh."""
    return list(dict.fromkeys(each for domain in domains for each in (bundle if domain in bundle else (domain,))))


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
    """The parts of a MeshConfig that affect authorization. `trust_domains` are the trust domain and its aliases."""

    trust_domains: tuple[str, ...]
    path_normalization: PathNormalization
    providers: tuple[Provider, ...] = ()

    @property
    def trust_domain(self) -> str:
        """Return the trust domain of the mesh."""
        return self.trust_domains[0]

    def provider(self, name: str) -> Provider | None:
        """Return the valid extension provider with a name, or None."""
        return next((provider for provider in self.providers if provider.name == name), None)


@dataclass(frozen=True, slots=True)
class _MeshConfigFields:
    """The fields of a MeshConfig as they are written; None for a missing field."""

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
    """An object with a MeshConfig. `is_whole`: missing fields have their defaults, and no other object sets them."""

    kind: str
    name: str
    written: _MeshConfigFields
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
    """Return the ConfigMaps with a MeshConfig of a control plane: first the one in force, then those of revisions."""
    root = settings.section(IstioSettings).root_namespace
    for namespace in dict.fromkeys((root, IstioSettings().root_namespace)):
        own = world.config_maps.get(f"{namespace}/{CONFIG_MAP}")
        revisions = sorted(key for key in world.config_maps if key.startswith(f"{namespace}/{CONFIG_MAP}-"))
        others = [world.config_maps[key] for key in revisions if _KEY in world.config_maps[key].data]
        if own is not None or others:
            return [*([own] if own is not None else []), *others]
    return []


def contradicts(source: MeshSource, sources: Sequence[MeshSource], settings: Settings, world: World) -> bool:
    """Return whether a source contradicts the MeshConfig in force in a field that affects authorization."""
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


def _combined(sources: Sequence[MeshSource]) -> _MeshConfigFields:
    """Return the fields in force: those of the first source, or those of all installations combined."""
    if not sources or sources[0].is_whole:
        return sources[0].written if sources else _MeshConfigFields()
    return reduce(_merged, (source.written for source in sources))


def _merged(first: _MeshConfigFields, second: _MeshConfigFields) -> _MeshConfigFields:
    """Return the fields of both. If both have a field, the first one counts."""
    unsaid = {name: getattr(second, name) for name in _FIELDS if getattr(first, name) is None}
    return replace(first, **unsaid)


def _mesh_of(written: _MeshConfigFields, settings: Settings, world: World) -> MeshConfig:
    mesh = _in_force(written, settings.trust_domain, settings.section(IstioSettings))
    known = tuple(provider for provider in mesh.providers if not _is_short_name(provider.host, world))
    return mesh if known == mesh.providers else replace(mesh, providers=known)


def _is_short_name(host: str, world: World) -> bool:
    """Return whether a host is the short name of a Service. istiod does not find a Service by its short name."""
    service, dot, namespace = host.partition(".")
    return not dot or f"{namespace}/{service}" in world.services


def _in_force(written: _MeshConfigFields, trust_domain: str, settings: IstioSettings) -> MeshConfig:
    default = IstioSettings()
    domain = written.trust_domain if trust_domain == Settings().trust_domain else None
    aliases = written.aliases if settings.trust_domain_aliases == default.trust_domain_aliases else None
    chosen = written.path_normalization if settings.path_normalization is default.path_normalization else None
    bundle = (domain or trust_domain, *(settings.trust_domain_aliases if aliases is None else aliases))
    return MeshConfig(bundle, chosen or settings.path_normalization, written.providers or ())


@lru_cache(maxsize=64)
def _read(text: str, namespace: str | None = None) -> _MeshConfigFields:
    """Parse a MeshConfig, which is YAML. `namespace` is the root namespace if the text names none."""
    content, problem = _parsed(text)
    if problem is not None:
        return _MeshConfigFields(problems=(problem,))
    problems: list[str] = []
    domain, root = (_name(content, key, problems) for key in ("trustDomain", "rootNamespace"))
    return _MeshConfigFields(
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
        return {}, "it has several documents, but Istio reads only the first"
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
