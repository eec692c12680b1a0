"""Verifies a conversion: compares the original and the converted policies for all requests.

Unconverted policies and all objects that are no policies are part of both sides. Some differences are not compared:

- If policies come to Linkerd or leave it, Linkerd's default policy counts only on the side with Linkerd.
- The proxies decide about paths with unusual spellings.
- Workloads without a policy are outside of the conversion.
- A side with policies of Istio is read as Eastgate's proxies enforce it, before every workload. Differences of Istio's
  own proxies are not compared. The other side is then read in the same way, so that unconverted policies mean the same
  on both sides. The exception: only one side has policies of Linkerd.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from eastgate import dialects
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import ManifestError, Manifests, sort_documents
from eastgate.basics.diagnostics import Reporter
from eastgate.cluster.unread import Handling
from eastgate.convert.asking import AskingAuthority, SchemeNames
from eastgate.convert.assuming import assume
from eastgate.convert.host_proof import compare_hosts
from eastgate.convert.model import Options
from eastgate.convert.run import Conversion
from eastgate.dialects import istio, linkerd
from eastgate.dialects.kuadrant import authconfigs, policies, proposal
from eastgate.reach.comparison import AuthorityComparison
from eastgate.reach.differences import compare
from eastgate.reading.manifests import Document, Plain, read_text
from eastgate.reading.manifests.document import content_of
from eastgate.settings import Settings

_DEFAULTS = frozenset(
    {"config.linkerd.io/default-inbound-policy", "config.linkerd.io/proxy-require-identity-inbound-ports"}
)
_NO_DEFAULT = {"linkerdDefaultPolicy": "all-unauthenticated"}


def can_verify(conversion: Conversion) -> bool:
    """Return whether Eastgate reads all kinds of the result. Otherwise nothing can be proven."""
    read = {(kind.group, kind.version, kind.kind) for dialect in dialects.DIALECTS for kind in dialect.kinds}
    return all(_type_of(manifest) in read for manifest in conversion.manifests)


def verify(
    manifests: Manifests,
    documents: Sequence[Document],
    conversion: Conversion,
    settings: Settings,
    options: Options | None = None,
) -> AuthorityComparison:
    """Compare the input with the result. Raises ManifestError if the result has errors."""
    options = options or Options()
    converted = {id(manifests.document_of(policy)) for policy in manifests.policies}
    kept = {id(document) for document in conversion.kept}
    left = [content_of(document) for document in documents if id(document) not in converted or id(document) in kept]
    was = any(_is_linkerd(_type_of(content_of(document))) for document in documents if id(document) in converted)
    written = [*conversion.manifests, *(content_of(document) for document in conversion.kept)]
    becomes = any(_is_linkerd(_type_of(manifest)) for manifest in written)
    has_istio = any(_is_istio(_type_of(content_of(document))) for document in documents)
    gets_istio = any(_is_istio(_type_of(manifest)) for manifest in (*left, *conversion.manifests))
    enforced = _enforced(settings, options)
    alike = was == becomes and (has_istio or gets_istio)
    old_settings, new_settings = (enforced if alike or own else settings for own in (has_istio, gets_istio))
    read = sort_documents(documents, old_settings if was or not becomes else _open(old_settings), Reporter())
    names = SchemeNames()
    old = _asking(read, names)
    if was and not becomes:
        new_settings, left = _open(new_settings), [_without_default(manifest) for manifest in left]
    new = _asking(_manifests([*left, *conversion.manifests], new_settings), names)
    if was == becomes:
        comparison = compare(old, new, spellings=not (was or has_istio or gets_istio), handshakes=False)
    else:
        side = new if was else old
        targeted = {key for key in side.world.workloads if programs_of(side).attached(key)}
        comparison = compare(old, new, targeted, spellings=False)
    return assume(compare_hosts(comparison), options.assumed, settings.trust_domain)


def _enforced(settings: Settings, options: Options) -> Settings:
    """Return the settings for a side that is read as Eastgate's proxies enforce it."""
    root = options.istio_root_namespace
    return Settings.from_mapping({"rootNamespace": root} if root is not None else {}, settings.enforced())


def _asking(manifests: Manifests, names: SchemeNames) -> Authority:
    """Return an authority. If the manifests have auth schemes, these are normalized for comparison."""
    kinds = (proposal.Policy, policies.Policy, authconfigs.Policy)
    if any(isinstance(policy, kinds) for policy in manifests.policies):
        return AskingAuthority(manifests, names)
    return Authority(manifests, unread=Handling.IGNORE)


def _manifests(objects: Iterable[Plain], settings: Settings) -> Manifests:
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    reading = read_text("converted.json", content, positioned=dialects.reads, namespace=settings.namespace)
    manifests = sort_documents(reading.documents, settings, reading.reporter, reading.twice)
    if manifests.reporter.errors:
        raise ManifestError(manifests.reporter.errors)
    return manifests


def _open(settings: Settings) -> Settings:
    return Settings.from_mapping(_NO_DEFAULT, settings)


def _type_of(manifest: Plain) -> tuple[str, str, str]:
    assert isinstance(manifest, dict)  # noqa: S101 - an object is a mapping
    group, _, version = str(manifest.get("apiVersion")).rpartition("/")
    return group, version, str(manifest.get("kind"))


def _is_linkerd(kind: tuple[str, str, str]) -> bool:
    return kind in {(own.group, own.version, own.kind) for own in linkerd.DIALECT.kinds}


def _is_istio(kind: tuple[str, str, str]) -> bool:
    return kind in {(own.group, own.version, own.kind) for own in istio.DIALECT.kinds}


def _without_default(manifest: Plain) -> Plain:
    """Return an object and its pod template without the annotation that only Linkerd reads."""
    if isinstance(manifest, dict):
        return {key: _without_default(value) for key, value in manifest.items() if key not in _DEFAULTS}
    return [_without_default(part) for part in manifest] if isinstance(manifest, list) else manifest
