"""Suppressions of findings, each with a code and a reason: an annotation, a comment, or an entry of eastgate.yaml.

metadata:
  annotations:
    eastgate.dev/lint-ignore: "EG6003: the operator opens the port; EG6040: closed until the launch"
spec:
  # eastgate: ignore EG6003 because the operator opens the port
  rules: [..]

An annotation is about its object, a comment about the line or block that it is beside or above.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache

from eastgate.authority.config import LintIgnore
from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster.gateways import BACKEND_KINDS
from eastgate.dialects.linting import Finding, codes, locating
from eastgate.reports.lint.inventory import PolicyInventory, lint_codes

ANNOTATION = "eastgate.dev/lint-ignore"

_COMMENT = regex(r"#\s*eastgate:\s*ignore\b(?P<rest>.*)")
_IGNORED = regex(r"\s*(EG\d{4}(?:\s*,\s*EG\d{4})*)\s*(?:because\b|:)\s*\S.*")
_ENTRY = regex(r"\s*(EG\d{4})\s*:\s*(\S.*?)\s*", re.DOTALL)


@dataclass(slots=True)
class _Suppression:
    """A suppression. `within` are the lines that it covers; `pattern` is the file pattern of an entry of
    eastgate.yaml.
    """

    code: str
    within: Span | None
    span: Span
    keys: frozenset[str] = frozenset()
    pattern: str | None = None
    used: bool = False

    def is_about(self, finding: Finding) -> bool:
        """Return whether a finding has the same object, or some of the same lines."""
        if self.keys & set(finding.subjects):
            return True
        if self.pattern is not None:
            return any(fnmatchcase(subject, self.pattern) for subject in finding.subjects)
        span, within = finding.span, self.within
        if span is None or within is None:
            return False
        return span.source is within.source and span.line <= within.end_line and within.line <= span.end_line


@dataclass(slots=True)
class _Annotations:
    """The suppressions in annotations, and their errors."""

    suppressions: list[_Suppression] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def drop_suppressed(
    findings: Iterable[Finding], inventory: PolicyInventory, ignores: Iterable[LintIgnore] = ()
) -> Iterator[Finding]:
    """Remove suppressed findings, and add findings for wrong suppressions."""
    annotations = _Annotations()
    documents: dict[SourceText, list[Span]] = {}
    for document, keys in _documents(inventory):
        _read(document, keys, annotations)
        documents.setdefault(document.source, []).append(document)
    for source, spans in documents.items():
        _read_comments(source, spans, annotations)
    for ignore in ignores:
        suppression = _Suppression(ignore.code, None, ignore.span, pattern=ignore.object)
        annotations.suppressions.append(suppression)
    for finding in findings:
        if not _is_suppressed(finding, annotations.suppressions, inventory):
            yield finding
    yield from annotations.findings
    for suppression in annotations.suppressions:
        if not suppression.used:
            yield _unused(suppression)


def _is_suppressed(finding: Finding, suppressions: list[_Suppression], inventory: PolicyInventory) -> bool:
    """Return whether a finding is suppressed: by its policy, by its object, or by all of its workloads."""
    matching = [item for item in suppressions if item.code == finding.code.id and item.is_about(finding)]
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


def _documents(inventory: PolicyInventory) -> Iterator[tuple[Span, frozenset[str]]]:
    """List the policies and objects whose file mentions the annotation, with their keys."""
    for policy in inventory.policies:
        if _may_be_suppressed(policy.span):
            yield policy.span, frozenset({str(policy.ref)})
    for identity, declared in inventory.world.objects.items():
        if declared.span is not None and _may_be_suppressed(declared.span):
            key = f"{identity.namespace}/{identity.name}"
            plain = {key, f"{key} ({identity.kind})"} if identity.group in ("", "apps", "batch") else set()
            if identity.kind in ("Service", "ServiceAccount", "Secret", "Namespace"):
                plain = set()
            yield declared.span, frozenset({str(identity), *_backend(identity.kind, key), *plain})


def _may_be_suppressed(document: Span) -> bool:
    """Return whether the file of a document has a suppression. For a built document, the file is read last."""
    if document.built is not None and not any(map(_is_mentioned, document.built.source.near(document.built.line))):
        return False
    return _is_mentioned(document.source)


@lru_cache(maxsize=4096)
def _is_mentioned(source: SourceText) -> bool:
    """Return whether a file has any suppression. There are far fewer files than objects."""
    return ANNOTATION in source.text or _COMMENT.search(source.text) is not None


def _backend(kind: str, key: str) -> tuple[str, ...]:
    """Return the key that Backends of all kinds share, because policies treat them as one."""
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
            message = f"`{entry.strip()}` is not a suppression: it has no code, or no reason"
            help_ = 'write the code and why: "EG6003: the operator opens the port"'
            into.findings.append(Finding(codes.NO_REASON, message, node.span, help_, tuple(sorted(keys))))
        else:
            into.suppressions.append(_Suppression(match[1], document, node.span, keys))


# Comments


def _read_comments(source: SourceText, documents: Sequence[Span], into: _Annotations) -> None:
    lines = source.text.splitlines() if not source.is_object else []
    for number, line in enumerate(lines, 1):
        comment = _COMMENT.search(line)
        if comment is None:
            continue
        span = Span(source, number, comment.start() + 1, number, len(line) + 1)
        codes_and_reason = _IGNORED.fullmatch(comment["rest"])
        if codes_and_reason is None:
            message = "this comment ignores nothing: it has no code, or no reason"
            help_ = "write the code and why: # eastgate: ignore EG6003 because the operator opens the port"
            into.findings.append(Finding(codes.NO_REASON, message, span, help_, (source.name,)))
            continue
        within = _block(source, lines, number if line[: comment.start()].strip() else number + 1, documents)
        for code in codes_and_reason[1].split(","):
            into.suppressions.append(_Suppression(code.strip(), within, span))


def _block(source: SourceText, lines: Sequence[str], first: int, documents: Sequence[Span]) -> Span:
    """Return the lines that a comment covers: its line with all that is indented below, or its document."""
    while first < len(lines) and (not lines[first - 1].strip() or lines[first - 1].lstrip().startswith(("#", "---"))):
        first += 1
    document = next((span for span in documents if span.line == first), None)
    if document is not None:
        return document
    last, opening = first, lines[first - 1] if first <= len(lines) else ""
    while last < len(lines) and _is_under(lines[last], opening):
        last += 1
    return Span(source, first, 1, last, 1)


def _is_under(line: str, opening: str) -> bool:
    """Return whether a line belongs to the line that opens its block: it is indented more, or an item of its list."""
    own, outer = (len(text) - len(text.lstrip()) for text in (line, opening))
    is_item = line.lstrip().startswith("- ") and not opening.lstrip().startswith("- ")
    return not line.strip() or own > outer or (own == outer and is_item)


def _unused(suppression: _Suppression) -> Finding:
    all_codes = lint_codes()
    near = did_you_mean(suppression.code, all_codes) if suppression.code not in all_codes else None
    message = f"there is no finding {suppression.code} here to suppress"
    help_ = f"did you mean {near}?" if near else "remove it"
    subjects = tuple(sorted(suppression.keys)) or (suppression.span.file,)
    return Finding(codes.SUPPRESSES_NOTHING, message, suppression.span, help_, subjects)
