"""Files and folders into tables. Documents that are no DecisionTest are passed over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path

from eastgate.diagnostics import Code, Reporter
from eastgate.questions import Question
from eastgate.schema import Check, check
from eastgate.settings import BAD_SETTING, Settings, SettingsError
from eastgate.sources import ANYWHERE, Bounds, around, files_of, read_nodes
from eastgate.sources.node import Node, Plain
from eastgate.tables.model import Case, Rejection, Table
from eastgate.tables.shapes import API_VERSION, DECISION_TEST, KIND
from eastgate.unconsidered import Handling

__all__ = ["read_tables"]

NO_TABLES = Code("EG0302", "no tables", "A run in which nothing is tested must not look like one in which all is well.")


def read_tables(
    paths: Iterable[str | PathLike[str]],
    base: Settings,
    *,
    follow: bool = False,
    unread: Handling = Handling.BY_KIND,
) -> tuple[list[Table], Reporter]:
    """Every table in the files and folders, with everything that is wrong with them.

    With `follow`, links that lead out of the folders are followed, and tables may name files anywhere. `unread` holds
    for tables that do not say it themselves.
    """
    reporter = Reporter()
    tables: list[Table] = []
    given = [Path(path) for path in paths]
    for file in files_of(given, reporter, Bounds.of(given, follow=follow)):
        roots = read_nodes(file)
        if any(map(_is_table, roots.nodes)) or Path(file) in given:
            reporter.found.extend(roots.reporter)  # what is wrong beside a table may be a table
        for node in filter(_is_table, roots.nodes):
            tables.extend(_table(node, Path(file), base, ANYWHERE if follow else around(file), unread, reporter))
    if not tables and not reporter.errors:
        where = ", ".join(str(path) for path in given)
        reporter.report(NO_TABLES, f"there is no {KIND} in {where}", help=f"write one, of apiVersion {API_VERSION}")
    return tables, reporter


def _is_table(node: Node) -> bool:
    kind = node.get("kind")
    return kind is not None and kind.value == KIND


def _table(
    node: Node, file: Path, base: Settings, bounds: Bounds, handling: Handling, reporter: Reporter
) -> Iterator[Table]:
    found = Reporter()
    check(DECISION_TEST, node, Check(found, None))
    reporter.found.extend(found)
    if found.errors:
        return
    spec = node["spec"]
    written = spec.get("settings")
    try:
        settings = Settings.of({name: one.plain() for name, one in written.items()} if written else {}, base)
    except SettingsError as error:
        reporter.report(BAD_SETTING, str(error), written.span if written else node.span)
        return
    answers = spec.get("externalAuth")
    external = {name: one.text for name, one in answers.items()} if answers else {}
    yield Table(
        name=node["metadata"]["name"].text,
        span=node.span,
        settings=settings,
        manifests=tuple(file.parent / one.text for one in spec.get("manifests") or ()),
        objects=spec.get("objects"),
        jwks={issuer: file.parent / one.text for issuer, one in jwks.items()} if (jwks := spec.get("jwks")) else {},
        cases=tuple(_case(one, index, external) for index, one in enumerate(spec.get("cases") or ())),
        rejects=tuple(
            Rejection(one["policy"].text, _text(one, "code"), _text(one, "cites"), one.span)
            for one in spec.get("rejects") or ()
        ),
        bounds=bounds,
        unread=Handling(said) if (said := _text(spec, "unread")) is not None else handling,
    )


def _case(node: Node, index: int, external: dict[str, str]) -> Case:
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
        claims=_plain(node, "claims"),
        external_auth=external,
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
    )


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
