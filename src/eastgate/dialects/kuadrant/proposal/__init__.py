"""The AuthPolicy of Kuadrant's proposal of 2022: the requests to a route or a Gateway that must pass an auth scheme."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from eastgate.basics.diagnostics import Reporter
from eastgate.dialects.base import Dialect, Kind, reader
from eastgate.dialects.kuadrant.nulls import WIDENING, without_nulls
from eastgate.dialects.kuadrant.proposal.assemble import layers
from eastgate.dialects.kuadrant.proposal.model import Policy
from eastgate.dialects.kuadrant.proposal.words import WORDS, conditions, examine
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.dialects.serving import AGE, INHERITED, Column, Served, ServedResource, Status
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

GROUP = "apim.kuadrant.io"


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    from eastgate.dialects.kuadrant.proposal import (  # a large model, and most folders need none
        meaning,
        shapes,
    )

    read = reader(shapes.AUTH_POLICY, meaning.auth_policy)
    return read(document, without_nulls(root), settings, reporter)


def _shapes() -> tuple[Record[Any], ...]:
    from eastgate.dialects.kuadrant.proposal.shapes import AUTH_POLICY

    return (AUTH_POLICY,)


def _codes() -> tuple[ModuleType, ...]:
    from eastgate.dialects.kuadrant.proposal import codes

    return (codes,)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.kuadrant.proposal.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="Kuadrant 2022",
    model=Policy,
    kinds=(
        Kind(
            GROUP,
            "v1alpha1",
            "AuthPolicy",
            _read,
            _shapes,
            short="authpol",
            served=Served(
                ServedResource("authpolicies", Status.CONDITIONS, INHERITED, WIDENING),
                (
                    Column("Target", ".spec.targetRef.kind"),
                    Column("Target Name", ".spec.targetRef.name"),
                    Column("Available", '.status.conditions[?(@.type=="Available")].status'),
                    AGE,
                ),
            ),
        ),
    ),
    layers=layers,
    words=WORDS,
    settings=KuadrantSettings,
    codes=_codes,
    closes=lambda _policy: False,
    lint=_lint,
    examine=examine,
    examined_kinds=frozenset({"Gateway", "HTTPRoute"}),
    status=conditions,
    refusal=("Available", "Error"),
    bystanders=frozenset({(GROUP, "RateLimitPolicy")}),
    reads_secrets=True,
)
