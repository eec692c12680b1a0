"""The original AuthConfigs of Authorino's own documentation and tests, with the Secrets beside them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.authorino.running import Manifest, module_folder
from tests.authorino.serving import is_config

_BLOCK = re.compile(r"^ *```[a-z]*\n(.*?)^ *```", re.S | re.M)
_HERE_DOCUMENT = re.compile(r"kubectl (?:-n (\S+) )?apply -f -\s*<<-?\s*EOF\n(.*?)\n\s*EOF", re.S)


@dataclass(frozen=True)
class Documented:
    """An AuthConfig, and the Secrets of the page that it is on."""

    origin: str
    config: Manifest
    secrets: tuple[Manifest, ...]


def documented() -> Iterator[Documented]:
    """Yield every AuthConfig of the Authorino that the modules pin."""
    root = module_folder()
    for file in sorted([*root.rglob("docs/**/*.md"), *root.rglob("tests/**/*.yaml")]):
        objects = list(_objects(file))
        secrets = {_name(each): each for each in objects if each.get("kind") == "Secret"}
        for number, config in enumerate(each for each in objects if is_config(each)):
            if (config.get("spec") or {}).get("hosts"):
                yield Documented(f"{file.relative_to(root)} {number}", config, tuple(secrets.values()))


def _name(manifest: Manifest) -> tuple[str, str]:
    return manifest["metadata"].get("namespace", "default"), manifest["metadata"]["name"]


def _objects(file: Path) -> Iterator[Manifest]:
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".yaml":
        yield from _documents(text, None)
        return
    for block in _BLOCK.findall(text):
        applied = _HERE_DOCUMENT.findall(textwrap.dedent(block))
        for namespace, written in applied:
            yield from _documents(written.replace("\\\\", "\\"), namespace or None)  # in the form of a shell
        if not applied:
            yield from _documents(textwrap.dedent(block), None)


def _documents(text: str, namespace: str | None) -> Iterator[Manifest]:
    """Yield the objects of a text. Text that is no YAML is prose or a command."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return
    for document in documents:
        if isinstance(document, dict) and isinstance(document.get("metadata"), dict) and "kind" in document:
            placed = {"namespace": namespace} if namespace else {}
            yield {**document, "metadata": {**document["metadata"], **placed}}
