"""eastgate.yaml: the settings of a project, and the findings of lint that it ignores, in a file.

settings:
  meshMode: ambient
  trustDomain: example.org
lint:
  ignore:
  - {code: EG6003, object: AuthorizationPolicy/shop/*, reason: the operator opens the port}
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from eastgate.authority.reading import ManifestError
from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests import Bounds, read_nodes
from eastgate.reading.manifests.codes import LEADS_OUT
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Check, Field, ListOf, MapOf, Record, Text, check, quoted
from eastgate.reading.manifests.shapes.codes import NOT_A_CHOICE
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class LintIgnore:
    """A finding that a project ignores: its code, and a pattern for the names of its objects."""

    code: str
    object: str
    span: Span


def _code(node: Node, to: Check[None]) -> None:
    if not _CODE.fullmatch(node.text):
        message = f"{quoted(node.text)} is not a code of lint"
        to.report(NOT_A_CHOICE, message, node, help="write one such as EG6003")


def _reason(node: Node, to: Check[None]) -> None:
    if not node.text.strip():
        to.report(NOT_A_CHOICE, "a reason is not empty", node, help="write why the finding is ignored")


_CODE = regex(r"EG\d{4}")
_IGNORE: Record[None] = Record(
    "an entry of `ignore`",
    {
        "code": Field(Text("a code", _code), required=True),
        "reason": Field(Text("a reason", _reason), required=True, help="write why the finding is ignored"),
        "object": Field(Text("a pattern of objects")),
    },
)
_CONFIG: Record[None] = Record(
    "eastgate.yaml",
    {
        "settings": Field(MapOf(Text(), "a mapping of settings")),
        "lint": Field(Record("`lint`", {"ignore": Field(ListOf(_IGNORE))})),
    },
)


def read_config(file: str | None) -> Settings:
    """Read the settings of a project in a file, or in eastgate.yaml if there is one.

    Raises ManifestError or SettingsError if it has errors.
    """
    settings = Settings()
    for node in _read(file):
        section = node.get("settings")
        settings = Settings.from_mapping(
            {name: setting.value for name, setting in section.items()} if section else {}, settings
        )
    return settings


def read_ignores(file: str | None) -> tuple[LintIgnore, ...]:
    """Read the findings that a project ignores, in the same file. Raises ManifestError if it has errors."""
    sections = [section for node in _read(file) if (section := node.get("lint")) is not None]
    entries = [entry for section in sections for entry in section.get("ignore") or ()]
    return tuple(
        LintIgnore(entry["code"].text, entry["object"].text if "object" in entry else "*", entry.span)
        for entry in entries
    )


def _read(file: str | None) -> Sequence[Node]:
    """Read the file. A file that was found in a folder must not lead out of that folder."""
    path, reporter = Path(file or "eastgate.yaml"), Reporter()
    if not file and not os.path.lexists(path):
        return ()
    if not file and not Bounds.of([path.parent]).hold(path):
        message = f"`{printable(str(path))}` leads out of its folder, and is not followed"
        reporter.report(LEADS_OUT, message, help=f"name it: --config {printable(str(path))}")
        raise ManifestError(reporter.errors)
    roots = read_nodes(path)
    reporter, nodes = roots.reporter, roots.nodes
    for node in nodes:
        check(_CONFIG, node, Check(reporter, None))
    if reporter.errors:
        raise ManifestError(reporter.errors)
    return nodes
