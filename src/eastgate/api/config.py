"""eastgate.yaml: the settings of a project, in a file.

settings:
  meshMode: ambient
  trustDomain: example.org
"""

from __future__ import annotations

from pathlib import Path

from eastgate.api.authority import ManifestError
from eastgate.diagnostics import Reporter
from eastgate.diagnostics.printable import printable
from eastgate.manifests import Bounds, read_nodes
from eastgate.manifests.codes import LEADS_OUT
from eastgate.manifests.shapes import Check, Field, MapOf, Record, Text, check
from eastgate.settings import Settings

__all__ = ["read_config"]

_CONFIG: Record[None] = Record("eastgate.yaml", {"settings": Field(MapOf(Text(), "a mapping of settings"))})


def read_config(path: Path, *, named: bool = True) -> Settings:
    """The settings in a file. Raises ManifestError or SettingsError where it has errors.

    One that nobody `named` was found in its folder, and must not lead out of it.
    """
    reporter = Reporter()
    if not named and not Bounds.of([path.parent]).hold(path):
        message = f"`{printable(str(path))}` leads out of its folder, and is not followed"
        reporter.report(LEADS_OUT, message, help=f"name it: --config {printable(str(path))}")
        raise ManifestError(reporter.errors)
    roots = read_nodes(path)
    reporter, nodes = roots.reporter, roots.nodes
    for node in nodes:
        check(_CONFIG, node, Check(reporter, None))
    if reporter.errors:
        raise ManifestError(reporter.errors)
    settings = Settings()
    for node in nodes:
        written = node.get("settings")
        settings = Settings.from_mapping(
            {name: one.value for name, one in written.items()} if written else {}, settings
        )
    return settings
