"""Reads the documents of one text with positions: YAML, JSON, or JSON among YAML."""

from __future__ import annotations

import os
from dataclasses import field
from typing import BinaryIO

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import JSON_SYNTAX, OTHER_YAML, UNCLOSED
from eastgate.reading.manifests.document import Stretch
from eastgate.reading.manifests.files import STDIN, STDIN_NAME, load
from eastgate.reading.manifests.json.nodes import read_json_nodes
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.text import DecodedText, decode
from eastgate.reading.manifests.yaml.nodes import read_yaml_node
from eastgate.reading.manifests.yaml.parser import chunk_problem, chunks

# kubectl looks for the bracket in this many bytes, and does not skip a byte order mark.
_LOOKS_LIKE_JSON = regex(r"[ \t\r\n]{0,4095}+\{")


@dataclass(slots=True)
class Roots:
    """The documents of a text, of any kind."""

    nodes: list[Node] = field(default_factory=list)
    reporter: Reporter = field(default_factory=Reporter)


def read_nodes(path: str | os.PathLike[str], *, stdin: BinaryIO | None = None) -> Roots:
    """Read a file, or `-`, with positions, whether it has Kubernetes objects or not."""
    roots = Roots()
    name = os.fspath(path)
    content = load(name, stdin, roots.reporter)
    return roots if content is None else read_nodes_text(STDIN_NAME if name == STDIN else name, content)


def read_nodes_text(name: str, content: str | bytes) -> Roots:
    """Read a text with positions, whether it has Kubernetes objects or not. Empty documents are left out.

    kubectl never reads this text, so its limits do not apply.
    """
    roots = Roots()
    text = decode(name, content, roots.reporter)
    if text is None:
        return roots
    nodes = json_nodes(text, roots.reporter)
    if nodes is None:
        nodes = [node for extent in chunks(text.source.text) for node, _ in chunk_nodes(text, *extent, roots.reporter)]
    roots.reporter.diagnostics = [finding for finding in roots.reporter if finding.code is not OTHER_YAML]
    roots.nodes = [node for node in nodes if node.value is not None]
    return roots


def chunk_nodes(text: DecodedText, start: int, end: int, reporter: Reporter) -> list[tuple[Node, Stretch]]:
    """Read a chunk of YAML. The first one may be JSON that is not quite YAML (`\\ud83d\\ude00`)."""
    findings = Reporter()
    problem = chunk_problem(text, start, end)
    if problem is not None:
        reporter.diagnostics.append(problem)
        return []
    node = read_yaml_node(text, start, end, findings)
    if findings.diagnostics and start == 0 and looks_like_json(text):
        nodes = _json_values(text, start, end, Reporter())
        if nodes is not None and len(nodes) == 1:
            return [(nodes[0], Stretch(text, True, *text.extent(nodes[0].span)))]
    reporter.diagnostics.extend(findings)
    return [] if node is None else [(node, Stretch(text, False, start, end))]


def looks_like_json(text: DecodedText) -> bool:
    """Return whether kubectl tries to read a text as JSON before YAML."""
    return not text.marked and _LOOKS_LIKE_JSON.match(text.source.text) is not None


def json_nodes(text: DecodedText, reporter: Reporter) -> list[Node] | None:
    """Read the values of a JSON text; None if it is not JSON and its name does not require it."""
    string = text.source.text
    if text.source.name.lower().endswith(".json") and not text.marked:
        return read_json_nodes(text, 0, len(string), reporter)
    return _json_values(text, 0, len(string), reporter) if looks_like_json(text) else None


def _json_values(text: DecodedText, start: int, end: int, reporter: Reporter) -> list[Node] | None:
    """Read the values of a stretch that looks like JSON; None if it is YAML with brackets."""
    findings = Reporter()
    nodes = read_json_nodes(text, start, end, findings)
    if any(finding.code in (JSON_SYNTAX, UNCLOSED) for finding in findings):
        return None
    reporter.diagnostics.extend(findings)
    return nodes
