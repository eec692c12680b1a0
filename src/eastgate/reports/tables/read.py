"""Reads tables from files and folders. Documents other than DecisionTest and Invariant are skipped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import DocumentSource
from eastgate.basics.diagnostics import Code, Diagnostic, Reporter, did_you_mean
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.regexes import regex
from eastgate.cluster.question import RequestParts
from eastgate.cluster.unread import Handling
from eastgate.reading.manifests import ANYWHERE, Bounds, around, files_of, read_nodes
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.shapes import Check, check
from eastgate.reports.invariants.model import Quantifier, statement_of
from eastgate.reports.invariants.shapes import KIND as INVARIANT
from eastgate.reports.invariants.shapes import KINDS as INVARIANTS
from eastgate.reports.invariants.shapes import check_namespace
from eastgate.reports.tables.model import BadCase, Case, Rejection, Table
from eastgate.reports.tables.shapes import API_VERSION, KIND, SHAPES
from eastgate.settings import BAD_SETTING, Settings, SettingsError

NO_TABLES = Code("EG0302", "no tables", "A run without tests must not look like a run in which all tests pass.")
NOT_A_TABLE = Code(
    "EG0303",
    "cases in a document of another kind",
    "A document has cases with expected verdicts, or a statement about all requests, or a kind that looks like a "
    "misspelt one. It would be skipped and never run. A decision table has `kind: DecisionTest`, and a statement has "
    "`kind: Invariant`.",
)

_A_TABLE = regex(rf"""\bkind["']?\s*:\s*["']?(?:{"|".join(SHAPES)})\b""")


def read_tables(
    paths: Iterable[str | PathLike[str]],
    base: Settings,
    *,
    follow: bool = False,
    unread: Handling = Handling.BY_KIND,
    cluster: DocumentSource | None = None,
) -> tuple[list[Table], Reporter]:
    """Read every table in the files and folders, including those with errors, and report all errors.

    With `follow`, links that lead out of the folders are followed, and tables may name files anywhere. `unread` applies
    to tables without the field. With a `cluster`, tables are about that cluster: their manifests, their objects and
    their rejections are ignored.
    """
    reporter = Reporter()
    tables: list[Table] = []
    given = [Path(path) for path in paths]
    about_cluster: dict[str, Any] = {
        "manifests": (cluster,),
        "objects": None,
        "rejects": (),
        "environments": (),
    }
    for file in files_of(given, reporter, Bounds.of(given, follow=follow)):
        roots = read_nodes(file)
        nodes = list(filter(_is_meant_as_table, roots.nodes))
        broken = roots.reporter.errors
        if nodes or Path(file) in given or _names_a_table(broken):
            reporter.diagnostics.extend(roots.reporter)  # a broken document beside a table may be intended as a table
            tables.extend([_unreadable_table(file, broken, base)] if broken else [])
        bounds = ANYWHERE if follow else around(file)
        read = [_table(node, Path(file), base, bounds, unread, reporter) for node in nodes]
        tables.extend(read if cluster is None else (replace(each, **about_cluster) for each in read))
    if not any(table.all_cases or table.rejects or table.problem or table._statement for table in tables):
        where = ", ".join(str(path) for path in given)
        if not reporter.errors:
            what, help_ = (KIND, f"write one, of apiVersion {API_VERSION}") if not tables else ("case", "write cases")
            reporter.report(NO_TABLES, f"there is no {what} in {where}", help=help_)
        tables.append(_unreadable_table(where, reporter.errors, base))
    return tables, reporter


def _names_a_table(broken: Iterable[Diagnostic]) -> bool:
    """Return whether a text that could not be parsed seems to be a table."""
    return any(error.span is not None and _A_TABLE.search(error.span.source.text) for error in broken)


def _unreadable_table(name: str, errors: Sequence[Diagnostic], base: Settings, span: Span | None = None) -> Table:
    """Make a table in the place of one that cannot be read."""
    error = errors[0]
    where = f" ({error.span})" if error.span is not None else ""
    table_span = span or error.span or Span(SourceText(name, ""), 1, 1, 1, 1)
    return Table(name, table_span, base, (), None, (), problem=f"it could not be read: {error.message}{where}")


def _is_meant_as_table(node: Node) -> bool:
    """Return whether a document looks like a table, whatever its kind."""
    return _meant_kind(node) is not None


def _meant_kind(node: Node) -> str | None:
    """Return the kind of a table, or the kind that it should have; None if the document is not a table."""
    kind = node.nearest("kind").value
    intended = (kind if kind in SHAPES else did_you_mean(kind, SHAPES)) if isinstance(kind, str) else None
    if intended is not None:
        return intended
    cases = node.nearest("spec", "cases").value
    if isinstance(cases, list) and any("expect" in case for case in cases):
        return KIND
    spec = node.get("spec")
    statements = (spec.get(mode) for mode in Quantifier) if spec is not None else ()
    return INVARIANT if any(each is not None and "from" in each and "to" in each for each in statements) else None


def _table(node: Node, file: Path, base: Settings, bounds: Bounds, handling: Handling, reporter: Reporter) -> Table:
    diagnostics = Reporter()
    kind = _meant_kind(node) or KIND
    check(SHAPES[kind], node, Check(diagnostics, None))
    if kind in INVARIANTS:
        check_namespace(node, Check(diagnostics, None))
    if "kind" not in node or node["kind"].value != kind:
        span = node.nearest("kind").span if "kind" in node else next(iter(node.keys.values()), node).span
        what = "cases" if kind == KIND else "a statement"
        diagnostics.diagnostics.insert(
            0, Diagnostic(NOT_A_TABLE, f"this has {what}, and its kind is not {kind}", span, f"write kind: {kind}")
        )
    version = node.get("apiVersion")
    if version is not None and version.value != API_VERSION:
        message = f"{'a' if kind == KIND else 'an'} {kind} has the apiVersion {API_VERSION}"
        diagnostics.report(NOT_A_TABLE, message, version.span, help=f"write apiVersion: {API_VERSION}")
    if not diagnostics.errors:
        spec = node["spec"]
        settings_node = spec.get("settings")
        try:
            settings = Settings.from_mapping(
                {name: value.plain() for name, value in settings_node.items()} if settings_node else {}, base
            )
        except SettingsError as error:
            diagnostics.report(BAD_SETTING, str(error), settings_node.span if settings_node else node.span)
    reporter.diagnostics.extend(diagnostics)
    if diagnostics.errors:
        name = node.nearest("metadata", "name").value
        return _unreadable_table(name if isinstance(name, str) else str(file), diagnostics.errors, base, node.span)
    answers = spec.get("externalAuth")
    given = {name: answer.text for name, answer in answers.items()} if answers else {}
    cases = [_case(case, index, answers, settings.namespace) for index, case in enumerate(spec.get("cases") or ())]
    return Table(
        name=node["metadata"]["name"].text,
        span=node.span,
        settings=settings,
        manifests=tuple(file.parent / path.text for path in spec.get("manifests") or ()),
        environments=tuple(name.text for name in spec.get("environments") or ()),
        objects=spec.get("objects"),
        jwks={issuer: file.parent / path.text for issuer, path in jwks.items()} if (jwks := spec.get("jwks")) else {},
        cases=tuple(case for case in cases if isinstance(case, Case)),
        bad_cases=tuple(case for case in cases if isinstance(case, BadCase)),
        rejects=tuple(
            Rejection(rejection["policy"].text, _text(rejection, "code"), _text(rejection, "cites"), rejection.span)
            for rejection in spec.get("rejects") or ()
        ),
        bounds=bounds,
        unread=Handling(handling_text) if (handling_text := _text(spec, "unread")) is not None else handling,
        _statement=statement_of(spec, given, _text(node["metadata"], "namespace")) if kind in INVARIANTS else None,
    )


def _case(node: Node, index: int, answers: Node | None, namespace: str) -> Case | BadCase:
    source, destination, name = node["from"].text, node["to"].text, _text(node, "name")
    try:
        question = Question.of(source, destination, namespace=namespace, **_request_parts(node, answers))
    except QuestionError as error:
        return BadCase(name or f"case {index}: {source} -> {destination}", error, _text(node, "cites"), node.span)
    status = node.get("status")
    return Case(
        name or f"case {index}: {question}",
        question,
        node["expect"].text,
        _text(node, "by"),
        _text(node, "cites"),
        node.span,
        status.number if status is not None else None,
        dict(_spans_of_parts(node, answers)),
    )


def _request_parts(node: Node, answers: Node | None) -> RequestParts:
    """Return the parts of the request of a case."""
    http, mcp, port = node.get("http"), node.get("mcp"), node.get("port")
    return {
        "port": port.number if port is not None else None,
        "method": _text(http, "method"),
        "path": _text(http, "path"),
        "host": _text(http, "host"),
        "sni": _text(node, "sni"),
        "headers": _headers(http),
        "mcp_method": _text(mcp, "method"),
        "tool": _text(mcp, "tool"),
        "source_ip": _text(node, "sourceIP"),
        "protocol": _text(node, "protocol"),
        "forwarded_for": _text(node, "forwardedFor"),
        "plaintext": _is_set(node, "plaintext"),
        "http_protocol": _text(http, "protocol"),
        "claims": _plain(node, "claims"),
        "no_token": _is_set(node, "noToken"),
        "external_auth": {name: answer.text for name, answer in answers.items()} if answers else {},
    }


_PARTS = {
    "source": ("from",),
    "method": ("http", "method"),
    "host": ("http", "host"),
    "sni": ("sni",),
    "mcp_method": ("mcp", "method"),
    "tool": ("mcp", "tool"),
}


def _spans_of_parts(node: Node, answers: Node | None) -> Iterator[tuple[tuple[str, str], Span]]:
    """Yield the span of each part of the question that is a name."""
    for part, path in _PARTS.items():
        yield (part, ""), node.nearest(*path).span
    for part, mapping in {
        "headers": node.nearest("http", "headers"),
        "claims": node.nearest("claims"),
        "external_auth": answers,
    }.items():
        if mapping is not None:
            yield from (((part, key), mapping.key_span(key)) for key in mapping.keys)


def _text(node: Node | None, key: str) -> str | None:
    child = node.get(key) if node is not None else None
    return child.text if child is not None else None


def _is_set(node: Node, key: str) -> bool:
    flag = node.get(key)
    return flag is not None and flag.value is True


def _plain(node: Node, key: str) -> dict[str, Plain] | None:
    child = node.get(key)
    return {name: value.plain() for name, value in child.items()} if child is not None else None


def _headers(http: Node | None) -> dict[str, list[str]] | None:
    """Return all values of each header."""
    headers = http.get("headers") if http is not None else None
    if headers is None:
        return None
    lists = ((name, header if isinstance(header.value, list) else [header]) for name, header in headers.items())
    return {name: [value.text for value in values] for name, values in lists}
