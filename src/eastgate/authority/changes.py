"""Changes of policies and objects. Every source produces them, files and a cluster alike, for `Authority.apply`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from eastgate.authority.faults import ref_of_id
from eastgate.authority.reading import Fault, Manifests, ref_of_document
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.records import dataclass
from eastgate.cluster import WorldObject
from eastgate.cluster.unread import UnreadObjects
from eastgate.ir import PolicyRef


@dataclass(frozen=True, slots=True)
class ChangedNames:
    """The names of policies and objects whose content changed. Objects that only moved to other lines are left out."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted((*self.added, *self.changed, *self.removed)))


@dataclass(frozen=True, slots=True)
class Changes:
    """Objects and policies to `put` in the place of those with the same names, and the names of those `removed`.

    A source that reads everything again gives all current `warnings`. Without them, warnings about the objects of `put`
    replace the earlier warnings about them.
    """

    put: Manifests
    removed: frozenset[PolicyRef] = frozenset()
    warnings: Sequence[Diagnostic] | None = None
    names: ChangedNames = field(default_factory=ChangedNames)

    def __bool__(self) -> bool:
        put = self.put
        return bool(self.removed or put.objects or put.policies or put.faults or put.unread.objects)


def changes_between(before: Manifests, after: Manifests) -> Changes:
    """Return the changes that turn one set of manifests into another.

    An object that only moved to other lines is put again, since explanations name lines.
    """
    old, new = dict(_entries(before)), dict(_entries(after))
    texts = _Texts()
    both = old.keys() & new.keys()
    changed = {ref for ref in both if not texts.has_same_content(old[ref], new[ref])}
    moved = {ref for ref in both - changed if _place(old[ref]) != _place(new[ref])}
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    warnings = [diagnostic for diagnostic in after.reporter if not diagnostic.is_error]
    names = ChangedNames(_names(added), _names(changed), _names(removed))
    return Changes(_only(after, added | changed | moved), frozenset(removed), warnings, names)


@dataclass(frozen=True, slots=True, eq=False)
class _WrittenEntry:
    """A policy, or an object of an unread kind. It is compared by its text and its errors."""

    type: type
    span: Span
    errors: tuple[str, ...] = ()


_Entry: TypeAlias = WorldObject | _WrittenEntry


def _entries(manifests: Manifests) -> Iterator[tuple[PolicyRef, _Entry]]:
    for declared in manifests.objects:
        yield ref_of_id(declared.id), declared
    for unread in manifests.unread.objects:
        yield ref_of_document(unread.document), _WrittenEntry(type(unread), unread.span)
    for policy in manifests.policies:
        yield policy.ref, _WrittenEntry(type(policy), policy.span)
    for fault in manifests.closing:
        policy, errors = fault.policy, tuple(error.message for error in fault.errors)
        yield policy.ref, _WrittenEntry(type(policy), policy.span, errors)


def _place(entry: _Entry) -> tuple[str, int, int] | None:
    span = entry.span
    return (span.file, span.line, span.column) if span is not None else None


class _Texts:
    """Compares texts of manifests. Two readings of one file are compared once, and split into lines once."""

    def __init__(self) -> None:
        self._same: dict[tuple[SourceText, SourceText], bool] = {}
        self._lines: dict[SourceText, list[str]] = {}

    def has_same_content(self, before: _Entry, after: _Entry) -> bool:
        if not isinstance(before, _WrittenEntry) or not isinstance(after, _WrittenEntry):
            return before == after
        if (before.type, before.errors) != (after.type, after.errors):
            return False
        if _place(before) == _place(after) and self._is_same(before.span.source, after.span.source):
            return True
        return self._text(before.span) == self._text(after.span)

    def _is_same(self, before: SourceText, after: SourceText) -> bool:
        if (before, after) not in self._same:
            self._same[before, after] = before.text == after.text
        return self._same[before, after]

    def _text(self, span: Span) -> list[str]:
        """Return the text of a span, secrets included: a change beside a Secret on the same line counts too."""
        lines = self._lines.get(span.source)
        if lines is None:
            lines = self._lines[span.source] = span.source.text.splitlines()
        text = lines[span.line - 1 : span.end_line]
        if text:
            if span.end_line <= len(lines):  # else it ends behind the last line
                text[-1] = text[-1][: span.end_column - 1]
            text[0] = text[0][span.column - 1 :]
        return text


def _only(manifests: Manifests, refs: Collection[PolicyRef]) -> Manifests:
    """Return the objects and policies of manifests that have these names."""
    faults: list[Fault] = [fault for fault in manifests.closing if fault.policy.ref in refs]
    some = Manifests(
        manifests.settings,
        [declared for declared in manifests.objects if ref_of_id(declared.id) in refs],
        reporter=Reporter([error for fault in faults for error in fault.errors]),
        faults=faults,
        unread=UnreadObjects([each for each in manifests.unread.objects if ref_of_document(each.document) in refs]),
    )
    for policy in manifests.policies:
        if policy.ref in refs:
            some.add_policy(policy, manifests.document_of(policy))
    return some


def _names(refs: Iterable[PolicyRef]) -> tuple[str, ...]:
    return tuple(sorted(map(str, refs)))
