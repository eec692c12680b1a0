"""The head of a YAML document whose rest cannot be read: its object, if that is certain.

A policy with a syntax error in its rules still closes its targets. An object of a kind that decides nothing can be
ignored. A text that must still be rendered is not an error.
"""

from __future__ import annotations

import re
from dataclasses import replace

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import PLACEHOLDER, TEMPLATE
from eastgate.reading.manifests.document import Document
from eastgate.reading.manifests.findings import shown
from eastgate.reading.manifests.heads import head, hides_types, shallow
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.text import DecodedText
from eastgate.reading.manifests.yaml.nodes import read_yaml_node

_HEAD_KEY = regex(r"""(?m)^[ ]*(?:[?-][ ]+)?["']?(?:apiVersion|kind|metadata)["']?[ ]*:""")
_ENTRIES = regex(r"""(?m)^[ ]*(?:[?-][ ]+)?["']?(?:items|objects)["']?[ ]*:""")  # of lists, and of Templates
_FIELD = regex(r"([ ]*)[A-Za-z]\w*:(?=\s)")
_TEMPLATE = regex(r"\{\{.*?(?:\}\}|$)|\{%.*?%\}|<%.*?%>|@[A-Z][A-Z0-9_]*@|%[A-Z][A-Z0-9_]*%|\{[A-Z][A-Z0-9_]*\}")
_BLOCK = regex(r"(?m)^[ ]*(?:\{\{|\{%|<%)")  # a line that begins with template text
_UNSEEN = regex(r"""\b(?:apiVersion|kind)["']?[ ]*:[ ]*["']?(?:\{|\$|<|%|\Z|\n)""")


def template_text(error: Diagnostic) -> Diagnostic | None:
    """Return the finding about template text that makes a line invalid YAML; None for another error."""
    found = _TEMPLATE.search(error.span.first_line) if error.span is not None else None
    if found is None or error.span is None:
        return None
    line = error.span.line
    span = Span(error.span.source, line, found.start() + 1, line, found.end() + 1)
    message = f"template text: `{shown(found.group())}`"
    help_ = "render it first, or leave the file out: --exclude"
    return Diagnostic(PLACEHOLDER, message, span, help_, cause=TEMPLATE.id)


def torn_template(text: DecodedText, start: int, end: int, template: Diagnostic, namespace: str) -> Document | None:
    """Return the object in a stretch of YAML with template text, as `torn_document` does.

    The error may come only some lines after a line of pure template text. That line is then tried as the end of the
    head.
    """
    found = torn_document(text, start, end, template, namespace)
    block = _BLOCK.search(text.source.text, start, end) if found is None else None
    if block is None or template.span is None:
        return found
    line, _ = text.position(block.start())
    return torn_document(text, start, end, replace(template, span=replace(template.span, line=line)), namespace)


def hides_kind(source: str) -> bool:
    """Return whether a text may hide its kind: with an escape, an alias or a placeholder."""
    return hides_types(source) or _UNSEEN.search(source) is not None


def torn_document(text: DecodedText, start: int, end: int, error: Diagnostic, namespace: str) -> Document | None:
    """Return the object in a stretch of YAML, with the part before the error; None if its head is uncertain.

    The head is certain if all of it is before the line of the error, another field follows it, and none of it occurs
    again. A text with entries of other objects is not one object, whatever its kind.
    """
    if error.span is None or error.span.source is not text.source:
        return None
    cut = text.starts[error.span.line - 1]
    before, behind = text.source.text[start:cut], text.source.text[cut:end]
    if cut <= start or hides_kind(before):
        return None
    findings = Reporter()
    node = read_yaml_node(text, start, cut, findings)
    if findings.diagnostics or node is None or not isinstance(node.value, dict):
        return None
    names = list(node.value)
    begins = _FIELD.match(behind)
    ends_head = begins is not None and len(begins[1]) == node.column - 1
    if "metadata" not in names or not (ends_head or names[-1] not in ("apiVersion", "kind", "metadata")):
        return None
    if _has_at_edge(_HEAD_KEY, behind, node) or _has_at_edge(_ENTRIES, f"{before}{behind}", node):
        return None
    head_of = head(shallow(node))
    return Document(*head_of, node, None, node, namespace) if head_of is not None else None


def _has_at_edge(key: re.Pattern[str], text: str, node: Node) -> bool:
    """Return whether a text may have one of some keys at the left edge of a mapping."""
    return any(len(match.group()) - len(match.group().lstrip()) < node.column for match in key.finditer(text))
