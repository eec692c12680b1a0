"""Maps positions in built manifests back to the files of their authors.

A kustomization changes some values of an object and copies the others. A value that is the same in the base, or in a
patch, is shown there. A line of a rendered chart is shown in the template if exactly one of its lines has the same
text. All other values are shown in the output, whose name then includes the file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from eastgate.basics.diagnostics.spans import SourceText, Span, WrittenSpan
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.roots import read_nodes_text
from eastgate.reading.repository.written import WrittenFile

_Place = tuple[int, int, int, int]
_SEPARATOR = regex(r"---(?:\s|$)")
_KIND = regex(r"(?m)^kind: (.+)$")
_NAME = regex(r"(?m)^metadata:\n(?:  .*\n|\n)*?  name: (.+)$")
_DESCRIBES = regex(r"(?:apiVersion|kind)\s*:")


@dataclass(frozen=True, slots=True)
class BuiltDocument:
    """A document of a built text: its first line, and its origin.

    `name` is that of the file, which may be in an archive. For a template, `index` is the index among its documents;
    None if unknown.
    """

    line: int
    name: str = ""
    file: WrittenFile | None = None
    patches: tuple[WrittenFile, ...] = ()
    is_template: bool = False
    index: int | None = 0


class BuiltText(SourceText):
    """The output of a program that builds manifests."""

    __slots__ = ("_documents", "_split", "_tables", "_views")

    def __init__(self, name: str, text: str, documents: Sequence[BuiltDocument]) -> None:
        super().__init__(name, text)
        self._documents = documents
        self._split: list[str] = []
        self._tables: dict[int, dict[_Place, Span]] = {}
        self._views: dict[str, _View] = {}

    def place(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        """Return the origin of a stretch; if it is unknown, the stretch of this text."""
        index = self._index_at(line)
        built = Span(self, line, column, end_line, end_column)
        return WrittenSpan(built) if index >= 0 and self._documents[index].name else built

    def origin_of(self, built: Span) -> Span:
        """Return the origin of a stretch; if it is unknown, the stretch itself, under a name with its input file."""
        index = self._index_at(built.line)
        document = self._documents[index]
        written = self._in_template(document, built) if document.is_template else self._in_manifest(index, built)
        if written is not None:
            return written
        view = self._views.setdefault(document.name, _View(self, f"{self.name.removesuffix('>')}: {document.name}>"))
        return Span(view, built.line, built.column, built.end_line, built.end_column)

    def near(self, line: int) -> tuple[SourceText, ...]:
        """Return the texts that may have the original of a line."""
        document = self._documents[max(self._index_at(line), 0)]
        files = [*document.patches, *([document.file] if document.file is not None else ())]
        return (self, *(file.text for file in files))

    def _index_at(self, line: int) -> int:
        """Return the index of the document with a line; -1 for a line before the first one."""
        return bisect_right(self._documents, line, key=lambda document: document.line) - 1

    def _in_manifest(self, index: int, built: Span) -> Span | None:
        document = self._documents[index]
        if built.column == 1 and built.end_line > built.line == self._first_content(document):
            whole = self._whole(index)  # the end does not matter: comments and the next separator may follow
            if whole is not None:
                return whole
        if index not in self._tables:
            self._tables[index] = self._table(index)
        table = self._tables[index]
        place = (built.line, built.column, built.end_line, built.end_column)
        return table.get(place) or self._inside(table, built)

    def _whole(self, index: int) -> Span | None:
        """Return the origin of a whole document. This is fast, because many documents need nothing else."""
        file, text = self._documents[index].file, self._text_of(index)
        kind, name = _KIND.search(text), _NAME.search(text)
        if file is None or kind is None or name is None:
            return None
        type_, known = _unquoted(kind[1]), _unquoted(name[1])
        same = _same_object(type_, known, file.of_kind(type_), loosely=True)
        return next((node.span for node in same), None)

    def _text_of(self, index: int) -> str:
        self._split = self._split or self.text.splitlines(keepends=True)
        last = self._documents[index + 1].line - 1 if index + 1 < len(self._documents) else len(self._split)
        return "".join(self._split[self._documents[index].line - 1 : last])

    def _table(self, index: int) -> dict[_Place, Span]:
        """Return the origin of each value of a document, by its position here."""
        document = self._documents[index]
        built = next(iter(read_nodes_text(self.name, self._text_of(index)).nodes), None)
        if built is None or document.file is None:
            return {}
        kind, name = _text_at(built, "kind"), _text_at(built, "metadata", "name")
        bases = list(_same_object(kind, name, document.file.of_kind(kind), loosely=True))[:1]
        # the name before prefixes were added
        names = {name: None, **{_text_at(base, "metadata", "name"): None for base in bases}}
        patches = [
            node
            for patch in reversed(document.patches)
            for known in names
            for node in _same_object(kind, known, patch.of_kind(kind))
        ]
        offset = document.line - 1
        table: dict[_Place, Span] = {}
        for node, span in _pairs(built, patches + bases):
            table.setdefault((node.line + offset, node.column, node.end_line + offset, node.end_column), span)
        return table

    def _inside(self, table: dict[_Place, Span], built: Span) -> Span | None:
        """Return the origin of a part of a value: the line with the same text inside the original value."""
        for (line, column, end_line, end_column), whole in table.items():
            begins = (line, column) <= (built.line, built.column)
            if not begins or (built.end_line, built.end_column) > (end_line, end_column):
                continue
            number = whole.line + built.line - line
            if end_line - line == whole.end_line - whole.line and built.line == built.end_line:
                shifted = _shifted(self, built, whole.source, number)
                if shifted is not None and whole.end_line - whole.line < _MAX_LINES:
                    return shifted
        return None

    def _in_template(self, document: BuiltDocument, built: Span) -> Span | None:
        if document.file is None:
            return None
        source = document.file.text
        lines = source.text.splitlines()
        first, last = _extent(lines, document.index)
        wanted = self._raw(built.line).strip()
        numbers = [number for number in range(first, last) if lines[number - 1].strip() == wanted and wanted]
        if len(numbers) == 1:
            return _shifted(self, built, source, numbers[0])
        if built.end_line == built.line and (key := self._raw(built.line)[: built.column - 1].strip()):
            numbers = [number for number in range(first, last) if _fills(lines[number - 1].strip(), key)]
            if len(numbers) == 1:
                line = lines[numbers[0] - 1]
                start = line.index(key) + len(key)
                column = start + len(line[start:]) - len(line[start:].lstrip()) + 1
                return Span(source, numbers[0], column, numbers[0], len(line.rstrip()) + 1)
        is_whole = built.line == self._first_content(document) and built.end_line > built.line
        if not is_whole:
            return None
        number = next((number for number in range(first, last) if _DESCRIBES.match(lines[number - 1])), None)
        return Span(source, number, 1, number, len(lines[number - 1]) + 1) if number is not None else None

    def _first_content(self, document: BuiltDocument) -> int:
        number = document.line
        while self._raw(number).startswith(("#", "---")):
            number += 1
        return number

    def _raw(self, number: int) -> str:
        """Return a line unchanged, for comparisons: `line` first searches the whole text for secrets."""
        self._split = self._split or self.text.splitlines(keepends=True)
        return self._split[number - 1].rstrip("\r\n") if 0 < number <= len(self._split) else ""


_MAX_LINES = 1000


class _View(SourceText):
    """A built text under a name with the origin of one of its parts."""

    __slots__ = ("_built",)

    def __init__(self, built: BuiltText, name: str) -> None:
        super().__init__(name, "")
        self._built = built

    @property
    def text(self) -> str:
        return self._built.text

    def line(self, number: int) -> str:
        return self._built.line(number)

    def hides(self, number: int) -> bool:
        return self._built.hides(number)

    def place(self, line: int, column: int, end_line: int, end_column: int) -> Span:
        return self._built.place(line, column, end_line, end_column)


def _shifted(text: SourceText, built: Span, source: SourceText, number: int) -> Span | None:
    """Return the span on a line with the same text, except for its indentation."""
    here, there = text.line(built.line), source.line(number)
    if here.strip() != there.strip():
        return None
    shift = (len(there) - len(there.lstrip())) - (len(here) - len(here.lstrip()))
    end = built.end_column + shift if built.end_line == built.line else len(there.rstrip()) + 1
    return Span(source, number, built.column + shift, number, end) if built.column + shift > 0 else None


def _fills(line: str, key: str) -> bool:
    """Return whether a line of a template has this key, and an expression after it."""
    return line.startswith(key) and "{{" in line[len(key) :]


def _extent(lines: Sequence[str], index: int | None) -> tuple[int, int]:
    """Return the lines of the document at an index of a template; all lines if it has fewer documents."""
    starts = [1, *(number + 1 for number, line in enumerate(lines, 1) if _SEPARATOR.match(line)), len(lines) + 1]
    blocks = [
        (first, last)
        for first, last in pairwise(starts)
        if any(_DESCRIBES.match(line) for line in lines[first - 1 : last - 1])
    ]
    return blocks[index] if index is not None and index < len(blocks) and len(blocks) > 1 else (1, len(lines) + 1)


def _same_object(kind: str | None, name: str | None, nodes: Iterable[Node], *, loosely: bool = False) -> Iterator[Node]:
    """Yield the documents of the same object. `loosely`: prefixes and suffixes may have been added."""
    alike = [node for node in _objects(nodes) if _text_at(node, "kind") == kind]
    exact = [node for node in alike if _text_at(node, "metadata", "name") == name]
    if exact or not loosely:
        yield from exact
    else:
        parts = [node for node in alike if (_text_at(node, "metadata", "name") or " ") in (name or "")]
        yield from sorted(parts, key=lambda node: -len(_text_at(node, "metadata", "name") or "")) or alike[:1]


def _unquoted(text: str) -> str:
    return text.strip().strip("\"'")


def _objects(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        items = node.get("items")
        yield from items if items is not None and isinstance(items.value, list) else (node,)


def _text_at(node: Node, *path: str) -> str | None:
    for key in path:
        inner = node.get(key)
        if inner is None:
            return None
        node = inner
    return node.value if isinstance(node.value, str) else None


def _pairs(built: Node, written: Sequence[Node]) -> Iterator[tuple[Node, Span]]:
    """Yield each equal value and key, with its position. The first of `written` wins."""
    if isinstance(built.value, dict):
        alike = [node for node in written if isinstance(node.value, dict)]
        if alike:
            yield built, alike[-1].span
        for key, value in built.items():
            inner = [found for node in alike if (found := node.get(key)) is not None]
            yield from _pairs(value, inner)
            spelled = next((node.keys[key] for node in reversed(alike) if key in node.keys), None)
            if spelled is not None and key in built.keys:
                yield built.keys[key], spelled.span
    elif isinstance(built.value, list):
        alike = [node for node in written if isinstance(node.value, list)]
        if alike:
            yield built, alike[-1].span
        for index, item in enumerate(built):
            yield from _pairs(item, [found for node in alike if (found := _item(node, index, item)) is not None])
    else:
        same = next((node for node in written if _is_same_scalar(node, built) or _is_filled_in(node)), None)
        if same is not None:
            yield built, same.span


def _item(written: Node, index: int, item: Node) -> Node | None:
    """Return the equal item of a list, or the item with the same name."""
    entries = list(written)
    plain = item.plain()
    if index < len(entries) and entries[index].plain() == plain:
        return entries[index]
    same = [entry for entry in entries if entry.plain() == plain]
    if same:
        return same[0]
    name = _text_at(item, "name")
    named = [entry for entry in entries if name is not None and _text_at(entry, "name") == name]
    if named:
        return named[0]
    return entries[index] if index < len(entries) and not isinstance(item.value, str | int | float | bool) else None


def _is_same_scalar(node: Node, other: Node) -> bool:
    return type(node.value) is type(other.value) and node.value == other.value


def _is_filled_in(node: Node) -> bool:
    return isinstance(node.value, str) and "${" in node.value
