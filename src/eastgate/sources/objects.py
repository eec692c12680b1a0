"""From values to Kubernetes objects: lists are opened, what is no manifest is passed over, doubles are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePath

from eastgate.sources.codes import DUPLICATE_OBJECT, FIELD_TYPE, TOO_DEEP
from eastgate.sources.document import Document, Reading, Stretch
from eastgate.sources.findings import shown, suggestion
from eastgate.sources.heads import Head, Inherited, diagnose, diagnose_type, first_key, head, shallow
from eastgate.sources.node import Node, Plain
from eastgate.sources.plain import PlainDocument
from eastgate.sources.text import Text

__all__ = ["Collector", "Positioned"]

Positioned = Callable[[str, str], bool]
"""Whether the content of the objects of an `apiVersion` and a `kind` is wanted with positions."""

_NOT_MANIFESTS = re.compile(r"(?:kustomization|Chart|values[^/]*|eastgate)\.ya?ml|Kustomization")
_KUSTOMIZE = "kustomize.config.k8s.io/"
_MOST_LISTS = 10  # lists inside each other


class Collector:
    """Adds the objects in the texts of one run to a reading."""

    def __init__(self, reading: Reading, positioned: Positioned) -> None:
        self._reading = reading
        self._positioned = positioned

    def wants(self, api_version: str, kind: str) -> bool:
        """Whether positions are wanted for an object of this kind."""
        return self._positioned(api_version, kind)

    def add_plain(self, document: PlainDocument, text: Text, *, is_json: bool) -> None:
        """Add what a fast reader has read. Positions are read for those who want them and for findings alone."""
        value = document.value
        if value is None:
            return
        stretch = Stretch(text, is_json, *document.extent)
        if not isinstance(value, dict) or not _is_good_list(value):
            self._add_value(value, stretch, None, is_root=True)
            return
        inherited = _inherited(value["kind"], value["apiVersion"])
        items = value["items"]
        for item, extent in zip(items if isinstance(items, list) else (), document.items, strict=True):
            self._add_value(item, Stretch(text, is_json, *extent), inherited, is_root=False)

    def _add_value(self, value: Plain, stretch: Stretch, inherited: Inherited | None, *, is_root: bool) -> None:
        found = head(value, inherited) if isinstance(value, dict) else None
        if found is None or not isinstance(value, dict) or _is_list(found.kind, value):
            self.add_node(stretch.node(), stretch, inherited, depth=0 if is_root else 1)
        elif self._positioned(found.api_version, found.kind):
            self._add(found, stretch.node(), None, stretch)
        else:
            self._add(found, None, value, stretch)

    def add_node(
        self, node: Node, origin: Stretch | Node, inherited: Inherited | None = None, *, depth: int = 0
    ) -> None:
        """Add the object, or the objects of the list, that a node with positions is."""
        if depth == 0 and (node.value is None or self._is_skipped(node)):
            return
        data = shallow(node)
        kind = data.get("kind")
        if isinstance(kind, str) and _is_list(kind, node.value if isinstance(node.value, dict) else {}):
            self._open_list(node, origin, kind, depth)
            return
        found = head(data, inherited)
        if found is None:
            diagnose(node, inherited, self._reading.reporter)
        elif self._positioned(found.api_version, found.kind):
            self._add(found, node, None, origin)
        else:
            plain = node.plain()
            assert isinstance(plain, dict)  # noqa: S101 - it has a head
            self._add(found, None, plain, origin)

    def _open_list(self, node: Node, origin: Stretch | Node, kind: str, depth: int) -> None:
        reporter = self._reading.reporter
        diagnose_type(node, None, reporter)
        items = node.get("items")
        if items is None:
            near = suggestion("items", node.keys)
            span = node.key_span(near) if near else first_key(node)
            help_ = f"did you mean `items` instead of `{shown(near)}`?" if near else "write `items: []` if it is empty"
            reporter.report(FIELD_TYPE, f"this {shown(kind)} has no `items`", span, help=help_)
        elif items.value is not None and not isinstance(items.value, list):
            message = f"`items` must be a list, not {items.kind}"
            reporter.report(FIELD_TYPE, message, items.span, help="start each object with `- `")
        elif depth >= _MOST_LISTS:
            message = f"lists stand inside each other more than {_MOST_LISTS} levels deep"
            reporter.report(TOO_DEEP, message, items.span, help="write the objects into one list")
        else:
            inherited = _inherited(kind, shallow(node).get("apiVersion"))
            for index, item in enumerate(items):
                inner = item if isinstance(origin, Node) else origin.at("items", index)
                self.add_node(item, inner, inherited, depth=depth + 1)

    def _is_skipped(self, node: Node) -> bool:
        """Whether a root is passed over: what tools keep beside manifests, in files that are known for it."""
        name = PurePath(node.source.name).name
        if not isinstance(node.value, dict) or not _NOT_MANIFESTS.fullmatch(name):
            return False
        api_version = shallow(node).get("apiVersion")
        kustomize = isinstance(api_version, str) and api_version.startswith(_KUSTOMIZE)
        if "apiVersion" in node and "kind" in node and not kustomize:
            return False
        self._reading.skipped[name] = self._reading.skipped.get(name, 0) + 1
        return True

    def _add(self, found: Head, node: Node | None, data: dict[str, Plain] | None, origin: Stretch | Node) -> None:
        document = Document(*found, node, data, origin)
        identity = (document.group, found.kind, found.namespace or "default", found.name)
        first = self._reading.seen.setdefault(identity, document)
        if first is document:
            self._reading.documents.append(document)
            return
        where = f"{found.namespace}/{found.name}" if found.namespace else found.name
        self._reading.reporter.report(
            DUPLICATE_OBJECT,
            f"{shown(found.kind)} `{shown(where)}` is written twice",
            document.locate("metadata", "name"),
            help=f"the first one is at {first.span}; keep one of them",
        )


def _is_list(kind: str, data: dict[str, Plain] | dict[str, Node]) -> bool:
    """Whether an object is a list of objects: a `List`, or a `PodList`, which has items and never a name."""
    return kind == "List" or (kind.endswith("List") and "items" in data and not _has_name(data.get("metadata")))


def _has_name(metadata: Plain | Node) -> bool:
    return "name" in metadata if isinstance(metadata, dict | Node) else False


def _is_good_list(data: dict[str, Plain]) -> bool:
    """Whether the fast way can open a list: nothing about it needs a finding."""
    kind, api_version = data.get("kind"), data.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str) or not api_version:
        return False
    items = data.get("items")
    return _is_list(kind, data) and isinstance(items, list) and all(isinstance(item, dict) for item in items)


def _inherited(kind: Plain, api_version: Plain) -> Inherited | None:
    """What the entries of a list are; a plain `List` does not say."""
    if not isinstance(kind, str) or not isinstance(api_version, str) or kind == "List":
        return None
    return Inherited(api_version, kind.removesuffix("List"))
