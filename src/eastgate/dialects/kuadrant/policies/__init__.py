"""Kuadrant's AuthPolicy: an auth scheme for requests to a Gateway, a listener, a route, or a rule of a route.

All policies that govern a rule are merged to one effective policy (`effective`), which is enforced there.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import ROUTE_KINDS
from eastgate.dialects.base import Dialect, Kind, reader
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.dialects.kuadrant.policies.assemble import layers
from eastgate.dialects.kuadrant.policies.model import Policy
from eastgate.dialects.kuadrant.policies.words import WORDS, conditions, examine
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

GROUP = "kuadrant.io"
VERSIONS = ("v1", "v1beta3")


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    from eastgate.dialects.kuadrant.policies import meaning, shapes  # a large model, and most folders need none

    read = reader(shapes.AUTH_POLICY, meaning.auth_policy)
    return read(document, without_nulls(root), settings, reporter)


def _shapes() -> tuple[Record[Any], ...]:
    from eastgate.dialects.kuadrant.policies.shapes import AUTH_POLICY

    return (AUTH_POLICY,)


def _codes() -> tuple[ModuleType, ...]:
    from eastgate.dialects.kuadrant.policies import codes

    return (codes,)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.kuadrant.policies.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="Kuadrant",
    model=Policy,
    kinds=tuple(Kind(GROUP, version, "AuthPolicy", _read, _shapes) for version in VERSIONS),
    layers=layers,
    words=WORDS,
    codes=_codes,
    closes=lambda _policy: False,
    lint=_lint,
    examine=examine,
    examined_kinds=frozenset({"Gateway", *ROUTE_KINDS}),
    status=conditions,
    reads_secrets=True,
)
