"""Reads YAML scalars with their tags, and reports tags that do not fit."""

from __future__ import annotations

from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import NUMBER_RANGE, TAG_MISMATCH, TAG_UNKNOWN
from eastgate.reading.manifests.findings import Findings, shown
from eastgate.reading.manifests.node import Scalar
from eastgate.reading.manifests.scalars import CONVERT, NULLS, NoNumberError, resolve
from eastgate.reading.manifests.yaml.parser import MAPPING, Event

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
        """Return the value of a scalar; its text where it cannot be read as what it claims to be."""
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
        """Report a tag of a mapping or a list that does not say that it is one."""
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
        if match is None:  # an anchor stands before it, on a line of its own
            return whole
        return Span(self._source, whole.line, match.start() + 1, whole.line, match.end() + 1)

    def _span(self, event: Event) -> Span:
        start, end = event.start_mark, event.end_mark
        first = self._first_line
        return Span(self._source, first + start.line, start.column + 1, first + end.line, end.column + 1)
