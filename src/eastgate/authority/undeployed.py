"""Policies and workloads of a repository that none of its environments has.

A policy beside a kustomization that does not name it may be applied by hand. It does not decide, and an answer that it
could turn into a deny says so.
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

_NOTE: Final = "no environment has it"
_MOST_NAMED = 3  # objects of one file


def undeployed_policies(documents: Iterable[Document], settings: Settings) -> Iterator[Unread]:
    """Yield the policies among documents, as objects that no answer considers."""
    for document in documents:
        kind = dialects.unread(document)
        if kind is not None:
            unread = unread_object(kind, document)
            yield replace(unread, kind=_kind(document, kind.plane, kind.target_field))
        elif dialects.is_policy(document):
            yield Unread(*_read_policy(document, settings), document)


def _read_policy(document: Document, settings: Settings) -> tuple[UnreadKind, UnreadTargets]:
    registry, content = dialects.registered(), content_of(document)
    targets = dialects.reject(document, [], settings).targets
    is_network = (document.group, document.kind) in registry.network_kinds
    is_of_callers = isinstance(content, dict) and registry.is_about_callers(document.group, document.kind, content)
    plane = EnforcementPlane.NETWORK if is_network else EnforcementPlane.MESH
    kind = _kind(document, plane, TargetField.POD_SELECTOR)
    return kind, UnreadTargets(targets, targets if is_of_callers else ())


def _kind(document: Document, plane: EnforcementPlane, field: TargetField) -> UnreadKind:
    return UnreadKind(document.group, document.kind, UnreadEffect.DENY, plane, field, _NOTE, is_deployed=False)


def diagnose_undeployed(documents: Iterable[Document]) -> Iterator[Diagnostic]:
    """Yield a finding for each file with such objects."""
    files: dict[str, list[Document]] = {}
    for document in documents:
        files.setdefault(document.span.file, []).append(document)
    for several in files.values():
        named = ", ".join(printable(described(each)) for each in several[:_MOST_NAMED])
        more = f" and {len(several) - _MOST_NAMED} more" if len(several) > _MOST_NAMED else ""
        help_ = "name it in a kustomization, or leave it out: --exclude, or a line in .eastgateignore"
        yield Diagnostic(
            NOT_DEPLOYED, f"no environment has {named}{more}", several[0].locate("metadata", "name"), help_
        )
