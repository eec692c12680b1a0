"""Reads manifests: the whole way from paths to documents, and shorter ways for other callers.

Each document is read at most twice. The fast readers make plain data of valid documents for which no positions are
needed. The readers with positions read all others, above all those with errors. YAML and JSON differ only up to
`Collector`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO

from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.printable import printable
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
from eastgate.reading.manifests.heads import has_kind, hides_types, hint, may_be_manifest, type_of, types_in
from eastgate.reading.manifests.inputs import Input, Inputs
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.objects import Collector, Differ, Matters, Positioned, always_differ, everything
from eastgate.reading.manifests.roots import chunk_nodes, json_nodes, looks_like_json
from eastgate.reading.manifests.templates import is_template
from eastgate.reading.manifests.text import DecodedText, decode
from eastgate.reading.manifests.torn import hides_kind, template_text, torn_document, torn_template
from eastgate.reading.manifests.yaml.parser import chunk_problem, chunks
from eastgate.reading.manifests.yaml.plain import read_plain_yaml

if TYPE_CHECKING:
    from eastgate.reading.repository.builds import Builds
    from eastgate.reading.repository.model import Environment, Undeployed
    from eastgate.reading.repository.running import Built


def read(
    paths: Iterable[str | os.PathLike[str]],
    *,
    positioned: Positioned,
    matters: Matters = everything,
    takes: Matters | None = None,
    differ: Differ = always_differ,
    deploys: Matters | None = None,
    skim: bool = False,
    namespace: str = "default",
    stdin: BinaryIO | None = None,
    on_file: Callable[[int, int], None] | None = None,
    bounds: Bounds | None = None,
) -> ReadResult:
    """Read the manifests in files, in folders and (as `-`) on standard input.

    Without `bounds`, reading stays in the given paths: a link in a folder that leads elsewhere is an error.

    `positioned(api_version, kind)` selects the objects that are read with positions. `matters` selects those that can
    change an answer: errors of others are not reported, and with `skim` they are only counted, unless `takes` selects
    them. `deploys` selects the objects to read from manifests that no environment deploys. `differ(first, second)`
    returns the fields in which two documents of one object differ. `namespace` is the namespace of objects without one.
    `on_file(done, total)` is called after each file.
    """
    reading = ReadResult()
    given = list(paths)
    limits = bounds or Bounds.of(given)
    inputs = Inputs(reading.reporter, limits)
    inputs.add_all(given)
    reading.excluded, reading.refused = inputs.excluded, inputs.refused
    reading.unbuilt += inputs.unbuilt
    collector = Collector(reading, positioned, matters, differ, takes=takes, skim=skim, namespace=namespace)
    with no_collection():
        builds = _builds(inputs.entries, limits, collector)
        for done, entry in enumerate(inputs.entries, 1):
            collector.explicit = entry.explicit and entry.part is None
            collector.namespace = entry.namespace or namespace
            found = len(reading.documents)
            try:
                if builds is not None and entry.part is not None and entry.environment is not None:
                    _collect_built(entry, builds.result(entry.part, entry.environment), collector, reading)
                else:
                    _collect_input(entry, stdin, collector, reading)
            except Exception as error:
                error.add_note(f"while reading {_shown(entry)}")
                raise
            if entry.environment is not None:
                _pass_over(reading, found, entry.environment, deploys)
            if on_file is not None:
                on_file(done, len(inputs.entries))
    if deploys is not None:
        for undeployed in inputs.undeployed:
            if undeployed.documents is None:
                undeployed.documents = _documents_of(undeployed, positioned, deploys, namespace, limits)
            reading.undeployed += undeployed.documents
    return reading


def _pass_over(reading: ReadResult, first: int, environment: Environment, deploys: Matters | None) -> None:
    """Remove the documents that the tool of an environment does not apply."""
    added = reading.documents[first:]
    kept = [document for document in added if environment.applies(_metadata(document))]
    if len(kept) < len(added):
        passed = [document for document in added if not any(document is each for each in kept)]
        reading.documents[first:] = kept
        reading.unused += len(passed)
        reading.undeployed += [each for each in passed if deploys is not None and deploys(each.api_version, each.kind)]


def _metadata(document: Document) -> dict[str, Plain]:
    content = document.data if document.data is not None else document.node
    metadata = content.get("metadata") if content is not None else None
    value = metadata.plain() if isinstance(metadata, Node) else metadata
    return value if isinstance(value, dict) else {}


def _documents_of(
    undeployed: Undeployed, positioned: Positioned, deploys: Matters, namespace: str, bounds: Bounds
) -> list[Document]:
    """Return the objects of kinds that deploy something from some files. Unreadable ones are left out."""
    given = read(
        undeployed.files,
        positioned=positioned,
        matters=deploys,
        skim=True,
        namespace=namespace,
        bounds=Bounds(bounds.folders),
    )
    documents = [*given.documents, *(document for document, _ in given.head_only)]
    return [document for document in documents if deploys(document.api_version, document.kind)]


def _collect_input(entry: Input, stdin: BinaryIO | None, collector: Collector, reading: ReadResult) -> None:
    reporter = reading.reporter
    found = len(reporter.diagnostics)
    content = load(entry.name, stdin, reporter)
    if content is None:
        reading.refused += reporter.diagnostics[found:] if entry.explicit else ()
        return
    before = collector.roots + len(reporter.diagnostics)
    _collect(_shown(entry), content, collector, reporter)
    if entry.explicit and collector.roots + len(reporter.diagnostics) == before:
        _refuse_empty(entry, reading)


def _collect_built(entry: Input, built: Built, collector: Collector, reading: ReadResult) -> None:
    reading.unbuilt += [left for left in built.left_out if left not in reading.unbuilt]
    reading.unused += built.unused
    before = collector.roots + len(reading.reporter.diagnostics)
    if built.text is not None:
        _collect_text(DecodedText(built.text, b"", {}), collector, reading.reporter)
    is_empty = collector.roots + len(reading.reporter.diagnostics) == before
    if entry.explicit and is_empty and not (built.unused or built.left_out):
        _refuse_empty(entry, reading)


def _builds(entries: Sequence[Input], bounds: Bounds, collector: Collector) -> Builds | None:
    """Build the parts of environments."""
    parts = [(entry.part, entry.environment) for entry in entries if entry.part and entry.environment]
    if not parts:
        return None
    from eastgate.reading.repository.builds import builds_of  # imported here because few commands read environments

    return builds_of(parts, bounds, collector.takes if collector.skims else None)


def _shown(entry: Input) -> str:
    """Return the name of an input for findings."""
    return STDIN_NAME if entry.name == STDIN else entry.name


def _refuse_empty(entry: Input, reading: ReadResult) -> None:
    what, help_ = f"`{printable(entry.name)}`", "leave it out, or write a manifest into it"
    if entry.name == STDIN:
        what, help_ = "standard input", "see whether the command that should have written it failed"
    reading.reporter.report(EMPTY_INPUT, f"there is nothing in {what}", help=help_)
    reading.refused.append(reading.reporter.diagnostics[-1])


def read_text(
    name: str,
    content: str | bytes,
    *,
    positioned: Positioned,
    matters: Matters = everything,
    namespace: str = "default",
) -> ReadResult:
    """Read the manifests in one text. The name is used in findings; a name that ends in `.json` means strict JSON."""
    reading = ReadResult()
    collector = Collector(reading, positioned, matters, namespace=namespace)
    _collect(name, content, collector, reading.reporter)
    return reading


def read_objects(
    nodes: Iterable[Node], *, positioned: Positioned, into: ReadResult | None = None, namespace: str = "default"
) -> ReadResult:
    """Make documents of objects inside another document, such as the inline objects of a test."""
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
            collector.pass_over(*type_, chunk)
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
    """Add the object in the head of an unreadable text. Return whether it can be ignored.

    In a folder, template text is a placeholder, not an error.
    """
    error = findings.errors[0]
    template = None if collector.explicit else template_text(error)
    find = torn_document if template is None else torn_template
    torn = find(text, start, end, template or error, collector.namespace)
    if torn is not None and not collector.takes(torn.api_version, torn.kind) and not collector.explicit:
        collector.pass_over(torn.api_version, torn.kind, text.source.text[start:end])
        return True
    if template is not None and (torn is not None or _may_matter(text.source.text[start:end], collector)):
        collector.add_template(torn, template)
        findings.diagnostics[:] = [template]
    elif torn is not None and collector.takes(torn.api_version, torn.kind):
        collector.add_torn(torn, error)
    return False


def _add_nodes(
    nodes: Iterable[tuple[Node, Stretch]], findings: Reporter, source: str, collector: Collector, reporter: Reporter
) -> None:
    """Add nodes with positions. Their findings are reported only if they matter."""
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
            # for example JSON with comments, or a template
            collector.skip(first.span.file if first.span is not None else "")
            return
        message = f"skipped, because it has neither `apiVersion` nor `kind`: {first.message}"
        reporter.report(LEFT_ASIDE, message, first.span, help="leave it out: --exclude, or a line in .eastgateignore")
    if findings.diagnostics:
        collector.roots += 1


def _may_matter(source: str, collector: Collector) -> bool:
    """Return whether an unreadable text may be a manifest of a used kind, or hides its kind."""
    is_of_kinds = hides_kind(source) or any(collector.takes(*type_) for type_ in types_in(source))
    return may_be_manifest(source) and (is_of_kinds or not has_kind(source))


def _is_of_head(finding: Diagnostic) -> bool:
    """Return whether a finding may be about a second `apiVersion`, `kind` or `items`."""
    if finding.code in (SEVERAL_IN_ONE, MERGE_REPLACES):
        return True
    key = finding.span.underlined.strip("\"'") if finding.code is DUPLICATE_KEY and finding.span else ""
    return key in ("apiVersion", "kind", "items") or "\\" in key


def _collect_json(text: DecodedText, collector: Collector, reporter: Reporter) -> bool:
    """Collect the objects of a JSON text. Return False if the text is not JSON."""
    string = text.source.text
    if not text.bad and looks_like_json(text):
        # imported here because only JSON needs msgspec
        from eastgate.reading.manifests.json.plain import read_plain_json

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
