"""Policies and workloads of a repository that belong to none of its environments.

A user may apply a policy by hand that lies beside a kustomization and is not in it. Such a policy does not decide. An
answer that it could turn into a deny tells so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from eastgate import dialects
from eastgate.authority.faults import described
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.cluster.unread import (
    EnforcementPlane,
    TargetField,
    Unread,
    UnreadEffect,
    UnreadKind,
    UnreadTargets,
    unread_object,
)
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.codes import NOT_DEPLOYED
from eastgate.reading.manifests.document import content_of
from eastgate.settings import Settings

_UNDEPLOYED_NOTE: Final = "no environment has it"
_MAX_NAMES = 3  # objects of one file


def undeployed_policies(documents: Iterable[Document], settings: Settings) -> Iterator[Unread]:
    """Yield the policies among documents, as unread objects."""
    network = dialects.registered().network_kinds
    for document in documents:
        known = dialects.unread(document)
        if known is not None:
            unread = unread_object(known, document)
            yield replace(unread, kind=_kind(document, known.plane, known.target_field))
        elif (document.group, document.kind) in network:
            field = TargetField.SUBJECT if _has_subject(document) else TargetField.POD_SELECTOR
            yield unread_object(_kind(document, EnforcementPlane.NETWORK, field), document)
        elif dialects.is_policy(document):
            targets = UnreadTargets(dialects.reject(document, [], settings).targets)
            yield Unread(_kind(document, EnforcementPlane.MESH, TargetField.NAMESPACE), targets, document)


def _has_subject(document: Document) -> bool:
    content = content_of(document)
    spec = content.get("spec") if isinstance(content, dict) else None
    return isinstance(spec, dict) and "subject" in spec


def _kind(document: Document, plane: EnforcementPlane, field: TargetField) -> UnreadKind:
    return UnreadKind(
        document.group, document.kind, UnreadEffect.DENY, plane, field, _UNDEPLOYED_NOTE, is_deployed=False
    )


def diagnose_undeployed(documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """Yield a finding for each file with such objects."""
    files: dict[str, list[Document]] = {}
    for document in documents:
        if not _is_patch(document):
            files.setdefault(document.span.file, []).append(document)
    for several in files.values():
        named = ", ".join(printable(described(each)) for each in several[:_MAX_NAMES])
        more = f" and {len(several) - _MAX_NAMES} more" if len(several) > _MAX_NAMES else ""
        help_ = "name it in a kustomization, or leave it out: --exclude, or a line in .eastgateignore"
        yield Diagnostic(
            NOT_DEPLOYED, f"no environment has {named}{more}", several[0].locate("metadata", "name"), help_
        )


def _is_patch(document: Document) -> bool:
    """Return whether a workload lacks its mandatory selector, as a patch of a workload does."""
    content = content_of(document)
    spec = content.get("spec") if isinstance(content, dict) else None
    return document.group == "apps" and not (isinstance(spec, dict) and "selector" in spec)
