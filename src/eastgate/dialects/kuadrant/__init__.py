"""Kuadrant's AuthPolicy: requests to a route or a Gateway that must pass an auth scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eastgate.diagnostics import Reporter
from eastgate.dialects.base import Dialect, Kind
from eastgate.dialects.kuadrant.assemble import layers
from eastgate.dialects.kuadrant.examine import available, examine
from eastgate.dialects.kuadrant.model import Policy
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

GROUP = "apim.kuadrant.io"


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    from eastgate.dialects.kuadrant.reading import read  # auth schemes are a large model, and few folders have any

    return read(document, root, settings, reporter)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.kuadrant.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="Kuadrant",
    model=Policy,
    kinds=(Kind(GROUP, "v1alpha1", "AuthPolicy", _read),),
    layers=lambda attached, _scene: layers(attached),
    lint=_lint,
    examine=examine,
    status=lambda policy, policies, settings, world: [available(policy, policies, settings, world)],
    bystanders=frozenset({(GROUP, "RateLimitPolicy")}),
)
