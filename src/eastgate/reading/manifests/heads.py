"""Reads the head of a Kubernetes object (`apiVersion`, `kind`, `metadata`), and reports its errors.

`head` is fast and gives no reasons. If it returns None, `diagnose` reports the errors with positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import yaml

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.codes import (
    FIELD_MISSING,
    FIELD_MISSPELT,
    FIELD_TYPE,
    NAME_GENERATED,
    NAME_MISSING,
    NO_OBJECT,
)
from eastgate.reading.manifests.findings import shown, suggestion
from eastgate.reading.manifests.node import Node, Plain

# Guesses the type of a text, without parsing it as YAML or JSON.


_HINT = regex(r"""[ ]*["']?([^\s"'#]+)""")
_HEADS = regex(r"""\b(apiVersion|kind)["']?\s*:\s*["']?([^\s"'#,{}\[\]]+)""")
_BLOCK = regex(r"(?m)^metadata:[ \t]*(?:#.*)?\r?\n((?:[ \t]+.*\n|[ \t]*\r?\n|#.*\n)*)")
_FIELD = regex(r"(?m)^([ ]+)(name|namespace):[ ]*[\"']?([^\s\"'#]+)")
_HIDING = regex(r"""\\[ux]|\b(?:apiVersion|kind)["']?\s*:\s*[*&!]""")
_MANIFEST = regex(r"""(?i)\bapi_?version\b|\bkind["']?\s*:|\\[ux]""")

# Every line at the left edge must be `key:` with a plain key, except for comments, entries of a list and markers. The
# patterns start with a line feed, because searching for one is much faster than testing each line.
_EDGE = regex(r"\n(?![ #\n]|\Z|- |-$|---$)(?:([A-Za-z][\w-]*):(?=[ ]|$)(.*)|.*)$", re.MULTILINE)
_PLAIN = regex(r"[ ]+([A-Za-z0-9][\w./-]*)[ ]*")
_CONTINUED = regex(r"\n(?:apiVersion|kind):.*\n[ \t\n]")
_OTHER_BREAKS = ("\r", "\t", "\x85", "\u2028", "\u2029")
_INDENTED = regex(r"(?:(?:[ ]*\#.*|[ ]*|---)\n)*+[ ]")  # the first line with content


def hint(chunk: str) -> tuple[str, str]:
    """Guess the type of a document. A wrong guess only costs time."""
    return _hint_of("apiVersion:", chunk), _hint_of("kind:", chunk)


def _hint_of(key: str, chunk: str) -> str:
    at = 0 if chunk.startswith(key) else chunk.find("\n" + key) + 1
    match = _HINT.match(chunk, at + len(key)) if at or chunk.startswith(key) else None
    return match.group(1) if match else ""


def types_in(chunk: str) -> Iterator[tuple[str, str]]:
    """Return every `apiVersion` in a document, with every `kind` in it."""
    values: dict[str, dict[str, None]] = {"apiVersion": {"": None}, "kind": {"": None}}
    for key, value in _HEADS.findall(chunk):
        values[key][value] = None
    return product(values["apiVersion"], values["kind"])


def metadata_in(chunk: str) -> dict[str, str]:
    """Guess the name and the namespace in a YAML document, without parsing it."""
    block = _BLOCK.search(chunk if chunk.endswith("\n") else f"{chunk}\n")
    fields: dict[str, tuple[int, str]] = {}
    for indent, key, value in _FIELD.findall(block[1]) if block is not None else ():
        if key not in fields or len(indent) < fields[key][0]:
            fields[key] = (len(indent), value)
    return {key: value for key, (_, value) in fields.items()}


def has_kind(chunk: str) -> bool:
    """Return whether a document has a visible `kind`. Without one, it may be of any kind."""
    return any(kind for _, kind in types_in(chunk))


def hides_types(chunk: str) -> bool:
    """Return whether a document may have a type that `types_in` misses: with an escape, an alias or a tag."""
    return _HIDING.search(chunk) is not None


def may_be_manifest(text: str) -> bool:
    """Return whether an unreadable text has the fields of a manifest, or may hide them."""
    return _MANIFEST.search(text.replace("\0", "")) is not None


def type_of(chunk: str) -> tuple[str, str] | None:
    """Return the `apiVersion` and the `kind` of a YAML document with nothing else at its top; None if that is unsure.

    A document of a known type need not be parsed, so its type must be proven. All keys of a mapping at the left edge
    are at the left edge. If the first one is, each line there is a plain key, and none occurs twice, then no `kind`
    hides in quotes, in a merge or in an escape. A document with `items` is a list, whatever its kind.
    """
    text = f"\n{chunk}"
    if any(mark in text for mark in _OTHER_BREAKS) or _CONTINUED.search(text) or _INDENTED.match(chunk):
        return None
    keys: dict[str, str] = {}
    for key, value in _EDGE.findall(text):
        if not key or key in keys:
            return None
        keys[key] = value
    api_version, kind = _PLAIN.fullmatch(keys.get("apiVersion", "")), _PLAIN.fullmatch(keys.get("kind", ""))
    if api_version is None or kind is None or kind[1].endswith("List") or "items" in keys:
        return None
    return api_version[1], kind[1]


# Data as YAML in which all text is printable, and every other character is an escape.


class PrintableDumper(yaml.SafeDumper):
    """Writes texts with unprintable characters, or with a command for a CI system, in double quotes.

    Double quotes allow escapes for these, without line breaks. PyYAML alone would leave some characters unescaped, such
    as marks that reverse the order of letters, and would break lines where a `::error::` begins.
    """

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        """Write a text in double quotes, on one line if it has such characters."""
        allowed = self.allow_unicode
        self.allow_unicode = allowed and _is_readable(text)
        super().write_double_quoted(text, split and not _needs_care(text))
        self.allow_unicode = allowed


def _string(dumper: PrintableDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if _needs_care(text) else None)


def _needs_care(text: str) -> bool:
    return "::" in text or not _is_readable(text)


def _is_readable(text: str) -> bool:
    return text.isprintable() or text.replace("\n", "").isprintable()


PrintableDumper.add_representer(str, _string)


_FIELDS = ("apiVersion", "kind", "metadata")
_METADATA = ("name", "generateName", "namespace")
_EXAMPLES = {"apiVersion": "apiVersion: v1", "kind": "kind: Pod"}
_PREFIXES = {("install.istio.io", "IstioOperator"): "istio-"}
"""Kinds of files that a tool reads without an API server. They need no name."""


class Inherited(NamedTuple):
    """The type of the entries of a `PodList`. The API server leaves it out of the entries."""

    api_version: str
    kind: str


class Head(NamedTuple):
    """The type and the name of an object."""

    api_version: str
    kind: str
    name: str
    namespace: str | None


def head(data: dict[str, Plain], inherited: Inherited | None = None) -> Head | None:
    """Return the head of an object; None if it has an error."""
    api_version, kind, metadata = data.get("apiVersion"), data.get("kind"), data.get("metadata")
    if inherited is not None and api_version is None and kind is None:
        api_version, kind = inherited
    if not isinstance(metadata, dict):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if not (_is_filled(api_version) and _is_filled(kind) and _is_filled(name)):
        return None
    if namespace is not None and not isinstance(namespace, str):
        return None
    return Head(str(api_version), str(kind), str(name), namespace or None)


def with_generated_name(data: dict[str, Plain], number: int) -> dict[str, Plain] | None:
    """Return an object with a generated name for its `generateName`; None without `generateName`."""
    metadata = data.get("metadata") or {}
    if not isinstance(metadata, dict) or metadata.get("name") is not None:
        return None
    group = str(data.get("apiVersion")).partition("/")[0]
    prefix = metadata.get("generateName") or _PREFIXES.get((group, str(data.get("kind"))))
    if not isinstance(prefix, str):
        return None
    return {**data, "metadata": {**metadata, "name": f"{prefix}{number:x>5}"}}


def shallow(node: Node) -> dict[str, Plain]:
    """Return the parts of an object that `head` reads."""
    metadata = node.get("metadata")
    data: dict[str, Plain] = {key: node[key].plain() for key in ("apiVersion", "kind") if key in node}
    if metadata is not None and isinstance(metadata.value, dict):
        data["metadata"] = {key: metadata[key].plain() for key in _METADATA if key in metadata}
    return data


def _is_filled(value: Plain) -> bool:
    return isinstance(value, str) and value != ""


def first_key(node: Node) -> Span:
    """Return the span of the first key of a mapping, to report a missing field."""
    return next(iter(node.keys.values()), node).span


def _misspelt(node: Node, field: str) -> str | None:
    """Return the key of a mapping that misspells an absent field."""
    return suggestion(field, (key for key in node.keys if key not in _FIELDS))


def intended_value(node: Node, field: str) -> str | None:
    """Return the value of a field, or of a misspelling of it; empty if it is not a string."""
    key = field if field in node else _misspelt(node, field)
    if key is None:
        return None
    value = node[key].value
    return value if isinstance(value, str) else ""


def diagnose(node: Node, inherited: Inherited | None, reporter: Reporter) -> None:
    """Report every error in the head of an object."""
    if not isinstance(node.value, dict):
        help_ = "to give several objects, separate them with `---`, or write `kind: List` and `items:`"
        if not isinstance(node.value, list):
            help_ = "write `apiVersion`, `kind` and `metadata`"
        reporter.report(NO_OBJECT, f"a Kubernetes object is a mapping, not {node.kind}", node.span, help=help_)
        return
    if not diagnose_type(node, inherited, reporter):
        return
    metadata = node.get("metadata")
    if metadata is None or metadata.value is None:
        if not _report_misspelt(node, "metadata", reporter):
            span = first_key(node) if metadata is None else node.key_span("metadata")
            reporter.report(
                NAME_MISSING, "this object has no `metadata.name`", span, help="write `metadata: {name: ...}`"
            )
    elif not isinstance(metadata.value, dict):
        message = f"`metadata` must be a mapping, not {metadata.kind}"
        reporter.report(FIELD_TYPE, message, metadata.span, help="write `metadata: {name: ...}`")
    else:
        _diagnose_name(node.key_span("metadata"), metadata, reporter)
        namespace = metadata.get("namespace")
        if namespace is not None and namespace.value is not None:
            _check_string(namespace, "metadata.namespace", reporter)


def diagnose_type(node: Node, inherited: Inherited | None, reporter: Reporter) -> bool:
    """Report errors in `apiVersion` and `kind`. Return False if the node is not an object."""
    fields = {field: node.get(field) for field in ("apiVersion", "kind")}
    missing = [field for field, value in fields.items() if value is None or value.value is None]
    if inherited is not None and len(missing) == 2:
        missing = []
    unexplained = [field for field in missing if not _report_misspelt(node, field, reporter)]
    if len(unexplained) == 2:
        message = "this is not a Kubernetes object: it has neither `apiVersion` nor `kind`"
        help_ = "write `apiVersion` and `kind`, or leave this file out"
        reporter.report(NO_OBJECT, message, first_key(node), help=help_)
        return False
    for field in unexplained:
        span = node.key_span(field) if field in node else first_key(node)
        help_ = f"write it, as in `{_EXAMPLES[field]}`"
        reporter.report(FIELD_MISSING, f"this object has no `{field}`", span, help=help_)
    for field, value in fields.items():
        if value is not None and value.value is not None and _check_string(value, field, reporter) and not value.value:
            help_ = f"write it, as in `{_EXAMPLES[field]}`"
            reporter.report(FIELD_MISSING, f"`{field}` is empty", value.span, help=help_)
    return True


def _report_misspelt(node: Node, field: str, reporter: Reporter) -> bool:
    key = _misspelt(node, field)
    if key is None:
        return False
    message = f"`{shown(key)}` is not a field of a Kubernetes object"
    reporter.report(FIELD_MISSPELT, message, node.key_span(key), help=f"did you mean `{field}`?")
    return True


def _diagnose_name(metadata_span: Span, metadata: Node, reporter: Reporter) -> None:
    name = metadata.get("name")
    if name is not None and name.value is not None:
        if _check_string(name, "metadata.name", reporter) and not name.value:
            reporter.report(NAME_MISSING, "`metadata.name` is empty", name.span, help="write the name of the object")
        return
    if "generateName" in metadata:
        message = "only a cluster makes names out of `generateName`"
        reporter.report(NAME_GENERATED, message, metadata.key_span("generateName"), help="write `name: ...` instead")
        return
    misspelt = suggestion("name", (key for key in metadata.keys if key not in ("name", "namespace")))
    help_ = f"did you mean `name` instead of `{shown(misspelt)}`?" if misspelt else "write `name: ...`"
    span = metadata.key_span("name") if name is not None else metadata_span
    reporter.report(NAME_MISSING, "this object has no `metadata.name`", span, help=help_)


def _check_string(value: Node, field: str, reporter: Reporter) -> bool:
    if isinstance(value.value, str):
        return True
    help_ = "write a string"
    if not isinstance(value.value, dict | list):
        help_ = f'put it in quotes: "{shown(value.span.underlined)}"'
    reporter.report(FIELD_TYPE, f"`{field}` must be a string, not {value.kind}", value.span, help=help_)
    return False
