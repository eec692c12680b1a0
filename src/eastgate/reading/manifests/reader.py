"""Reads manifests: the whole way from paths to documents, and the shorter ways into it.

Each document is read twice at most. The fast readers make plain data of whatever is in order and nobody wants positions
of; everything else, and above all everything that is wrong, goes through the readers with positions. YAML and JSON
differ only up to `Collector`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, BinaryIO

from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import (
    DUPLICATE_KEY,
    EMPTY_INPUT,
    LEFT_ASIDE,
    MERGE_REPLACES,
    SEVERAL_IN_ONE,
    TEMPLATE,
)
from eastgate.reading.manifests.document import Document, ReadResult, Stretch
from eastgate.reading.manifests.files import STDIN, STDIN_NAME, Bounds, load
from eastgate.reading.manifests.heads import (
    has_types,
    head,
    hides_types,
    hint,
    may_be_manifest,
    shallow,
    type_of,
    types_in,
)
from eastgate.reading.manifests.inputs import Input, Inputs
from eastgate.reading.manifests.kustomizations import parts, report_missing
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.objects import Collector, Differ, Matters, Positioned, always_differ, everything
from eastgate.reading.manifests.roots import chunk_nodes, json_nodes, looks_like_json
from eastgate.reading.manifests.templates import is_template
from eastgate.reading.manifests.text import DecodedText, decode
from eastgate.reading.manifests.yaml.nodes import read_yaml_node
from eastgate.reading.manifests.yaml.parser import chunk_problem, chunks
from eastgate.reading.manifests.yaml.plain import read_plain_yaml

if TYPE_CHECKING:
    from eastgate.reading.manifests.rendering import Renderer
    from eastgate.reading.repository.builds import Builds
    from eastgate.reading.repository.running import Built


# The head of a YAML document whose rest cannot be read: which object it is, as far as that is certain.
#
# A policy with a syntax error in its rules still closes what it may be about, and an object of a kind that decides
# nothing can be left out without a word.


_HEAD_KEY = regex(r"""(?m)^[ ]*(?:[?-][ ]+)?["']?(?:apiVersion|kind|metadata)["']?[ ]*:""")
_ENTRIES = regex(r"""(?m)^[ ]*(?:[?-][ ]+)?["']?(?:items|objects)["']?[ ]*:""")  # of lists, and of Templates
_FIELD = regex(r"([ ]*)[A-Za-z]\w*:(?=\s)")
_UNSEEN = regex(r"""\b(?:apiVersion|kind)["']?[ ]*:[ ]*["']?(?:\{|\$|<|%|\Z|\n)""")


def hides_kind(source: str) -> bool:
    """Return whether a text may be of a kind that nobody sees in it: behind an escape, an alias or a placeholder."""
    return hides_types(source) or _UNSEEN.search(source) is not None


def torn_document(text: DecodedText, start: int, end: int, error: Diagnostic, namespace: str) -> Document | None:
    """Return the object in a stretch of YAML, with what stands before the error; None where its head is uncertain.

    The head is certain if all of it stands before the line of the error, another field follows it, and none of it is
    written again. What has entries of other objects is no object by itself, whatever it says it is.
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


def read(
    paths: Iterable[str | os.PathLike[str]],
    *,
    positioned: Positioned,
    matters: Matters = everything,
    takes: Matters | None = None,
    differ: Differ = always_differ,
    skim: bool = False,
    namespace: str = "default",
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
) -> ReadResult:
    """Read the manifests in files, in folders and (as `-`) on standard input.

    Without `bounds`, reading stays in the paths that are given: a link in a folder that leads elsewhere is an error.

    `positioned(api_version, kind)` says of which objects the content is wanted with positions; `matters` which of them
    can change an answer: what is wrong with others is not reported, and with `skim` they are counted and not read,
    unless it `takes` them.
    `differ(first, second)` says in which fields two documents of one object differ. `namespace` is that of objects
    which do not say theirs. `on_file(done, total)` is called after each file.
    """
    reading = ReadResult()
    given = list(paths)
    limits = bounds or Bounds.of(given)
    inputs = Inputs(reading.reporter, limits)
    inputs.add_all(given)
    reading.excluded, reading.refused = inputs.excluded, inputs.refused
    reading.unbuilt += inputs.unbuilt
    collector = Collector(reading, positioned, matters, differ, takes=takes, skim=skim, namespace=namespace)
    rendering = _Rendering(inputs.entries, reading.reporter, follow=limits.folders is None)
    with no_collection(), _builds(inputs.entries, limits, collector) as builds:
        for done, entry in enumerate(inputs.entries, 1):
            collector.explicit = entry.explicit and not entry.kustomized
            collector.namespace = entry.namespace or namespace
            try:
                if builds is not None and entry.part is not None:
                    _collect_built(builds.result(entry.part), collector, reading)
                else:
                    _collect_input(entry, rendering, stdin, collector, reading)
            except Exception as error:
                error.add_note(f"while reading {_shown(entry)}")
                raise
            if on_file is not None:
                on_file(done, len(inputs.entries))
    return reading


def _collect_input(
    entry: Input, rendering: _Rendering, stdin: BinaryIO | None, collector: Collector, reading: ReadResult
) -> None:
    reporter = reading.reporter
    found = len(reporter.diagnostics)
    content = rendering.load(entry.name) if entry.kustomized else load(entry.name, stdin, reporter)
    if content is None:
        if entry.explicit and not entry.kustomized:
            reading.refused += reporter.diagnostics[found:]
        return
    before = collector.roots + len(reporter.diagnostics)
    _collect(_shown(entry), content, collector, reporter)
    if entry.explicit and collector.roots + len(reporter.diagnostics) == before:
        _report_empty(entry, reporter)
        reading.refused.append(reporter.diagnostics[-1])


def _collect_built(built: Built, collector: Collector, reading: ReadResult) -> None:
    reading.unbuilt += [left for left in built.left_out if left not in reading.unbuilt]
    reading.unused += built.unused
    if built.text is not None:
        _collect_text(DecodedText(built.text, b"", {}), collector, reading.reporter)


def _builds(entries: Sequence[Input], bounds: Bounds, collector: Collector) -> AbstractContextManager[Builds | None]:
    """Start to build the parts of environments."""
    parts = [(entry.part, entry.environment) for entry in entries if entry.part and entry.environment]
    if not parts:
        return nullcontext()
    from eastgate.reading.repository.builds import Builds  # few commands read environments

    return Builds(parts, bounds, collector.takes if collector.skims else None)


def _shown(entry: Input) -> str:
    """Return the name of an input for findings."""
    if entry.kustomized:
        return f"<kustomize build {entry.name}>"
    return STDIN_NAME if entry.name == STDIN else entry.name


def _report_empty(entry: Input, reporter: Reporter) -> None:
    what, help_ = f"`{printable(entry.name)}`", "leave it out, or write a manifest into it"
    if entry.name == STDIN:
        what, help_ = "standard input", "see whether the command that should have written it failed"
    reporter.report(EMPTY_INPUT, f"there is nothing in {what}", help=help_)


class _Rendering:
    """Loads kustomizations. That nothing can render them is said once."""

    def __init__(self, inputs: Iterable[Input], reporter: Reporter, *, follow: bool) -> None:
        self._folders = [entry.name for entry in inputs if entry.kustomized]
        self._reporter = reporter
        self._follow = follow
        self._renderer = _renderer() if self._folders else None
        if self._folders and self._renderer is None:
            report_missing(self._folders, reporter)

    def load(self, folder: str) -> bytes | None:
        """Return what a kustomization stands for."""
        if self._renderer is None or parts(folder, self._follow, self._reporter) is None:
            return None
        return self._renderer.render(folder, self._reporter)


def _renderer() -> Renderer | None:
    from eastgate.reading.manifests.rendering import Renderer  # few folders are kustomizations, and it runs programs

    renderer = Renderer()
    return renderer if renderer.is_there else None


def read_text(
    name: str,
    content: str | bytes,
    *,
    positioned: Positioned,
    matters: Matters = everything,
    namespace: str = "default",
) -> ReadResult:
    """Read the manifests in one text. The name is for findings; one that ends in `.json` means strict JSON."""
    reading = ReadResult()
    collector = Collector(reading, positioned, matters, namespace=namespace)
    _collect(name, content, collector, reading.reporter)
    return reading


def read_objects(
    nodes: Iterable[Node], *, positioned: Positioned, into: ReadResult | None = None, namespace: str = "default"
) -> ReadResult:
    """Make documents of objects that stand inside something else, such as the inline objects of a test."""
    reading = ReadResult() if into is None else into
    collector = Collector(reading, positioned, namespace=namespace)
    for node in nodes:
        collector.add_node(node, node)
    return reading


def _collect(name: str, content: str | bytes, collector: Collector, reporter: Reporter) -> None:
    before = len(reporter.diagnostics)
    text = decode(name, content, reporter)
    if text is not None:
        _collect_text(text, collector, reporter)
    reporter.diagnostics[before:] = sorted(reporter.diagnostics[before:], key=_line_and_column)


def _collect_text(text: DecodedText, collector: Collector, reporter: Reporter) -> None:
    objects = collector.objects
    if not _collect_json(text, collector, reporter):
        for start, end in chunks(text.source.text):
            _collect_yaml(text, start, end, collector, reporter)
    collector.end_text(objects)
    text.raw = b""


def _line_and_column(finding: Diagnostic) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (0, 0)


def _collect_yaml(text: DecodedText, start: int, end: int, collector: Collector, reporter: Reporter) -> None:
    chunk = text.source.text[start:end]
    if not text.bad and chunk_problem(text, start, end) is None:
        type_ = type_of(chunk) if collector.skims else None
        if type_ is not None and not collector.takes(*type_) and not is_template(*type_):
            collector.pass_over()
            return
        if not collector.wants(*hint(chunk)):
            plain = read_plain_yaml(chunk, start)
            if plain is not None:
                collector.add_plain(plain, text, is_json=False)
                return
    findings = Reporter()
    nodes = chunk_nodes(text, start, end, findings)
    if not nodes and findings.errors and _tear(text, start, end, findings, collector):
        return
    _add_nodes(nodes, findings, chunk, collector, reporter)


def _tear(text: DecodedText, start: int, end: int, findings: Reporter, collector: Collector) -> bool:
    """Add the object that the head of a text is about, whose rest cannot be read; return whether it is of no matter."""
    torn = torn_document(text, start, end, findings.errors[0], collector.namespace)
    if torn is None:
        return False
    if collector.takes(torn.api_version, torn.kind):
        collector.add_torn(torn, findings.errors[0])
        return False
    if collector.explicit:
        return False
    collector.pass_over()
    return True


def _add_nodes(
    nodes: Iterable[tuple[Node, Stretch]], findings: Reporter, source: str, collector: Collector, reporter: Reporter
) -> None:
    """Add what was read with positions. Its findings are reported only where it matters."""
    before = len(reporter.diagnostics)
    added = [collector.add_node(node, stretch) for node, stretch in nodes]
    several = any(_is_of_head(finding) for finding in findings) and (
        hides_types(source) or any(collector.is_used(*type_) for type_ in types_in(source))
    )
    if several or any(added) or (not added and (collector.explicit or _may_matter(source, collector))):
        reporter.diagnostics[before:before] = findings
    elif not added and findings.diagnostics:
        first = findings.diagnostics[0]
        if first.code is TEMPLATE or (first.span is not None and first.span.file.lower().endswith(".json")):
            collector.skip(first.span.file if first.span is not None else "")  # JSON with comments, say, or a template
            return
        message = f"left aside, since it has neither `apiVersion` nor `kind`: {first.message}"
        reporter.report(LEFT_ASIDE, message, first.span, help="leave it out: --exclude, or a line in .eastgateignore")
    if findings.diagnostics:
        collector.roots += 1


def _may_matter(source: str, collector: Collector) -> bool:
    """Return whether an unreadable text may be a manifest of a kind that is used, or hides what it is."""
    is_of_kinds = hides_kind(source) or any(collector.takes(*type_) for type_ in types_in(source))
    return may_be_manifest(source) and (is_of_kinds or not has_types(source))


def _is_of_head(finding: Diagnostic) -> bool:
    """Return whether a finding may be about a second `apiVersion`, `kind` or `items`."""
    if finding.code in (SEVERAL_IN_ONE, MERGE_REPLACES):
        return True
    key = finding.span.underlined.strip("\"'") if finding.code is DUPLICATE_KEY and finding.span else ""
    return key in ("apiVersion", "kind", "items") or "\\" in key


def _collect_json(text: DecodedText, collector: Collector, reporter: Reporter) -> bool:
    """Collect the objects of a text that is JSON; False where it is not."""
    string = text.source.text
    if not text.bad and looks_like_json(text):
        from eastgate.reading.manifests.json.plain import read_plain_json  # msgspec is for JSON only

        plain = read_plain_json(string, text.raw)
        if plain is not None:
            collector.add_plain(plain, text, is_json=True)
            return True
    findings = Reporter()
    nodes = json_nodes(text, findings)
    if nodes is None:
        return False
    whole = [(node, Stretch(text, True, *text.extent(node.span))) for node in nodes]
    _add_nodes(whole, findings, string, collector, reporter)
    return True
