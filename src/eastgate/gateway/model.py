"""The nouns of routing: rules that a request may take, and their backends."""

from __future__ import annotations

from eastgate.cluster import Route
from eastgate.records import dataclass

__all__ = ["BackendRef", "Routed"]


@dataclass(frozen=True, slots=True)
class BackendRef:
    """A destination of a rule. `granted`: it is in the route's own namespace, or a ReferenceGrant lets it be named."""

    group: str
    kind: str
    namespace: str
    name: str
    port: int | None
    weight: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Routed:
    """A rule that a request may take: rule number `rule` of `route`, counted from 0.

    The request goes to ANY of `backends`, by weight; where there is none the gateway answers with an error. `answered`:
    a redirect answers it at the gateway, and it reaches no backend.
    """

    route: Route
    rule: int
    backends: tuple[BackendRef, ...]
    answered: bool
