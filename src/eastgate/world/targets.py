"""Which pods a policy is about, as the world can answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from eastgate.world.labels import Selector

__all__ = ["PodsAcross", "PodsMatching", "PodsOfService", "Target"]


@dataclass(frozen=True, slots=True)
class PodsMatching:
    """The pods of one namespace that a selector selects; the empty selector selects all of them."""

    namespace: str
    selector: Selector

    def __str__(self) -> str:
        return f"pods {self.selector} in {self.namespace}"


@dataclass(frozen=True, slots=True)
class PodsOfService:
    """The pods behind one Service."""

    namespace: str
    service: str

    def __str__(self) -> str:
        return f"pods of Service {self.namespace}/{self.service}"


@dataclass(frozen=True, slots=True)
class PodsAcross:
    """The pods that one selector selects in all namespaces that another selects."""

    namespaces: Selector
    pods: Selector

    def __str__(self) -> str:
        return f"pods {self.pods} in namespaces {self.namespaces}"


Target: TypeAlias = PodsMatching | PodsOfService | PodsAcross
