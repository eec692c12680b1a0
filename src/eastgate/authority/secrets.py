"""Secrets with invalid data: they decide only if a policy reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eastgate.authority.faults import Fault, FaultReason
from eastgate.authority.sources.needs import SELECTING, needed_by
from eastgate.basics.diagnostics import Diagnostic
from eastgate.cluster import Selector
from eastgate.cluster.codes import BAD_SECRET
from eastgate.cluster.unread.codes import IDLE_SECRET
from eastgate.cluster.unread.locating import selector_in
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import content_of

if TYPE_CHECKING:
    from eastgate.authority.reading import Manifests


def settle_secrets(manifests: Manifests) -> None:
    """Make the policies that read a Secret with invalid data close their targets. No other object needs the Secret."""
    secrets = [fault for fault in manifests.faults if _has_bad_data(fault)]
    for fault in secrets:
        fault.reason = FaultReason.LEFT_OUT
        documents = {policy: manifests.document_of(policy) for policy in manifests.policies}
        readers = [policy for policy, each in documents.items() if each is not None and _reads(each, fault.document)]
        broken = [each for each in manifests.closing if _reads(each.document, fault.document)]
        for error in fault.errors:
            for policy in readers:
                manifests.reject(policy, error)
            for each in broken:
                each.errors.append(error)
        if not readers and not broken:
            manifests.reporter.diagnostics[:] = [
                _as_idle(each) if any(each is error for error in fault.errors) else each for each in manifests.reporter
            ]


def _has_bad_data(fault: Fault) -> bool:
    return bool(fault.errors) and all(error.code is BAD_SECRET for error in fault.errors)


def _as_idle(error: Diagnostic) -> Diagnostic:
    """Return the finding that replaces the error of a Secret that no policy reads."""
    return Diagnostic(IDLE_SECRET, error.message, error.span, error.help)


def _reads(policy: Document, secret: Document) -> bool:
    """Return whether a policy names or selects a Secret, in any namespace in which it looks for Secrets."""
    content = content_of(policy)
    spec = content.get("spec") if isinstance(content, dict) else None
    if any((each.kind, each.name) == ("Secret", secret.name) for each in needed_by(spec, policy.home)):
        return True
    labels = _labels(secret)
    return any(selector is None or selector.matches(labels) for selector in _selectors(spec))


def _selectors(value: object) -> Iterator[Selector | None]:
    """Yield the label selectors of Secrets; None for a selector that cannot be read."""
    for item in value if isinstance(value, list) else ():
        yield from _selectors(item)
    for key, inner in value.items() if isinstance(value, dict) else ():
        if key in SELECTING and isinstance(inner, dict):
            yield selector_in(inner, "selector")
        yield from _selectors(inner)


def _labels(secret: Document) -> dict[str, str]:
    content = content_of(secret)
    metadata = content.get("metadata") if isinstance(content, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return {key: str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}
