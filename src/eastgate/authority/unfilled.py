"""Objects with placeholders in fields that decide: their final content is unknown, which is no mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from eastgate.authority.duplicates import of_meshes
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.cluster import (
    GATEWAY_GROUP,
    ConfigMap,
    Gateway,
    GatewayNamed,
    Listener,
    Route,
    Secret,
    Target,
    WorldObject,
)
from eastgate.cluster.unread import Unread, object_with_open_hosts
from eastgate.reading.manifests import Document, Node, Plain
from eastgate.reading.manifests.codes import PLACEHOLDER
from eastgate.reading.manifests.document import Stretch, content_of, origin_of
from eastgate.reading.manifests.placeholders import (
    find_path,
    is_describing,
    may_have_placeholder,
    placeholder_in,
    placeholder_in_wrong,
    strings_of,
    variable_in,
)

HELP = "fill it in, or leave the file out: --exclude"


def diagnose_placeholder(placeholder: str, span: Span | None) -> Diagnostic:
    """Return the finding about a placeholder."""
    return Diagnostic(PLACEHOLDER, f"a placeholder: `{placeholder}`", span, HELP)


def diagnose_open_hosts(unread: Unread) -> Diagnostic:
    """Return the finding about an object with unknown hosts."""
    message = f"{unread.part.what} {unread.part.why}" if unread.part is not None else ""
    return Diagnostic(
        PLACEHOLDER, message, _location(unread.document, unread.hosts[0]), "answers about such a host name this object"
    )


def take_placeholders(reporter: Reporter) -> list[Diagnostic]:
    """Return findings in place of the errors of values that are placeholders, which are removed."""
    placeholders: dict[str, Diagnostic] = {}
    kept: list[Diagnostic] = []
    for finding in reporter:
        span = finding.span if finding.is_error else None
        found = None
        if span is not None and not span.source.is_object:
            found = variable_in(finding.message) or placeholder_in_wrong(span.underlined)
            if found is None and span.source.hides(span.line):  # of a Secret, whose lines are hidden by stars
                found = variable_in(span.source.text.splitlines()[span.line - 1])
        if found is None:
            kept.append(finding)
        else:
            placeholders.setdefault(found, diagnose_placeholder(found, finding.span))
    reporter.diagnostics[:] = kept
    return list(placeholders.values())


class Unfilled:
    """Finds the placeholders in documents that have no errors. Each text is searched once as a whole."""

    def __init__(self) -> None:
        self._sources: dict[SourceText, bool] = {}

    def in_policy(self, document: Document) -> list[Diagnostic]:
        """Return the placeholders in the content of a policy."""
        node = document.node if self._may_have(document) else None
        spec = [value for key, value in node.items() if key not in ("metadata", "status")] if node is not None else []
        texts = ((placeholder_in(text.text), text.span) for value in spec for text in strings_of(value))
        found = [diagnose_placeholder(text, span) for text, span in texts if text is not None]
        return found or self._in_namespace(document)

    def in_unread(self, document: Document) -> list[Diagnostic]:
        """Return the first placeholder in an object of an unread kind: its target would be wrong."""
        content = content_of(document) if self._may_have(document) else None
        spec = {key: value for key, value in content.items() if key != "status"} if isinstance(content, dict) else None
        if spec is None:
            return []
        spec.pop("metadata", None)
        for text in _plain_strings(spec):
            if (found := placeholder_in(text)) is not None:
                return [diagnose_placeholder(found, document.locate(*(find_path(spec, found) or ())))]
        return self._in_namespace(document)

    def in_object(self, document: Document, declared: WorldObject) -> list[Diagnostic]:
        """Return the first placeholder in a field of an object that Eastgate reads, other than its hosts."""
        if isinstance(declared, Secret | ConfigMap) or not self._may_have(document):
            return []
        for text in _strings(declared):
            if (found := placeholder_in(text)) is not None:
                path = find_path(content_of(document), found) or ()
                return [diagnose_placeholder(found, document.locate(*path))]
        return []

    def open_hosts(self, document: Document, declared: WorldObject) -> Unread | None:
        """Return a route or a Gateway as an object with unknown hosts; None if all of its hosts are known."""
        hosts: dict[str, bool] = {}
        gateways: tuple[Target, ...] = ()
        match declared:
            case Route() if self._may_have(document):
                hosts = {host: declared.kind == "TLSRoute" for host in declared.hostnames if variable_in(host)}
                asked = (each for each in declared.parents if (each.group, each.kind) == (GATEWAY_GROUP, "Gateway"))
                gateways = tuple(dict.fromkeys(GatewayNamed(each.namespace, each.name) for each in asked))
            case Gateway() if self._may_have(document):
                listeners = {each: each.hostname for each in declared.listeners if variable_in(each.hostname or "")}
                hosts = {host: each.tls is not None for each, host in listeners.items() if host is not None}
                gateways = (GatewayNamed(declared.namespace, declared.name),)
        if not hosts or not gateways:
            return None
        return object_with_open_hosts(document, hosts, _location(document, next(iter(hosts))).location, gateways)

    def _in_namespace(self, document: Document) -> list[Diagnostic]:
        found = placeholder_in(document.namespace or "") if self._may_have(document) else None
        return [] if found is None else [diagnose_placeholder(found, document.locate("metadata", "namespace"))]

    def _may_have(self, document: Document) -> bool:
        origin = origin_of(document)
        if not isinstance(origin, Stretch | Node):
            return False
        source = origin.text.source if isinstance(origin, Stretch) else origin.source
        if source.is_object:
            return False
        if source not in self._sources:
            self._sources[source] = may_have_placeholder(source.text)
        return self._sources[source]


def _location(document: Document, text: str) -> Span:
    """Return the place of a text in a document."""
    return document.locate(*(find_path(content_of(document), text) or ()))


def _plain_strings(value: Plain) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _plain_strings(entry)


def _strings(value: object, key: str = "") -> Iterator[str]:
    """Yield the strings in an object that decide."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        kept = of_meshes(value) if key == "annotations" else value
        for name, entry in kept.items():
            yield from () if key == "labels" and is_describing(name) else (name, *_strings(entry))
    elif isinstance(value, tuple | list | frozenset):
        for entry in value:
            yield from _strings(entry)
    elif is_dataclass(value) and not isinstance(value, type | Span):
        for each in fields(value):
            is_host = isinstance(value, Route | Listener) and each.name in ("hostname", "hostnames")
            if each.name not in ("span", "probes") and not is_host:
                yield from _strings(getattr(value, each.name), each.name)
