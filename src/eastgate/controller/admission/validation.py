"""Validates an object by itself, with the readers for files and for the cluster.

Errors refuse a policy, and are warnings for any other object. A `JudgeChange` does the checks that need the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from eastgate import dialects
from eastgate.authority.authority import Authority
from eastgate.authority.reading import Manifests
from eastgate.authority.sources.sizes import is_measured, policy_problem, size_of
from eastgate.basics.diagnostics import Diagnostic, Severity
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster import uses
from eastgate.cluster.unread import Handling
from eastgate.controller.admission.changes import AdmissionJudgement, AdmissionRefusal, RequestedChange, stored_form
from eastgate.controller.admission.conversion.objects import original_in
from eastgate.dialects.linting import Finding
from eastgate.reading.manifests import Document, Node, read_text
from eastgate.reading.manifests.document import origin_of
from eastgate.reports.lint.inventory import own_checks
from eastgate.reports.lint.rules import find_impossible_rules
from eastgate.reports.lint.run import CheckContext
from eastgate.reports.lint.suppression import drop_suppressed
from eastgate.settings import Settings

# Fields in place of lines: the field that a diagnostic is about, as the API server writes it.


_PLAIN_KEY = regex(r"[A-Za-z_][A-Za-z0-9_-]*")


def root_of(document: Document) -> Node:
    """Return the content of a document with positions."""
    if document.node is not None:
        return document.node
    origin = origin_of(document)
    return origin if isinstance(origin, Node) else origin.node()


def field_at(root: Node, span: Span | None) -> str | None:
    """Return the path of the innermost field in which a span begins, such as `spec.rules[0].paths`, or None."""
    if span is None:
        return None
    path, node = "", root
    while (step := _step(node, (span.line, span.column))) is not None:
        key, inner = step
        path = f"{path}{_suffix(key, is_first=not path)}"
        if inner is None:
            break
        node = inner
    return path or None


def _step(node: Node, begin: tuple[int, int]) -> tuple[str | int, Node | None] | None:
    """Return the key or index at a position, and its value; no value if the position is in the key."""
    for key, value in node.items():
        if key in node.keys and _holds(node.keys[key], begin):
            return key, None
        if _holds(value, begin):
            return key, value
    for index, value in enumerate(node):
        if _holds(value, begin):
            return index, value
    return None


def _holds(node: Node, begin: tuple[int, int]) -> bool:
    return (node.line, node.column) <= begin < (node.end_line, node.end_column)


def _suffix(key: str | int, *, is_first: bool) -> str:
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return key if is_first else f".{key}"
    return f"[{key}]"


# Diagnostics as an API server passes them on: one line each, with the code, the field and the help.


# The API server cuts a warning after 256 characters, and drops the rest after 4096 characters of all webhooks together.
# Other webhooks need room too.
_MAX_WARNING_CHARS = 256
_MAX_WARNINGS_CHARS = 2048
_MAX_REFUSALS = 32
_MAX_REFUSAL_CHARS = 1024


def refusal_of(about: Diagnostic | Finding, field: str | None) -> AdmissionRefusal:
    """Return the refusal for an error."""
    help_ = f"; {about.help}" if about.help else ""
    return AdmissionRefusal(_cut(printable(f"{about.code.id} {about.message}{help_}"), _MAX_REFUSAL_CHARS), field)


def warning_of(about: Diagnostic | Finding, field: str | None) -> str:
    """Return a warning: the message without the help, which would make it long."""
    return _cut(printable(f"{about.code.id} {f'{field}: ' if field else ''}{about.message}"), _MAX_WARNING_CHARS)


def limit_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """Return the warnings that an API server has room for, each once; the last names the number of omitted warnings.

    First come the findings of lint, then the openings and closings of a change.
    """
    distinct = [_cut(printable(warning), _MAX_WARNING_CHARS) for warning in dict.fromkeys(warnings)]
    kept: list[str] = []
    for warning in distinct:
        if sum(map(len, kept)) + len(warning) > _MAX_WARNINGS_CHARS:
            break
        kept.append(warning)
    left_out = len(distinct) - len(kept)
    return (*kept, f"{left_out} more: see `eastgate lint` and `eastgate diff`") if left_out else tuple(kept)


def limit_refusals(refusals: Iterable[AdmissionRefusal]) -> tuple[AdmissionRefusal, ...]:
    """Return the first refusals; the last names the number of omitted ones."""
    distinct = list(dict.fromkeys(refusals))
    left_out = len(distinct) - _MAX_REFUSALS
    return (*distinct[:_MAX_REFUSALS], AdmissionRefusal(f"and {left_out} more")) if left_out > 0 else tuple(distinct)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


_MAX_ERRORS = 64  # of one object; the next review reports the others
_MAX_LINTED_CHARS = 128 * 1024  # linting more would risk a timeout


@dataclass(frozen=True, slots=True)
class _Remark:
    """A diagnostic about an object, or a finding of lint, with its field."""

    about: Diagnostic | Finding
    field: str | None

    @property
    def identity(self) -> tuple[str, str, str | None]:
        return self.about.code.id, self.about.message, self.field


@dataclass(frozen=True, slots=True)
class _Examination:
    errors: tuple[_Remark, ...] = ()
    others: tuple[_Remark, ...] = ()


def judge_object(change: RequestedChange, settings: Settings) -> AdmissionJudgement:
    """Return the judgement of the object after a change, by itself; an empty one if the change deletes the object.

    A change that keeps the meaning of an object, or a change of an object that is being deleted, is refused only for
    new errors. So an object that was stored before a rule became stricter can still be labelled and finalized.
    """
    if change.new is None or change.subresource is not None:
        return AdmissionJudgement()
    registry = dialects.registered()
    key = (change.group, change.version, change.kind)
    if key not in registry.read and not uses(change.api_version, change.kind):
        read = sorted(version for group, version, kind in registry.read if (group, kind) == (change.group, change.kind))
        if not read:
            return AdmissionJudgement()
        text = f"Eastgate does not read {change.kind} of {change.api_version}, only {' and '.join(read)}"
        return AdmissionJudgement(warnings=(text,))
    if (problem := _size_problem(change, settings)) is not None:
        return AdmissionJudgement((refusal_of(problem, None),))
    examined = _examine(change.new, change, settings)
    refusals, tolerated = list(examined.errors), list[_Remark]()
    if key not in registry.read:
        refusals, tolerated = [], refusals
    elif change.old is not None and (change.is_being_deleted or stored_form(change).keeps_meaning):
        known = {error.identity for error in _examine(change.old, change, settings).errors}
        refusals = [error for error in examined.errors if error.identity not in known]
        tolerated = [error for error in examined.errors if error.identity in known]
    return AdmissionJudgement(
        tuple(refusal_of(error.about, error.field) for error in refusals),
        tuple(warning_of(remark.about, remark.field) for remark in (*tolerated, *examined.others)),
    )


def _size_problem(change: RequestedChange, settings: Settings) -> Diagnostic | None:
    """Return the problem with the size of a policy that is new or grows. A large policy takes long to read."""
    if change.new is None or change.is_being_deleted or not is_measured(change.api_version, change.kind):
        return None
    size = size_of(change.new)
    grows = change.old is None or (size > size_of(change.old) and not change.keeps_meaning)
    return policy_problem(size, settings) if grows else None


def _examine(manifest: Mapping[str, Any], change: RequestedChange, settings: Settings) -> _Examination:
    """Read an object, and its original policy if an annotation holds that in another version."""
    examined = _read(_named(manifest, change), settings, change.namespace)
    original = original_in(manifest) if not examined.errors else None
    if original is None:
        return examined
    behind = _read(_named(original, change), settings, change.namespace)
    if behind.errors:
        return _Examination(tuple(_in_annotation(error, original) for error in behind.errors), examined.others)
    return _Examination((), (*examined.others, *(_in_annotation(remark, original) for remark in behind.others)))


def _in_annotation(remark: _Remark, original: Mapping[str, Any]) -> _Remark:
    version = str(original["apiVersion"]).rpartition("/")[2]
    return _Remark(remark.about, f"{version}:{remark.field}" if remark.field else None)


def _named(manifest: Mapping[str, Any], change: RequestedChange) -> dict[str, Any]:
    """Return an object as it would be stored: with a name and a namespace, and without the notes of the server."""
    metadata = {key: value for key, value in dict(manifest.get("metadata") or {}).items() if key != "managedFields"}
    if not metadata.get("name"):
        metadata["name"] = change.name or f"{metadata.get('generateName') or 'object-'}xxxxx"
    if change.namespace and not metadata.get("namespace"):
        metadata["namespace"] = change.namespace
    return {
        **{key: value for key, value in manifest.items() if key != "status"},
        "apiVersion": manifest.get("apiVersion") or change.api_version,
        "kind": manifest.get("kind") or change.kind,
        "metadata": metadata,
    }


def _read(manifest: Mapping[str, Any], settings: Settings, namespace: str | None) -> _Examination:
    text = json.dumps(manifest, indent=1)
    reading = read_text("object.json", text, positioned=dialects.reads, namespace=namespace or settings.namespace)
    manifests = Manifests(settings, reporter=reading.reporter)
    for document in reading.documents:
        manifests.add(document)
    roots = [root_of(document) for document in reading.documents]

    def remarks(about: Sequence[Diagnostic | Finding]) -> tuple[_Remark, ...]:
        return tuple(_Remark(each, field_at(roots[0], each.span) if roots else None) for each in about)

    if manifests.reporter.errors:
        return _Examination(remarks(manifests.reporter.errors[:_MAX_ERRORS]))
    findings = _lint(manifests) if len(text) <= _MAX_LINTED_CHARS else []
    telling = [each for each in findings if each.severity is not Severity.INFO and not each.code.needs_cluster]
    return _Examination((), remarks(telling[:_MAX_ERRORS]))


def _lint(manifests: Manifests) -> list[Finding]:
    """Run the checks that need only the object. The others would look for other objects in vain."""
    context = CheckContext(Authority(manifests, unread=Handling.IGNORE))
    warnings = (Finding.of(warning, context.subjects_at(warning.span)) for warning in manifests.reporter)
    own = (finding for check in own_checks() for finding in check(context))
    findings = drop_suppressed(chain(warnings, find_impossible_rules(context), own), context)
    return sorted(dict.fromkeys(findings), key=lambda finding: finding.sort_key)
