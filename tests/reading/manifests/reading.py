"""Helpers that read texts and compare findings."""

from __future__ import annotations

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.reading.manifests import ReadResult, read_text
from eastgate.reading.manifests.document import PlainDocument
from eastgate.reading.manifests.json.nodes import read_json_nodes
from eastgate.reading.manifests.json.plain import read_plain_json
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.text import DecodedText, decode
from eastgate.reading.manifests.yaml.nodes import read_yaml_node
from eastgate.reading.manifests.yaml.plain import read_plain_yaml

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"


def never(api_version: str, kind: str) -> bool:
    return False


def always(api_version: str, kind: str) -> bool:
    return True


def reading_of(content: str | bytes, name: str = "f.yaml", *, positioned: bool = False) -> ReadResult:
    return read_text(name, content, positioned=always if positioned else never)


def found(content: str | bytes, name: str = "f.yaml", *, positioned: bool = False) -> list[Diagnostic]:
    return reading_of(content, name, positioned=positioned).reporter.diagnostics


def place(finding: Diagnostic) -> tuple[str, int, int, str]:
    """Return the code and the place of a finding, and the underlined text."""
    assert finding.span is not None
    return finding.code.id, finding.span.line, finding.span.column, finding.span.underlined


def places(content: str | bytes, name: str = "f.yaml") -> list[tuple[str, int, int, str]]:
    return [place(finding) for finding in found(content, name)]


def text_of(content: str | bytes, name: str = "f.yaml") -> DecodedText:
    text = decode(name, content, Reporter())
    assert text is not None
    return text


def yaml_node(content: str, reporter: Reporter | None = None) -> Node | None:
    """Read one YAML document with the precise reader."""
    text = text_of(content)
    return read_yaml_node(text, 0, len(text.source.text), Reporter() if reporter is None else reporter)


def yaml_plain(content: str) -> PlainDocument | None:
    """Read one YAML document with the fast reader."""
    return read_plain_yaml(content, 0)


def json_nodes(content: str, reporter: Reporter | None = None) -> list[Node]:
    """Read JSON values with the precise reader."""
    text = text_of(content)
    return read_json_nodes(text, 0, len(text.source.text), Reporter() if reporter is None else reporter)


def json_plain(content: str) -> PlainDocument | None:
    """Read a JSON value with the fast reader."""
    return read_plain_json(content, content.encode())


def spans_are_inside(node: Node) -> bool:
    """Return whether the spans of a node and all nodes below it are inside the text."""
    lines = node.source.text.splitlines()
    inside = 1 <= node.line <= len(lines) and 1 <= node.column <= len(lines[node.line - 1]) + 1
    inside = inside and (node.line, node.column) <= (node.end_line, node.end_column)
    below = [*node, *node.keys.values(), *(value for _, value in node.items())]
    return inside and all(spans_are_inside(child) for child in below)
