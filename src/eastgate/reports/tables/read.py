"""Files and folders into tables. Documents that are no DecisionTest are passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path

from eastgate.api.questions import Question
from eastgate.diagnostics import Code, Diagnostic, Reporter, did_you_mean
from eastgate.diagnostics.spans import SourceText, Span
from eastgate.manifests import ANYWHERE, Bounds, around, files_of, read_nodes
from eastgate.manifests.node import Node, Plain
from eastgate.manifests.shapes import Check, check
from eastgate.regexes import regex
from eastgate.reports.tables.model import Case, Rejection, Table
from eastgate.reports.tables.shapes import API_VERSION, DECISION_TEST, KIND
from eastgate.settings import BAD_SETTING, Settings, SettingsError
from eastgate.unread import Handling

__all__ = ["read_tables"]

NO_TABLES = Code("EG0302", "no tables", "A run in which nothing is tested must not look like one in which all is well.")
NOT_A_TABLE = Code(
    "EG0303",
    "cases in something else",
    "A document has cases with what they expect, or a kind that is nearly that of a table, and so it would be passed "
    "over and its cases never run. A table has `kind: DecisionTest`.",
)

_A_TABLE = regex(rf"""\bkind["']?\s*:\s*["']?{KIND}\b""")


def read_tables(
    paths: Iterable[str | PathLike[str]],
    base: Settings,
    *,
    follow: bool = False,
    unread: Handling = Handling.BY_KIND,
) -> tuple[list[Table], Reporter]:
    """Every table in the files and folders, also one that cannot be read, with everything that is wrong with them.

    With `follow`, links that lead out of the folders are followed, and tables may name files anywhere. `unread` holds
    for tables that do not say it themselves.
    """
    reporter = Reporter()
    tables: list[Table] = []
    given = [Path(path) for path in paths]
    for file in files_of(given, reporter, Bounds.of(given, follow=follow)):
        roots = read_nodes(file)
        found = list(filter(_seems_a_table, roots.nodes))
        broken = roots.reporter.errors
        if found or Path(file) in given or _names_a_table(broken):
            reporter.found.extend(roots.reporter)  # what is wrong beside a table may be a table
            tables.extend([_unread(file, broken, base)] if broken else [])
        bounds = ANYWHERE if follow else around(file)
        tables.extend(_table(node, Path(file), base, bounds, unread, reporter) for node in found)
    if not any(one.cases or one.rejects or one.problem for one in tables):
        where = ", ".join(str(path) for path in given)
        if not reporter.errors:
            what, help_ = (KIND, f"write one, of apiVersion {API_VERSION}") if not tables else ("case", "write cases")
            reporter.report(NO_TABLES, f"there is no {what} in {where}", help=help_)
        tables.append(_unread(where, reporter.errors, base))
    return tables, reporter


def _names_a_table(broken: Iterable[Diagnostic]) -> bool:
    """Whether a text that is broken before anybody can tell what it is seems to be a table."""
    return any(one.span is not None and _A_TABLE.search(one.span.source.text) for one in broken)


def _unread(name: str, errors: Sequence[Diagnostic], base: Settings, span: Span | None = None) -> Table:
    """A table that stands for one that cannot be read."""
    error = errors[0]
    place = f" ({error.span})" if error.span is not None else ""
    found = span or error.span or Span(SourceText(name, ""), 1, 1, 1, 1)
    return Table(name, found, base, (), None, (), problem=f"it could not be read: {error.message}{place}")


def _is_table(node: Node) -> bool:
    kind = node.get("kind")
    return kind is not None and kind.value == KIND


def _seems_a_table(node: Node) -> bool:
    """Whether somebody means this to be a table, whatever kind it says it is of."""
    kind = node.nearest("kind").value
    if _is_table(node) or (isinstance(kind, str) and did_you_mean(kind, (KIND,))):
        return True
    cases = node.nearest("spec", "cases").value
    return isinstance(cases, list) and any("expect" in one for one in cases)


def _table(node: Node, file: Path, base: Settings, bounds: Bounds, handling: Handling, reporter: Reporter) -> Table:
    found = Reporter()
    check(DECISION_TEST, node, Check(found, None))
    if not _is_table(node):
        place = node.nearest("kind").span if "kind" in node else next(iter(node.keys.values()), node).span
        found.found.insert(
            0, Diagnostic(NOT_A_TABLE, f"this has cases, and is no {KIND}", place, f"write kind: {KIND}")
        )
    version = node.get("apiVersion")
    if version is not None and version.value != API_VERSION:
        message = f"a {KIND} has the apiVersion {API_VERSION}"
        found.report(NOT_A_TABLE, message, version.span, help=f"write apiVersion: {API_VERSION}")
    if not found.errors:
        spec = node["spec"]
        written = spec.get("settings")
        try:
            settings = Settings.from_mapping(
                {name: one.plain() for name, one in written.items()} if written else {}, base
            )
        except SettingsError as error:
            found.report(BAD_SETTING, str(error), written.span if written else node.span)
    reporter.found.extend(found)
    if found.errors:
        name = node.nearest("metadata", "name").value
        return _unread(name if isinstance(name, str) else str(file), found.errors, base, node.span)
    answers = spec.get("externalAuth")
    return Table(
        name=node["metadata"]["name"].text,
        span=node.span,
        settings=settings,
        manifests=tuple(file.parent / one.text for one in spec.get("manifests") or ()),
        objects=spec.get("objects"),
        jwks={issuer: file.parent / one.text for issuer, one in jwks.items()} if (jwks := spec.get("jwks")) else {},
        cases=tuple(_case(one, index, answers) for index, one in enumerate(spec.get("cases") or ())),
        rejects=tuple(
            Rejection(one["policy"].text, _text(one, "code"), _text(one, "cites"), one.span)
            for one in spec.get("rejects") or ()
        ),
        bounds=bounds,
        unread=Handling(said) if (said := _text(spec, "unread")) is not None else handling,
    )


def _case(node: Node, index: int, answers: Node | None) -> Case:
    http, mcp = node.get("http"), node.get("mcp")
    port = node.get("port")
    question = Question(
        source=node["from"].text,
        to=node["to"].text,
        port=port.number if port is not None else None,
        method=_text(http, "method"),
        path=_text(http, "path"),
        host=_text(http, "host"),
        sni=_text(node, "sni"),
        headers=_headers(http),
        mcp_method=_text(mcp, "method"),
        tool=_text(mcp, "tool"),
        source_ip=_text(node, "sourceIP"),
        http_protocol=_text(http, "protocol"),
        claims=_plain(node, "claims"),
        external_auth={name: one.text for name, one in answers.items()} if answers else {},
    )
    name = _text(node, "name") or f"case {index}: {question}"
    status = node.get("status")
    return Case(
        name,
        question,
        node["expect"].text,
        _text(node, "by"),
        _text(node, "cites"),
        node.span,
        status.number if status is not None else None,
        dict(_places(node, answers)),
    )


_PARTS = {
    "source": ("from",),
    "method": ("http", "method"),
    "host": ("http", "host"),
    "sni": ("sni",),
    "mcp_method": ("mcp", "method"),
    "tool": ("mcp", "tool"),
}


def _places(node: Node, answers: Node | None) -> Iterator[tuple[tuple[str, str], Span]]:
    """Where each part of the question stands that names something."""
    for part, path in _PARTS.items():
        yield (part, ""), node.nearest(*path).span
    for part, named in {
        "headers": node.nearest("http", "headers"),
        "claims": node.nearest("claims"),
        "external_auth": answers,
    }.items():
        if named is not None:
            yield from (((part, key), named.key_span(key)) for key in named.keys)


def _text(node: Node | None, key: str) -> str | None:
    found = node.get(key) if node is not None else None
    return found.text if found is not None else None


def _plain(node: Node, key: str) -> dict[str, Plain] | None:
    found = node.get(key)
    return {name: one.plain() for name, one in found.items()} if found is not None else None


def _headers(http: Node | None) -> dict[str, list[str]] | None:
    """All values of each header."""
    found = http.get("headers") if http is not None else None
    if found is None:
        return None
    lists = ((name, one if isinstance(one.value, list) else [one]) for name, one in found.items())
    return {name: [one.text for one in values] for name, values in lists}
