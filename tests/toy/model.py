"""The model of a GuestList."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster.targets import Target
from eastgate.ir import Origin, PolicyRef, Rule

__all__ = ["GROUP", "GuestList"]

GROUP = "toy.example.com"


@dataclass(frozen=True, slots=True, eq=False)
class GuestList:
    """One policy: a rule for each guest."""

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    rules: tuple[Rule, ...]
    audit: bool = False

    references: ClassVar[tuple[PolicyRef, ...]] = ()

    @property
    def origins(self) -> Iterator[Origin]:
        return (rule.origin for rule in self.rules)
