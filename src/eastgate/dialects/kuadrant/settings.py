"""The settings that only Kuadrant reads."""

from __future__ import annotations

from dataclasses import dataclass

from eastgate.settings import Section

__all__ = ["KuadrantSettings"]


@dataclass(frozen=True, slots=True)
class KuadrantSettings(Section):
    """How schemes are evaluated where Authorino does otherwise than it says."""

    authorino_compat: bool = False
