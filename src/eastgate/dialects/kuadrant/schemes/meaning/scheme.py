"""From a checked auth scheme to its model: the same model, in either style, whole or from parts of policies."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.model import Scheme
from eastgate.dialects.kuadrant.hosts import ANY
from eastgate.dialects.kuadrant.schemes.meaning.authorizations import read_authorization
from eastgate.dialects.kuadrant.schemes.meaning.fields import first_of
from eastgate.dialects.kuadrant.schemes.meaning.identities import read_identity
from eastgate.dialects.kuadrant.schemes.meaning.metadata import read_callback, read_metadata
from eastgate.dialects.kuadrant.schemes.meaning.responses import read_denial, read_response, read_responses
from eastgate.dialects.kuadrant.schemes.meaning.values import all_of, at_gateway, named_patterns, texts
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.reading.manifests.node import Node


def read_scheme(node: Node, namespace: str) -> Scheme:
    """Read the scheme of a checked node. Its Secrets are in `namespace`: that of the policy."""
    named = node.get("patterns")
    patterns = named_patterns(named.items() if named is not None else ())
    identities = first_of(node, "identity", "authentication")
    deny_with, response = node.get("denyWith"), node.get("response")
    denials = response if response is not None and isinstance(response.value, dict) else deny_with
    return Scheme(
        namespace=namespace,
        hosts=texts(node.get("hosts")) or (ANY,),
        identities=tuple(read_identity(name, entry, patterns) for name, entry in entries(identities)),
        metadata=tuple(read_metadata(name, entry, patterns) for name, entry in entries(node.get("metadata"))),
        authorizations=tuple(
            read_authorization(name, entry, patterns) for name, entry in entries(node.get("authorization"))
        ),
        responses=tuple(read_responses(response, patterns)),
        callbacks=tuple(read_callback(name, entry, patterns) for name, entry in entries(node.get("callbacks"))),
        when=all_of(node.get("when"), patterns),
        unauthenticated=read_denial(denials.get("unauthenticated") if denials is not None else None),
        unauthorized=read_denial(denials.get("unauthorized") if denials is not None else None),
        span=node.span,
    )


class SchemeSection(enum.StrEnum):
    """A section of a scheme whose entries are given one by one; the last three are single entries without a name."""

    AUTHENTICATION = "authentication"
    METADATA = "metadata"
    AUTHORIZATION = "authorization"
    HEADERS = "response.success.headers"
    DYNAMIC_METADATA = "response.success.metadata"
    CALLBACKS = "callbacks"
    PATTERNS = "patterns"
    CONDITIONS = "conditions"
    UNAUTHENTICATED = "response.unauthenticated"
    UNAUTHORIZED = "response.unauthorized"

    def path(self, metadata_field: str) -> tuple[str, ...]:
        """Return the fields that lead to the section; dynamic metadata has another name in each kind."""
        *outer, last = self.split(".")
        return *outer, metadata_field if self is SchemeSection.DYNAMIC_METADATA else last


def scheme_from(
    parts: Mapping[tuple[str, str], Node], namespace: str, *, span: Span | None = None, authorino_compat: bool = False
) -> Scheme:
    """Build a scheme for all hosts from checked entries by section and name, which may come from several policies.

    A `patternRef` means the set of patterns of that name wherever it comes from. One that means none errs, or with
    `authorino_compat` is left out, as Authorino does.
    """
    given: dict[str, dict[str, Node]] = {}
    for (section, name), node in parts.items():
        given.setdefault(section, {})[name] = node

    def entries_of(section: SchemeSection) -> Iterable[tuple[str, Node]]:
        return given.get(section, {}).items()

    def single(section: SchemeSection) -> Node | None:
        return given.get(section, {}).get("")

    patterns = named_patterns(entries_of(SchemeSection.PATTERNS), drop_missing=authorino_compat)
    return Scheme(
        namespace=namespace,
        hosts=(ANY,),
        identities=tuple(
            read_identity(name, entry, patterns) for name, entry in entries_of(SchemeSection.AUTHENTICATION)
        ),
        metadata=tuple(read_metadata(name, entry, patterns) for name, entry in entries_of(SchemeSection.METADATA)),
        authorizations=tuple(
            read_authorization(name, entry, patterns) for name, entry in entries_of(SchemeSection.AUTHORIZATION)
        ),
        responses=(
            *(read_response(name, entry, patterns, True) for name, entry in entries_of(SchemeSection.HEADERS)),
            *(
                read_response(name, entry, patterns, False)
                for name, entry in entries_of(SchemeSection.DYNAMIC_METADATA)
            ),
        ),
        when=at_gateway(single(SchemeSection.CONDITIONS)),
        unauthenticated=read_denial(single(SchemeSection.UNAUTHENTICATED)),
        unauthorized=read_denial(single(SchemeSection.UNAUTHORIZED)),
        span=span,
        callbacks=tuple(read_callback(name, entry, patterns) for name, entry in entries_of(SchemeSection.CALLBACKS)),
    )
