"""eastgate.yaml: the settings of a project, in a file.

settings:
  meshMode: ambient
  trustDomain: example.org
"""

from __future__ import annotations

from pathlib import Path

from eastgate.authority import ManifestError
from eastgate.schema import Check, Field, MapOf, Record, Text, check
from eastgate.settings import Settings
from eastgate.sources import read_nodes

__all__ = ["read_config"]

_CONFIG: Record[None] = Record("eastgate.yaml", {"settings": Field(MapOf(Text(), "a mapping of settings"))})


def read_config(path: Path) -> Settings:
    """The settings in a file. Raises ManifestError or SettingsError where it has errors."""
    roots = read_nodes(path)
    reporter, nodes = roots.reporter, roots.nodes
    for node in nodes:
        check(_CONFIG, node, Check(reporter, None))
    if reporter.errors:
        raise ManifestError(reporter.errors)
    settings = Settings()
    for node in nodes:
        written = node.get("settings")
        settings = Settings.of({name: one.value for name, one in written.items()} if written else {}, settings)
    return settings
