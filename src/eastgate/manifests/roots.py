"""Reads the documents of one text with positions, whatever they are: YAML, JSON, or JSON among YAML."""

from __future__ import annotations

import os
from dataclasses import field
from typing import BinaryIO

from eastgate.diagnostics import Reporter
from eastgate.manifests.codes import JSON_SYNTAX, UNCLOSED
from eastgate.manifests.document import Stretch
from eastgate.manifests.files import STDIN, STDIN_NAME, load
from eastgate.manifests.json.nodes import read_json_nodes
from eastgate.manifests.node import Node
from eastgate.manifests.text import DecodedText, decode
from eastgate.manifests.yaml.chunks import chunks
from eastgate.manifests.yaml.nodes import read_yaml_node
from eastgate.records import dataclass
from eastgate.regexes import regex

__all__ = ["LOOKS_LIKE_JSON", "Roots", "chunk_nodes", "json_nodes", "read_nodes", "read_nodes_text"]

LOOKS_LIKE_JSON = regex(r"[ \t\r\n]*+[{\[]")
_JSON_IN_YAML = regex(r"(?:---)?[ \t\r\n]*+(?=[{\[])")


@dataclass(slots=True)
class Roots:
    """The documents of a text, whatever they are."""

    nodes: list[Node] = field(default_factory=list)
    reporter: Reporter = field(default_factory=Reporter)


def read_nodes(path: str | os.PathLike[str], *, stdin: BinaryIO | None = None) -> Roots:
    """Read a file, or `-`, with positions, whether there are Kubernetes objects in it or not."""
    roots = Roots()
    name = os.fspath(path)
    content = load(name, stdin, roots.reporter)
    return roots if content is None else read_nodes_text(STDIN_NAME if name == STDIN else name, content)


def read_nodes_text(name: str, content: str | bytes) -> Roots:
    """Read a text with positions, whether there are Kubernetes objects in it or not. Empty documents are left out."""
    roots = Roots()
    text = decode(name, content, roots.reporter)
    if text is None:
        return roots
    nodes = json_nodes(text, roots.reporter)
    if nodes is None:
        nodes = [node for extent in chunks(text.source.text) for node, _ in chunk_nodes(text, *extent, roots.reporter)]
    roots.nodes = [node for node in nodes if node.value is not None]
    return roots


def chunk_nodes(text: DecodedText, start: int, end: int, reporter: Reporter) -> list[tuple[Node, Stretch]]:
    """Read a chunk of YAML, which may be JSON that YAML does not quite understand (`\\ud83d\\ude00`)."""
    findings = Reporter()
    node = read_yaml_node(text, start, end, findings)
    marker = _JSON_IN_YAML.match(text.source.text, start, end)
    if findings.diagnostics and node is None and marker is not None:
        nodes = _json_values(text, marker.end(), end, Reporter())
        if nodes:
            return [(node, Stretch(text, True, *text.extent(node.span))) for node in nodes]
    reporter.diagnostics.extend(findings)
    return [] if node is None else [(node, Stretch(text, False, start, end))]


def json_nodes(text: DecodedText, reporter: Reporter) -> list[Node] | None:
    """Read the values of a JSON text; None where it is not JSON and need not be."""
    string = text.source.text
    is_json = text.source.name.lower().endswith(".json")
    if not is_json and not LOOKS_LIKE_JSON.match(string):
        return None
    if is_json:
        return read_json_nodes(text, 0, len(string), reporter)
    return _json_values(text, 0, len(string), reporter)


def _json_values(text: DecodedText, start: int, end: int, reporter: Reporter) -> list[Node] | None:
    """Read the values of a stretch that looks like JSON; None where it is not, because YAML has brackets too."""
    findings = Reporter()
    nodes = read_json_nodes(text, start, end, findings)
    if any(finding.code in (JSON_SYNTAX, UNCLOSED) for finding in findings):
        return None
    reporter.diagnostics.extend(findings)
    return nodes
