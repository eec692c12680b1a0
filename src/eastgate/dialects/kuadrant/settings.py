"""The settings that only Kuadrant reads."""

from __future__ import annotations

from eastgate.records import dataclass
from eastgate.settings import Section

__all__ = ["KuadrantSettings"]


@dataclass(frozen=True, slots=True)
class KuadrantSettings(Section):
    """The choice where Authorino evaluates schemes otherwise than it documents."""

    authorino_compat: bool = False
