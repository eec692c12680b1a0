"""Suppressions: an annotation on the object that a finding is about, with the code and the reason.

metadata:
  annotations:
    eastgate.dev/lint-ignore: "EG6003: the operator opens the port; EG6040: closed until the launch"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from functools import lru_cache

from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.diagnostics import did_you_mean
from eastgate.diagnostics.spans import SourceText, Span
from eastgate.dialects.linting import Finding, codes, locating
from eastgate.records import dataclass
from eastgate.regexes import regex
from eastgate.reports.lint.hooks import lint_codes
from eastgate.reports.lint.inventory import PolicyInventory

__all__ = ["ANNOTATION", "drop_suppressed"]

ANNOTATION = "eastgate.dev/lint-ignore"

_ENTRY = regex(r"\s*(EG\d{4})\s*:\s*(\S.*?)\s*", re.DOTALL)


@dataclass(slots=True)
class _Suppression:
    code: str
    document: Span
    span: Span
    keys: frozenset[str]
    used: bool = False


@dataclass(slots=True)
class _Annotations:
    """The suppressions that annotations hold, and what is wrong with them."""

    suppressions: list[_Suppression] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def drop_suppressed(findings: Iterable[Finding], inventory: PolicyInventory) -> Iterator[Finding]:
    """Leave out the findings that are suppressed, and add what is wrong with suppressions."""
    annotations = _Annotations()
    for document, keys in _documents(inventory):
        _read(document, keys, annotations)
    for finding in findings:
        if not _is_suppressed(finding, annotations.suppressions, inventory):
            yield finding
    yield from annotations.findings
    for suppression in annotations.suppressions:
        if not suppression.used:
            yield _unused(suppression)


def _is_suppressed(finding: Finding, suppressions: list[_Suppression], inventory: PolicyInventory) -> bool:
    """Return whether a finding is suppressed: by a policy or an object alone, or by all of its workloads."""
    matching = [item for item in suppressions if item.code == finding.code.id and _is_about(finding, item)]
    if not matching:
        return False
    workloads = {subject for subject in finding.subjects if subject in inventory.world.workloads}
    alone = [suppression for suppression in matching if not suppression.keys & workloads]
    together = frozenset[str]().union(*(suppression.keys for suppression in matching))
    if not alone and not workloads <= together:
        return False
    for suppression in alone or matching:
        suppression.used = True
    return True


def _is_about(finding: Finding, suppression: _Suppression) -> bool:
    if suppression.keys & set(finding.subjects):
        return True
    span, document = finding.span, suppression.document
    return span is not None and span.source is document.source and document.line <= span.line <= document.end_line


def _documents(inventory: PolicyInventory) -> Iterator[tuple[Span, frozenset[str]]]:
    """List the policies and objects whose file mentions the annotation, and the keys that they go by."""
    for policy in inventory.policies:
        if _is_mentioned(policy.span.source):
            yield policy.span, frozenset({str(policy.ref)})
    for identity, declared in inventory.world.objects.items():
        if declared.span is not None and _is_mentioned(declared.span.source):
            key = f"{identity.namespace}/{identity.name}"
            plain = {key, f"{key} ({identity.kind})"} if identity.group in ("", "apps", "batch") else set()
            if identity.kind in ("Service", "ServiceAccount", "Secret", "Namespace"):
                plain = set()
            yield declared.span, frozenset({str(identity), *_backend(identity.kind, key), *plain})


@lru_cache(maxsize=4096)
def _is_mentioned(source: SourceText) -> bool:
    """Return whether the annotation is anywhere in a file; there are far fewer files than objects."""
    return ANNOTATION in source.text


def _backend(kind: str, key: str) -> tuple[str, ...]:
    """Return the key that Backends of all kinds share, since they are enforced as one."""
    return (f"Backend/{key}",) if kind in BACKEND_KINDS else ()


def _read(document: Span, keys: frozenset[str], into: _Annotations) -> None:
    metadata = locating.root_of(document).nearest("metadata")
    annotations = metadata.get("annotations")
    node = annotations.get(ANNOTATION) if annotations is not None else None
    if node is None or not isinstance(node.value, str):
        return
    for entry in re.split(r"[;\n]", node.value):
        if not entry.strip():
            continue
        match = _ENTRY.fullmatch(entry)
        if match is None:
            message = f"`{entry.strip()}` is no suppression: it has no code, or no reason"
            help_ = 'write the code and why: "EG6003: the operator opens the port"'
            into.findings.append(Finding(codes.NO_REASON, message, node.span, help_, tuple(sorted(keys))))
        else:
            into.suppressions.append(_Suppression(match[1], document, node.span, keys))


def _unused(suppression: _Suppression) -> Finding:
    all_codes = lint_codes()
    near = did_you_mean(suppression.code, all_codes) if suppression.code not in all_codes else None
    message = f"there is no finding {suppression.code} here to suppress"
    help_ = f"did you mean {near}?" if near else "remove it"
    return Finding(codes.SUPPRESSES_NOTHING, message, suppression.span, help_, tuple(sorted(suppression.keys)))
