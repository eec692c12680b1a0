"""Manifests, read: the whole way from paths to documents, and the shorter ways into it.

Each document is read twice at most. The fast readers make plain data of whatever is in order and nobody
wants positions of; everything else, and above all everything that is wrong, goes through the readers with
positions. YAML and JSON differ only up to `Collector`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

from eastgate.collection import no_collection
from eastgate.diagnostics import Diagnostic, Reporter
from eastgate.sources.bounds import Bounds
from eastgate.sources.codes import JSON_SYNTAX, UNCLOSED
from eastgate.sources.document import Reading, Stretch
from eastgate.sources.files import STDIN, STDIN_NAME, Inputs, load
from eastgate.sources.json_nodes import read_json_nodes
from eastgate.sources.json_plain import read_plain_json
from eastgate.sources.node import Node
from eastgate.sources.objects import Collector, Positioned
from eastgate.sources.text import Text, decode
from eastgate.sources.yaml_chunks import chunks
from eastgate.sources.yaml_nodes import read_yaml_node
from eastgate.sources.yaml_plain import read_plain_yaml

__all__ = ["Roots", "read", "read_nodes", "read_nodes_text", "read_objects", "read_text"]

_LOOKS_LIKE_JSON = re.compile(r"[ \t\r\n]*+[{\[]")
_JSON_IN_YAML = re.compile(r"(?:---)?[ \t\r\n]*+(?=[{\[])")
_HINT = re.compile(r"""[ ]*["']?([^\s"'#]+)""")


def read(
    paths: Iterable[str | os.PathLike[str]],
    *,
    positioned: Positioned,
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
) -> Reading:
    """Read the manifests in files, in folders and (as `-`) on standard input.

    Without `bounds`, reading stays in the paths that are given: a link in a folder that leads elsewhere is an error.

    `positioned(api_version, kind)` says of which objects the content is wanted with positions.
    `on_file(done, total)` is called after each file.
    """
    reading = Reading()
    given = list(paths)
    inputs = Inputs(reading.reporter, bounds or Bounds.of(given))
    inputs.add_all(given)
    collector = Collector(reading, positioned)
    with no_collection():
        for done, name in enumerate(inputs.names, 1):
            content = load(name, stdin, reading.reporter)
            if content is not None:
                _collect(STDIN_NAME if name == STDIN else name, content, collector, reading.reporter)
            if on_file is not None:
                on_file(done, len(inputs.names))
    return reading


def read_text(name: str, content: str | bytes, *, positioned: Positioned) -> Reading:
    """Read the manifests in one text. The name is for findings; one that ends in `.json` means strict JSON."""
    reading = Reading()
    _collect(name, content, Collector(reading, positioned), reading.reporter)
    return reading


def read_objects(nodes: Iterable[Node], *, positioned: Positioned, into: Reading | None = None) -> Reading:
    """Make documents of objects that stand inside something else, such as the inline objects of a test."""
    reading = Reading() if into is None else into
    collector = Collector(reading, positioned)
    for node in nodes:
        collector.add_node(node, node)
    return reading


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
    nodes = _json_nodes(text, roots.reporter)
    if nodes is None:
        nodes = [node for extent in chunks(text.source.text) for node, _ in _chunk(text, *extent, roots.reporter)]
    roots.nodes = [node for node in nodes if node.value is not None]
    return roots


def _collect(name: str, content: str | bytes, collector: Collector, reporter: Reporter) -> None:
    before = len(reporter.found)
    text = decode(name, content, reporter)
    if text is None:
        return
    if not _collect_json(text, collector, reporter):
        for start, end in chunks(text.source.text):
            _collect_yaml(text, start, end, collector, reporter)
    text.raw = b""
    reporter.found[before:] = sorted(reporter.found[before:], key=_place)


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (0, 0)


def _collect_yaml(text: Text, start: int, end: int, collector: Collector, reporter: Reporter) -> None:
    chunk = text.source.text[start:end]
    # libyaml passes over a byte order mark and does not count it, so the offsets of the fast reader would be wrong
    if not text.bad and not chunk.startswith("\ufeff") and not collector.wants(*_hint(chunk)):
        plain = read_plain_yaml(chunk, start)
        if plain is not None:
            collector.add_plain(plain, text, is_json=False)
            return
    for node, stretch in _chunk(text, start, end, reporter):
        collector.add_node(node, stretch)


def _chunk(text: Text, start: int, end: int, reporter: Reporter) -> list[tuple[Node, Stretch]]:
    """What stands in a chunk of YAML, which may be JSON that YAML does not quite understand (`\\ud83d\\ude00`)."""
    findings = Reporter()
    node = read_yaml_node(text, start, end, findings)
    marker = _JSON_IN_YAML.match(text.source.text, start, end)
    if findings.found and node is None and marker is not None:
        nodes = _json_values(text, marker.end(), end, Reporter())
        if nodes:
            return [(node, Stretch(text, True, *text.extent(node.span))) for node in nodes]
    reporter.found.extend(findings)
    return [] if node is None else [(node, Stretch(text, False, start, end))]


def _hint(chunk: str) -> tuple[str, str]:
    """What the document probably is. A wrong hint costs time and nothing else."""
    return _hint_of("apiVersion:", chunk), _hint_of("kind:", chunk)


def _hint_of(key: str, chunk: str) -> str:
    at = 0 if chunk.startswith(key) else chunk.find("\n" + key) + 1
    match = _HINT.match(chunk, at + len(key)) if at or chunk.startswith(key) else None
    return match.group(1) if match else ""


def _collect_json(text: Text, collector: Collector, reporter: Reporter) -> bool:
    """Collect the objects of a text that is JSON; False where it is not."""
    string = text.source.text
    if not text.bad and _LOOKS_LIKE_JSON.match(string):
        plain = read_plain_json(string, text.raw)
        if plain is not None:
            collector.add_plain(plain, text, is_json=True)
            return True
    nodes = _json_nodes(text, reporter)
    for node in nodes or ():
        collector.add_node(node, Stretch(text, True, *text.extent(node.span)))
    return nodes is not None


def _json_nodes(text: Text, reporter: Reporter) -> list[Node] | None:
    """The values of a JSON text; None where it is not JSON and nobody said that it should be."""
    string = text.source.text
    is_json = text.source.name.lower().endswith(".json")
    if not is_json and not _LOOKS_LIKE_JSON.match(string):
        return None
    if is_json:
        return read_json_nodes(text, 0, len(string), reporter)
    return _json_values(text, 0, len(string), reporter)


def _json_values(text: Text, start: int, end: int, reporter: Reporter) -> list[Node] | None:
    """The values of a stretch that looks like JSON; None where it is not, because YAML has brackets too."""
    findings = Reporter()
    nodes = read_json_nodes(text, start, end, findings)
    if any(finding.code in (JSON_SYNTAX, UNCLOSED) for finding in findings):
        return None
    reporter.found.extend(findings)
    return nodes
