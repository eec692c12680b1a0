"""Reads YAML with positions and diagnostics: the whole language that a manifest may use, and every error in it."""

from __future__ import annotations

import re

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import (
    ALIAS_BOMB,
    ALIAS_RECURSIVE,
    ALIAS_UNDEFINED,
    KEY_NOT_STRING,
    MERGE_NOT_MAPPING,
    MERGE_REPLACES,
    NOT_APPLIED,
    NUMBER_RANGE,
    OTHER_YAML,
    TAG_MISMATCH,
    TAG_UNKNOWN,
    YAML_SYNTAX,
)
from eastgate.reading.manifests.findings import Findings, StopReading, shown, suggestion
from eastgate.reading.manifests.limits import MAX_ALIASED_NODES, MAX_DEPTH, MAX_DIRECTIVES
from eastgate.reading.manifests.node import CONVERT, NULLS, Node, NoNumberError, Scalar, resolve
from eastgate.reading.manifests.text import DecodedText
from eastgate.reading.manifests.yaml.errors import explain, template_finding
from eastgate.reading.manifests.yaml.parser import (
    ALIAS,
    DOCUMENT_END,
    LIBYAML_ERROR,
    MAPPING,
    MAPPING_END,
    SCALAR,
    SEQUENCE_END,
    STREAM_END,
    Event,
    Mark,
    event_source,
)

# Reads YAML scalars with their tags, and reports tags that do not fit.


_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(["str", "int", "float", "bool", "null"])
_TAG = regex(r"!\S*")


class TaggedScalars:
    """Reads the scalars and checks the tags of one document."""

    __slots__ = ("_findings", "_first_line", "_source")

    def __init__(self, source: SourceText, first_line: int, findings: Findings) -> None:
        self._source = source
        self._first_line = first_line
        self._findings = findings

    def value(self, event: Event) -> Scalar:
        """Return the value of a scalar, or its text if it does not fit its type."""
        try:
            return self._value(event)
        except NoNumberError:
            help_ = f'if it is text, put it in quotes: "{shown(event.value)}"'
            self._findings.report(NUMBER_RANGE, "Kubernetes cannot hold this number", self._span(event), help_)
            return event.value

    def _value(self, event: Event) -> Scalar:
        if event.tag is None:
            return event.value if event.style else resolve(event.value)
        name = event.tag.removeprefix(_CORE)
        if event.tag == "!" or name == "str":
            return event.value
        if name == event.tag or name not in _SCALAR_TAGS:
            self._wrong_tag(event, name, "a scalar")
            return event.value
        if name == "null":
            fits, value = event.value in NULLS, None
        else:
            value = CONVERT[name](event.value)
            fits = value is not None
        if fits:
            return value
        message = f"`{shown(event.value)}` does not fit the tag `!!{name}`"
        self._findings.report(TAG_MISMATCH, message, self._tag_span(event), "leave the tag out")
        return event.value

    def check_collection(self, event: Event) -> None:
        """Report a tag of a mapping or a list that names another type."""
        if event.tag is None or event.tag == "!":
            return
        sort, right = ("a mapping", "map") if type(event) is MAPPING else ("a list", "seq")
        if event.tag != _CORE + right:
            self._wrong_tag(event, event.tag.removeprefix(_CORE), sort)

    def _wrong_tag(self, event: Event, name: str, sort: str) -> None:
        span = self._tag_span(event)
        if name in _SCALAR_TAGS or name in ("map", "seq"):
            code, message = TAG_MISMATCH, f"{sort} does not fit the tag `!!{name}`"
        else:
            tag = event.tag if event.tag == name else f"!!{name}"
            code, message = TAG_UNKNOWN, f"the tag `{shown(tag or '')}` is not known here"
        self._findings.report(code, message, span, "leave the tag out")

    def _tag_span(self, event: Event) -> Span:
        whole = self._span(event)
        match = _TAG.search(whole.first_line, whole.column - 1)
        if match is None:  # an anchor is before it, on a line of its own
            return whole
        return Span(self._source, whole.line, match.start() + 1, whole.line, match.end() + 1)

    def _span(self, event: Event) -> Span:
        start, end = event.start_mark, event.end_mark
        first = self._first_line
        return Span(self._source, first + start.line, start.column + 1, first + end.line, end.column + 1)


_HEAD = ("apiVersion", "kind")
_WORD = regex(r"[^\s:,\[\]{}]+|\S|$")
_DIRECTIVE = regex(r"^%.*", re.MULTILINE)
_SLASH = regex(r"(?:[^\\]|\\[^/])*+(\\/)", re.DOTALL)  # an escape in JSON, and in YAML since 1.2
_PLAIN_NUMBER = regex(r"0|[1-9][0-9]*")  # as a key it equals the quoted form, also in Kubernetes


@dataclass(frozen=True, slots=True)
class _Anchored:
    """The value of an anchor, with the number of its nodes and the depth of its collections."""

    node: Node
    size: int
    height: int


def read_yaml_node(text: DecodedText, start: int, end: int, reporter: Reporter) -> Node | None:
    """Read the document in a stretch of a text; None if it is empty or unreadable, which is reported."""
    if text.report_bad_bytes(start, end, reporter):
        return None
    line, column = text.position(start)
    # Leading spaces keep a stretch that starts inside a line in its column, so that its first line is indented like the
    # others.
    chunk = " " * (column - 1) + text.source.text[start:end]
    try:
        return _NodeReader(text, chunk, line, Findings(reporter)).document()
    except StopReading:
        return None
    except LIBYAML_ERROR as error:
        reporter.diagnostics.append(explain(error, text, chunk, start))
        return None


class _NodeReader:
    """Reads one document. `MAX_DEPTH` limits recursion, also through aliases."""

    def __init__(self, text: DecodedText, chunk: str, first_line: int, findings: Findings) -> None:
        self._chunk = chunk
        self._source = text.source
        self._first_line = first_line
        self._findings = findings
        self._scalars = TaggedScalars(text.source, first_line, findings)
        self._get = event_source(chunk)
        self._anchors: dict[str, _Anchored | None] = {}  # None: the value has not ended yet
        self._count = 0  # nodes so far, including those of aliases
        self._aliased = 0  # nodes of aliases
        self._deepest = 0  # greatest depth of collections since the innermost open anchor
        self._flows = 0  # open brackets
        self._end: tuple[int, int] = (first_line, 1)  # the end of the last value

    def document(self) -> Node | None:
        """Return the root of the document; None without content."""
        self._check_directives()
        get = self._get
        get()
        if type(get()) is STREAM_END:
            return None
        node = self._value(get(), 1, None)
        if type(get()) is not DOCUMENT_END or type(event := get()) is not STREAM_END:
            message, help_ = "the document has ended before this", "end the line before it with a line feed"
            self._findings.stop(NOT_APPLIED, message, self._word(event.start_mark), help_)
        return node

    def _check_directives(self) -> None:
        if self._chunk.count("%TAG") <= MAX_DIRECTIVES:
            return
        count = len(_DIRECTIVE.findall(self._chunk))
        if count > MAX_DIRECTIVES:
            span = Span(self._source, self._first_line, 1, self._first_line, 2)
            self._findings.stop(YAML_SYNTAX, f"this document has {count} directives", span, "leave them out")

    def _value(self, event: Event, depth: int, key: Node | None) -> Node:
        """Read a value that starts with this event. If it has a key, read it as the value of the key."""
        self._count += 1
        if type(event) is ALIAS:
            return self._alias(event, depth)
        if event.anchor is None:
            return self._fresh(event, depth, key)
        name, before, outer = event.anchor, self._count, self._deepest
        self._anchors[name] = None
        self._deepest = depth - 1
        node = self._fresh(event, depth, key)
        self._anchors[name] = _Anchored(node, self._count - before + 1, self._deepest - (depth - 1))
        self._deepest = max(outer, self._deepest)
        return node

    def _fresh(self, event: Event, depth: int, key: Node | None) -> Node:
        if type(event) is SCALAR:
            self._check_kubectl_reads(event)
            node = self._node(self._scalars.value(event), event, event)
            if not event.value and not event.style and event.anchor is None and event.tag is None:
                _show_empty(node, key)
            return node
        if depth > MAX_DEPTH:
            self._findings.too_deep(self._word(event.start_mark))
        self._deepest = max(self._deepest, depth)
        self._scalars.check_collection(event)
        self._flows += bool(event.flow_style)
        node = self._mapping(event, depth) if type(event) is MAPPING else self._sequence(event, depth)
        self._flows -= bool(event.flow_style)
        return node

    def _check_kubectl_reads(self, event: Event) -> None:
        """Report a scalar that libyaml reads and kubectl does not. kubectl supports less of YAML 1.2."""
        if event.style == '"' and _SLASH.match(self._chunk, event.start_mark.index, event.end_mark.index):
            message, help_ = "`\\/` is not an escape that kubectl knows", "write `/` without the backslash"
        elif self._flows and not event.style and "?" in event.value:
            message, help_ = (
                "kubectl reads no `?` in brackets without quotes",
                f'put it in quotes: "{shown(event.value)}"',
            )
        else:
            return
        self._findings.report(OTHER_YAML, message, self._node(None, event, event).span, help_)

    def _sequence(self, start: Event, depth: int) -> Node:
        items: list[Node] = []
        while type(event := self._get()) is not SEQUENCE_END:
            items.append(self._value(event, depth + 1, None))
        return self._node(items, start, event)

    def _mapping(self, start: Event, depth: int) -> Node:
        entries: dict[str, Node] = {}
        keys: dict[str, Node] = {}
        merged: list[Node] = []
        merge_key: Node | None = None
        is_second = False  # all keys of a second manifest are duplicates
        while type(event := self._get()) is not MAPPING_END:
            key = self._key(event, depth)
            value = self._value(self._get(), depth + 1, key)
            name = key.value
            if not isinstance(name, str):
                continue  # not a string, which is reported
            merges = name == "<<" and type(event) is SCALAR and not event.style and event.tag in (None, "!")
            first = merge_key if merges else keys.get(name)
            if first is not None and depth == 1 and name in _HEAD and first.line != key.line and not is_second:
                is_second = True
                self._findings.second_manifest(name, key, first)
            elif first is not None and not is_second:
                self._findings.duplicate_key(name, key, first)
            elif first is not None:
                continue
            elif merges:
                merge_key = key
                merged = self._merged(value)
                self._check_order(key, merged, keys)
            else:
                entries[name] = value
                keys[name] = key
        for source in merged:
            for name, value in source.items():
                if name not in entries:
                    entries[name] = value
                    keys[name] = source.keys[name]
                elif _PLAIN_NUMBER.fullmatch(name) and keys[name] is not source.keys[name]:
                    self._findings.duplicate_key(name, source.keys[name], keys[name])  # `1` and `"1"`, in any order
        return self._node(entries, start, event, keys)

    def _check_order(self, merge_key: Node, merged: list[Node], keys: dict[str, Node]) -> None:
        """Report a merge after a key that it replaces."""
        replaced = next((name for source in merged for name, _ in source.items() if name in keys), None)
        if replaced is not None:
            where = f"line {keys[replaced].line}"
            if keys[replaced].line == merge_key.line:
                where = f"column {keys[replaced].column} of this line"
            message = f"this merge replaces the key `{shown(replaced)}` in {where}"
            help_ = f"write the `<<` before `{shown(replaced)}`, which then wins, or leave `{shown(replaced)}` out"
            self._findings.report(MERGE_REPLACES, message, merge_key.span, help_)

    def _merged(self, value: Node) -> list[Node]:
        """Return the mappings that a `<<` names, in order of precedence."""
        sources = list(value) if isinstance(value.value, list) else [value]
        for source in sources:
            if not isinstance(source.value, dict):
                message = f"`<<` needs a mapping, not {source.kind}"
                self._findings.report(MERGE_NOT_MAPPING, message, source.span, "name a mapping: `<<: *anchor`")
        return [source for source in sources if isinstance(source.value, dict)]

    def _key(self, event: Event, depth: int) -> Node:
        """Read the key of an entry. A scalar that is not a string is reported, and replaced by its text."""
        key = self._value(event, depth + 1, None)
        if isinstance(key.value, str):
            return key
        span = self._node(None, event, event).span if type(event) is ALIAS else key.span
        template = template_finding(span)
        if template is not None:
            self._findings.stop_with(template)
        message = f"a key must be a string, not {key.kind}"
        if isinstance(key.value, int) and type(event) is not ALIAS and _PLAIN_NUMBER.fullmatch(event.value):
            return Node(event.value, key.source, key.line, key.column, key.end_line, key.end_column)
        if isinstance(key.value, dict | list) or type(event) is ALIAS:
            self._findings.report(KEY_NOT_STRING, message, span, "write a string")
            return key
        help_ = f'put it in quotes: `"{shown(event.value)}":`' if event.value else "write the key before the `:`"
        self._findings.report(KEY_NOT_STRING, message, span, help_)
        return Node(event.value, key.source, key.line, key.column, key.end_line, key.end_column)

    def _alias(self, event: Event, depth: int) -> Node:
        name = event.anchor or ""
        alias = self._node(None, event, event)
        if name not in self._anchors:
            near = suggestion(name, self._anchors)
            help_ = f"did you mean `*{near}`?" if near else f'if this is text, put it in quotes: "*{shown(name)}"'
            message = f"no anchor `&{shown(name)}` stands before this alias"
            self._findings.report(ALIAS_UNDEFINED, message, alias.span, help_)
            return alias
        anchored = self._anchors[name]
        if anchored is None:
            message = f"the alias `*{shown(name)}` stands inside the value that it names"
            self._findings.report(ALIAS_RECURSIVE, message, alias.span, "write the value out instead of the alias")
            return alias
        self._count += anchored.size
        self._aliased += anchored.size
        if self._aliased > MAX_ALIASED_NODES:
            message = f"the aliases of this document expand to more than {MAX_ALIASED_NODES} values"
            self._findings.stop(ALIAS_BOMB, message, alias.span, "write the values out, or split the document")
        if depth - 1 + anchored.height > MAX_DEPTH:
            self._findings.too_deep(alias.span)
        self._deepest = max(self._deepest, depth - 1 + anchored.height)
        return anchored.node

    def _node(
        self,
        value: dict[str, Node] | list[Node] | Scalar,
        start: Event,
        end: Event,
        keys: dict[str, Node] | None = None,
    ) -> Node:
        """Return a node over the text of its events.

        A block collection ends with its last value. libyaml would include the text after it, with comments.
        """
        if start is end or start.flow_style:
            self._end = self._position(end.end_mark)
        line, column = self._position(start.start_mark)
        return Node(value, self._source, line, column, *self._end, keys)

    def _position(self, mark: Mark) -> tuple[int, int]:
        return self._first_line + mark.line, mark.column + 1

    def _word(self, mark: Mark) -> Span:
        line, column = self._position(mark)
        match = _WORD.match(self._source.line(line), column - 1)
        return Span(self._source, line, column, line, match.end() + 1 if match else column + 1)


def _show_empty(node: Node, key: Node | None) -> None:
    """Give an empty value the position of its key, or of the dash of its list entry, because it has no text."""
    if key is not None:
        node.line, node.column = key.line, key.column
        node.end_line, node.end_column = key.end_line, key.end_column
    elif node.column > 1:
        node.column -= 1
