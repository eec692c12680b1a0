"""Renders manifests as text: readable, and the same each time."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from eastgate.basics.diagnostics.printable import json_text
from eastgate.convert.model import Manifest
from eastgate.reading.manifests.yaml_text import PrintableDumper


class _Dumper(PrintableDumper):
    """Lists indented under their key, and no aliases: each manifest stands for itself."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - always indented
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - of any data
        return True


def as_yaml(manifests: Sequence[Manifest]) -> str:
    """Return YAML documents, with keys in the order in which they were put."""
    return "---\n".join(
        yaml.dump(manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120) for manifest in manifests
    )


def as_json(manifests: Sequence[Manifest]) -> str:
    """Return a List, which kubectl takes."""
    return json_text({"apiVersion": "v1", "kind": "List", "items": list(manifests)}, indent=2) + "\n"
