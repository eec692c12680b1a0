"""Collects Kubernetes objects: opens lists, skips documents that are not manifests, finds duplicates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import DUPLICATE_OBJECT, FIELD_TYPE, TOO_DEEP, UNFINISHED_LIST
from eastgate.reading.manifests.document import Document, PlainDocument, ReadResult, Stretch
from eastgate.reading.manifests.findings import shown, suggestion
from eastgate.reading.manifests.heads import (
    Head,
    Inherited,
    diagnose,
    diagnose_type,
    first_key,
    head,
    intended_value,
    may_be_manifest,
    shallow,
    with_generated_name,
)
from eastgate.reading.manifests.node import Node, Plain
from eastgate.reading.manifests.placeholders import variable_in
from eastgate.reading.manifests.templates import is_template, objects_of
from eastgate.reading.manifests.text import DecodedText

Positioned = Callable[[str, str], bool]
"""Whether objects of an `apiVersion` and a `kind` are read with positions."""

Matters = Callable[[str, str], bool]
"""Whether objects of an `apiVersion` and a `kind` can change an answer. Either may be unknown (empty)."""

Differ = Callable[[Document, Document], str | None]
"""Return the fields in which two documents of one object differ, empty if they are unknown. None means that they agree
in all fields that Eastgate reads."""

_NOT_MANIFESTS = regex(
    r"(?:kustomization|Chart|(?:[^/]*[-_.])?values[^/]*|eastgate|zarf|uds-(?:bundle|config)|skaffold|mkdocs|(?:docker-)?compose[^/]*)"
    r"\.ya?ml|Kustomization"
)
_OTHER_TOOLS = frozenset({"ZarfInitConfig", "ZarfPackageConfig", "UDSBundle", "pipeline"})
"""Kinds of tools that write `kind` and `metadata` into files of their own, without an API version."""
_SOPS, _ENCRYPTED = "sops", "ENC["  # the key of SOPS in a manifest, and the prefix of its encrypted values
_KUSTOMIZE = "kustomize.config.k8s.io/"
_MAX_LIST_DEPTH = 10


def everything(api_version: str, kind: str) -> bool:  # noqa: ARG001 - the signature of `Matters`
    """Return True: all objects matter."""
    return True


def always_differ(first: Document, second: Document) -> str | None:  # noqa: ARG001 - the signature of `Differ`
    """Return that two objects of one name always differ."""
    return ""


class Collector:
    """Adds the objects in the texts of one run to a result."""

    def __init__(
        self,
        reading: ReadResult,
        positioned: Positioned,
        matters: Matters = everything,
        differ: Differ = always_differ,
        *,
        takes: Matters | None = None,
        skim: bool = False,
        namespace: str = "default",
    ) -> None:
        self._reading = reading
        self._positioned = positioned
        self._matters = matters
        self.takes = takes or matters
        self._differ = differ
        self.namespace = namespace
        self._named_by_us = 0
        self.skims = skim
        self.explicit = True
        """Whether the user named the present text. It should then have manifests."""
        self.roots = 0
        """The number of documents with content."""
        self._foreign: list[Node] = []

    @property
    def objects(self) -> int:
        """Return the number of objects, used or not."""
        return len(self._reading.documents) + self._reading.unused

    def end_text(self, objects: int) -> None:
        """End a text; `objects` is the number of objects before it. A document that is not an object is an error only
        if the text has no object.
        """
        for node in self._foreign:
            if self.objects > objects:
                self._skip(node)
            else:
                diagnose(node, None, self._reading.reporter)
        self._foreign.clear()

    def wants(self, api_version: str, kind: str) -> bool:
        """Return whether objects of this kind are read with positions."""
        return self._positioned(api_version, kind)

    def is_used(self, api_version: str, kind: str) -> bool:
        """Return whether objects of this kind can change an answer."""
        return self._matters(api_version, kind)

    def add_torn(self, document: Document, error: Diagnostic) -> None:
        """Add an object whose head could be read, but not its rest."""
        self._reading.head_only.append((document, error))

    def add_template(self, document: Document | None, finding: Diagnostic) -> None:
        """Add a template text, with the object in its head if that is certain."""
        self._reading.templates.append((document, finding))

    def pass_over(self, api_version: str, kind: str, text: str) -> None:
        """Count an object of an unused kind."""
        self.roots += 1
        self._reading.unused += 1
        self._reading.custom.add_text(api_version, kind, text, self.namespace)

    def add_plain(self, document: PlainDocument, text: DecodedText, *, is_json: bool) -> None:
        """Add the result of a fast reader. Positions are read only if they are requested, and for findings."""
        value = document.value
        if value is None:
            return
        stretch = Stretch(text, is_json, *document.extent)
        if not isinstance(value, dict) or not _is_good_list(value):
            self._add_value(value, stretch, None, is_root=True)
            return
        self.roots += 1
        inherited = _inherited(value["kind"], value["apiVersion"])
        items = value["items"]
        for item, extent in zip(items if isinstance(items, list) else (), document.items, strict=True):
            self._add_value(item, Stretch(text, is_json, *extent), inherited, is_root=False)

    def _add_value(self, value: Plain, stretch: Stretch, inherited: Inherited | None, *, is_root: bool) -> None:
        head_of = head(value, inherited) if isinstance(value, dict) else None
        is_opened = isinstance(value, dict) and is_template(str(value.get("apiVersion")), str(value.get("kind")))
        if head_of is None or not isinstance(value, dict) or is_opened or _is_list(head_of.kind, value):
            self.add_node(stretch.node(), stretch, inherited, depth=0 if is_root else 1)
            return
        self.roots += is_root
        node = stretch.node() if self._positioned(head_of.api_version, head_of.kind) else None
        self._add(head_of, node, value if node is None else None, stretch)

    def add_node(
        self, node: Node, origin: Stretch | Node, inherited: Inherited | None = None, *, depth: int = 0
    ) -> bool:
        """Add the object, or the objects of the list, in a node with positions. Return whether it matters."""
        if depth == 0:
            self.roots += node.value is not None
            if node.value is None or self._is_skipped(node):
                return False
        data = shallow(node)
        kind = data.get("kind")
        if isinstance(kind, str) and _is_list(kind, node.value if isinstance(node.value, dict) else {}):
            return self._open_list(node, origin, kind, depth)
        if isinstance(kind, str) and depth < _MAX_LIST_DEPTH and is_template(str(data.get("apiVersion")), kind):
            self._reading.unused += 1
            added = [self.add_node(entry, entry, depth=depth + 1) for entry in objects_of(node)]
            return any(added)
        head_of = head(data, inherited) or self._head_with_generated_name(data, inherited)
        if head_of is None:
            if not self._may_matter(node, inherited):
                self._skip(node)
                return False
            if self.explicit and inherited is None and _is_foreign(node):
                self._foreign.append(node)
                return True
            diagnose(node, inherited, self._reading.reporter)
            return True
        if self._positioned(head_of.api_version, head_of.kind):
            self._add(head_of, node, None, origin)
            return True
        plain = node.plain()
        assert isinstance(plain, dict)  # noqa: S101 - it has a head
        self._add(head_of, None, plain, origin)
        return self._matters(head_of.api_version, head_of.kind)

    def _head_with_generated_name(self, data: dict[str, Plain], inherited: Inherited | None) -> Head | None:
        """Return the head of an object with a generated name; None for policies, which need a known name."""
        with_name = with_generated_name(data, self._named_by_us + 1)
        head_of = head(with_name, inherited) if with_name is not None else None
        if head_of is None or self._positioned(head_of.api_version, head_of.kind):
            return None
        self._named_by_us += 1
        return head_of

    def _may_matter(self, node: Node, inherited: Inherited | None) -> bool:
        """Return whether a value without a valid head may be an object that matters, or was named by the user."""
        if inherited is not None:
            return self._matters(*inherited)
        if not isinstance(node.value, dict):
            return self.explicit or _has_objects(node)
        api_version, kind = intended_value(node, "apiVersion"), intended_value(node, "kind")
        if api_version is None and kind is None:
            return self.explicit
        if api_version and kind:
            return self._matters(api_version, kind)
        is_nameless = api_version is None and len(node.value) > 1 and intended_value(node, "metadata") is None
        if kind in _OTHER_TOOLS or (is_nameless and "spec" not in node):
            return self.explicit  # for example, values of a chart: kubectl accepts nothing without a name
        return self.explicit or "metadata" in node or self._matters(api_version or "", kind or "")

    def _open_list(self, node: Node, origin: Stretch | Node, kind: str, depth: int) -> bool:
        reporter = self._reading.reporter
        items = node.get("items")
        api_version = intended_value(node, "apiVersion")
        if kind != "List" and not self._matters(api_version or "", kind.removesuffix("List")):
            if not api_version or items is None or not isinstance(items.value, list):
                self._skip(node)
                return False
        else:
            diagnose_type(node, None, reporter)
            _diagnose_rest(node, kind, reporter)
        if items is None:
            near = suggestion("items", node.keys)
            span = node.key_span(near) if near else first_key(node)
            help_ = f"did you mean `items` instead of `{shown(near)}`?" if near else "write `items: []` if it is empty"
            reporter.report(FIELD_TYPE, f"this {shown(kind)} has no `items`", span, help=help_)
        elif items.value is not None and not isinstance(items.value, list):
            message = f"`items` must be a list, not {items.kind}"
            reporter.report(FIELD_TYPE, message, items.span, help="start each object with `- `")
        elif depth >= _MAX_LIST_DEPTH:
            message = f"lists stand inside each other more than {_MAX_LIST_DEPTH} levels deep"
            reporter.report(TOO_DEEP, message, items.span, help="write the objects into one list")
        else:
            inherited = _inherited(kind, shallow(node).get("apiVersion"))
            if isinstance(origin, Stretch) and not origin.path:
                origin.keep(node)
            for index, item in enumerate(items):
                inner = item if isinstance(origin, Node) else origin.at("items", index)
                self.add_node(item, inner, inherited, depth=depth + 1)
        return True

    def _skip(self, node: Node) -> None:
        """Count a document that is not a manifest."""
        self.skip(node.source.name)

    def skip(self, file: str) -> None:
        """Count a text that is not a manifest."""
        name = PurePath(file).name
        self._reading.skipped[name] = self._reading.skipped.get(name, 0) + 1

    def _is_skipped(self, node: Node) -> bool:
        """Return whether a root is skipped: files that tools are known to keep beside manifests."""
        name = PurePath(node.source.name).name
        if not isinstance(node.value, dict) or not _NOT_MANIFESTS.fullmatch(name):
            return False
        api_version = shallow(node).get("apiVersion")
        kustomize = isinstance(api_version, str) and api_version.startswith(_KUSTOMIZE)
        if "apiVersion" in node and "kind" in node and not kustomize:
            return False
        self._skip(node)
        return True

    def _add(self, head_of: Head, node: Node | None, data: dict[str, Plain] | None, origin: Stretch | Node) -> None:
        if head_of.kind.startswith(_ENCRYPTED) or head_of.name.startswith(_ENCRYPTED):
            self._leave_out_encrypted(Document(*head_of, node, data, origin, self.namespace))
            return
        content = data if data is not None else node.value if node is not None else None
        if isinstance(content, dict) and _SOPS in content:
            node, data = _without_sops(node, data)
        document = Document(*head_of, node, data, origin, self.namespace)
        if data is not None and not self.takes(head_of.api_version, head_of.kind):
            self._reading.custom.add(document.group, document.kind, data, document.home)
        identity = (document.group, head_of.kind, document.home, head_of.name)
        is_open = data is not None and variable_in(f"{head_of.namespace} {head_of.name}") is not None
        first = document if is_open else self._reading.seen.setdefault(identity, document)
        if first is document:
            self._reading.documents.append(document)
        elif self.takes(head_of.api_version, head_of.kind):
            fields = self._differ(first, document)
            if fields is not None:
                self._report_twice(first, document, fields)

    def _leave_out_encrypted(self, document: Document) -> None:
        """Leave out a manifest whose kind or name is encrypted."""
        from eastgate.reading.repository import LeftOut  # imported here because that package imports this one

        why = "SOPS has encrypted its kind or name: decrypt it, or encrypt only its values (encrypted_regex)"
        self._reading.unbuilt.append(LeftOut("an encrypted manifest", document.span.location, why))

    def _report_twice(self, first: Document, second: Document, fields: str) -> None:
        where = f"{second.namespace}/{second.name}" if second.namespace else second.name
        name_span = second.locate("metadata", "name")
        help_ = f"the first one is at {first.span}; keep one of them"
        if first.span.file != name_span.file and "<kustomize build " in first.span.file + name_span.file:
            help_ = f"the first one is in {first.span.file}; choose what to render with -k"
        message = f"{shown(second.kind)} `{shown(where)}` is written twice"
        message += f", with different {shown(fields)}" if fields else ""
        about = f"{shown(second.kind)} {shown(where)}"
        error = Diagnostic(DUPLICATE_OBJECT, message, name_span, help_, about, cause=first.span.file)
        self._reading.reporter.diagnostics.append(error)
        self._reading.twice.append((second, error))


def _without_sops(node: Node | None, data: dict[str, Plain] | None) -> tuple[Node | None, dict[str, Plain] | None]:
    """Return a manifest without the fields that SOPS adds when it encrypts the file."""
    if node is not None and isinstance(node.value, dict):
        kept = {key: value for key, value in node.value.items() if key != _SOPS}
        node = Node(kept, node.source, node.line, node.column, node.end_line, node.end_column, node.keys)
    return node, None if data is None else {key: value for key, value in data.items() if key != _SOPS}


def _is_foreign(node: Node) -> bool:
    """Return whether a document has no part of the head of an object."""
    fields = ("apiVersion", "kind", "metadata")
    return isinstance(node.value, dict) and all(intended_value(node, field) is None for field in fields)


def _has_objects(node: Node) -> bool:
    """Return whether a list has objects in it, or a text looks like a manifest."""
    if isinstance(node.value, list):
        return any("kind" in entry and "apiVersion" in entry for entry in node if isinstance(entry.value, dict))
    return isinstance(node.value, str) and may_be_manifest(node.value)


def _diagnose_rest(node: Node, kind: str, reporter: Reporter) -> None:
    """Report a list that is incomplete."""
    metadata = node.get("metadata")
    token = metadata.get("continue") if metadata is not None and isinstance(metadata.value, dict) else None
    if token is not None and token.value:
        message = f"this {shown(kind)} is not finished: the API server has more"
        help_ = "get all of it: kubectl get --chunk-size=0, or follow `continue` to the end"
        reporter.report(UNFINISHED_LIST, message, token.span, help=help_)


def _is_list(kind: str, data: dict[str, Plain] | dict[str, Node]) -> bool:
    """Return whether an object is a list of objects: a `List`, or a `PodList`, which has items and never a name.

    kubectl treats any object with objects in its `items` as a list, whatever its kind and name.
    """
    if kind == "List" or "items" not in data:
        return kind == "List"
    items = data["items"]
    entries = items.value if isinstance(items, Node) else items
    if isinstance(entries, list) and any(_has(entry, "metadata") for entry in entries):
        return True
    return kind.endswith("List") and not _has(data.get("metadata"), "name")


def _has(value: Plain | Node, key: str) -> bool:
    return key in value if isinstance(value, dict | Node) else False


def _is_good_list(data: dict[str, Plain]) -> bool:
    """Return whether the fast reader can open a list: it needs no finding."""
    kind, api_version = data.get("kind"), data.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str) or not api_version:
        return False
    items, metadata = data.get("items"), data.get("metadata")
    if isinstance(metadata, dict) and metadata.get("continue"):
        return False
    return _is_list(kind, data) and isinstance(items, list) and all(isinstance(item, dict) for item in items)


def _inherited(kind: Plain, api_version: Plain) -> Inherited | None:
    """Return the type of the entries of a list; None for a plain `List`."""
    if not isinstance(kind, str) or not isinstance(api_version, str) or kind == "List":
        return None
    return Inherited(api_version, kind.removesuffix("List"))
