"""The input and the result of a converter.

A policy is either converted, perhaps to a narrower one, or kept unchanged and in force. The kept and the converted
policies together never allow more than the original policies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass
from eastgate.cluster import World
from eastgate.dialects import Policy
from eastgate.dialects.istio.settings import IstioSettings
from eastgate.reading.manifests import Document, Plain
from eastgate.settings import Settings

Manifest = dict[str, Plain]

CONVERTED_FROM = "eastgate.dev/converted-from"
_MAX_NAME_LENGTH = 253
_KEPT_METADATA = ("labels", "annotations")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # it would restore the old form


class Assumption(StrEnum):
    """A fact about the mesh that no manifest shows and that the user states."""

    ISTIO_IDENTITIES = "istio-identities"  # there are no identities below that of a service account
    ISTIO_TRUST_DOMAIN = "istio-trust-domain"  # there are no identities of other trust domains
    ISTIO_PATHS = "istio-paths"  # the mesh normalizes paths, merges slashes and refuses encoded ones
    ISTIO_HOSTS = "istio-hosts"  # gateways strip the port of the Host header
    MCP_BASE_PROTOCOL = "mcp-base-protocol"  # no MCP server has completion/*, logging/* and server/discover


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a conversion."""

    assumed: frozenset[Assumption] = frozenset()
    istio_root_namespace: str | None = None  # default: that of the settings
    stands_alone: bool = False  # each result is correct without the results of other policies


@dataclass(frozen=True, slots=True)
class Item:
    """A policy, and the document that it was read from."""

    policy: Policy
    document: Document


@dataclass(frozen=True, slots=True)
class Written:
    """A manifest of the result, the document that it was converted from, and other documents that it contains."""

    manifest: Manifest
    document: Document
    others: tuple[Document, ...] = ()

    def __repr__(self) -> str:
        return brief(self, f"{self.manifest['kind']} from {self.document!r}")


@dataclass(slots=True)
class Job:
    """One run of a converter: the input, and the result so far."""

    settings: Settings
    world: World
    options: Options = field(default_factory=Options)
    items: Sequence[Item] = ()
    written: list[Written] = field(default_factory=list)
    losses: list[Diagnostic] = field(default_factory=list)
    kept: list[Document] = field(default_factory=list)
    _names: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def istio_root_namespace(self) -> str:
        """Return the namespace whose policies apply to the whole mesh."""
        return self.options.istio_root_namespace or self.settings.section(IstioSettings).root_namespace

    def assumes(self, assumption: Assumption) -> bool:
        """Return whether the user stated an assumption."""
        return assumption in self.options.assumed

    def lose(self, code: Code, message: str, span: Span | None, *, help: str | None = None) -> None:  # noqa: A002
        """Report that the target API cannot express something, so that the result is narrower."""
        loss = Diagnostic(code, message, span, help)
        if loss not in self.losses:
            self.losses.append(loss)

    def keep(
        self,
        document: Document,
        code: Code,
        message: str,
        span: Span | None,
        *,
        help: str | None = None,  # noqa: A002
    ) -> None:
        """Keep a policy unconverted, so that it must stay in force."""
        self.lose(code, message, span, help=help)
        if document not in self.kept:
            self.kept.append(document)

    def write(self, document: Document, manifest: Manifest, others: Sequence[Document] = ()) -> None:
        """Add a manifest to the result."""
        self.written.append(Written(manifest, document, tuple(others)))

    def reserve(self, kind: str, namespace: str, name: str) -> None:
        """Reserve a name that an unconverted object has."""
        self._names.add((kind, namespace, name))

    def name(self, kind: str, namespace: str, wanted: str) -> str:
        """Return an unused name that is as similar to the wanted one as possible."""
        if len(wanted) > _MAX_NAME_LENGTH:
            wanted = f"{wanted[:240].rstrip('.-')}-{hashlib.sha256(wanted.encode()).hexdigest()[:10]}"
        name, number = wanted, 1
        while (kind, namespace, name) in self._names:
            number += 1
            name = f"{wanted}-{number}"
        self._names.add((kind, namespace, name))
        return name


def origin_of(document: Document) -> str:
    """Return the source of a manifest, for its annotation."""
    return f"{document.api_version} {document.kind} {document.namespace or 'default'}/{document.name}"


def metadata_of(
    document: Document, name: str, namespace: str | None = None, annotations: dict[str, str] | None = None
) -> Manifest:
    """Return name, namespace, labels and annotations, without the metadata that an API server adds."""
    metadata: Manifest = {"name": name}
    chosen = namespace if namespace is not None else document.namespace
    if chosen is not None:
        metadata["namespace"] = chosen
    original = _original_metadata(document)
    for key in _KEPT_METADATA:
        entries = original.get(key)
        if isinstance(entries, dict) and entries:
            metadata[key] = {name: value for name, value in entries.items() if name != _LAST_APPLIED}
    noted = metadata.get("annotations")
    metadata["annotations"] = {
        **(noted if isinstance(noted, dict) else {}),
        CONVERTED_FROM: origin_of(document),
        **(annotations or {}),
    }
    return metadata


def _original_metadata(document: Document) -> Manifest:
    node = document.node.get("metadata") if document.node is not None else None
    plain = node.plain() if node is not None else {}
    return plain if isinstance(plain, dict) else {}


def without_status(document: Document) -> Manifest:
    """Return a document that has the target form already, without its status."""
    plain = document.node.plain() if document.node is not None else dict(document.data or {})
    assert isinstance(plain, dict)  # noqa: S101 - an object is a mapping
    return {key: value for key, value in plain.items() if key != "status"}
