"""What a policy is about: pods, as the world can select them, or one gateway or backend by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from eastgate.world.labels import Selector

__all__ = ["BackendNamed", "GatewayNamed", "PodsAcross", "PodsMatching", "PodsOfService", "Target"]


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


@dataclass(frozen=True, slots=True)
class GatewayNamed:
    """One Gateway. It is no workload, and selects none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"Gateway {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class BackendNamed:
    """One backend behind a gateway. It is no workload, and selects none."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"Backend {self.namespace}/{self.name}"


Target: TypeAlias = PodsMatching | PodsOfService | PodsAcross | GatewayNamed | BackendNamed
