"""eastgate.yaml: the settings of a project, in a file.

settings:
  meshMode: ambient
  trustDomain: example.org
"""

from __future__ import annotations

from pathlib import Path

from eastgate.api.reading import ManifestError
from eastgate.diagnostics import Reporter
from eastgate.diagnostics.printable import printable
from eastgate.manifests import Bounds, read_nodes
from eastgate.manifests.codes import LEADS_OUT
from eastgate.manifests.shapes import Check, Field, MapOf, Record, Text, check
from eastgate.settings import Settings

__all__ = ["read_config"]

_CONFIG: Record[None] = Record("eastgate.yaml", {"settings": Field(MapOf(Text(), "a mapping of settings"))})


def read_config(path: Path, *, explicit: bool = True) -> Settings:
    """Read the settings in a file. Raises ManifestError or SettingsError where it has errors.

    One that is not `explicit` was looked up in a folder, and must not lead out of it.
    """
    reporter = Reporter()
    if not explicit and not Bounds.of([path.parent]).hold(path):
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
        section = node.get("settings")
        settings = Settings.from_mapping(
            {name: setting.value for name, setting in section.items()} if section else {}, settings
        )
    return settings
