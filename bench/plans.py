"""The contents of a generated world. `objects`, `manifests` and each peer translate them to their own form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eastgate.cluster import Pod, Service
from eastgate.dialects.gep3779.model import Action

__all__ = ["TRUST_DOMAIN", "Ask", "Plan", "PolicyPlan", "RulePlan"]

TRUST_DOMAIN = "cluster.local"


@dataclass(frozen=True, slots=True)
class RulePlan:
    """One rule: ALL of its conditions must match. An empty list is no condition; a rule without any matches everything.

    `accounts` are `namespace/name`, or `namespace/*`; `identities` are SPIFFE IDs of other trust domains; `tools` are
    `name`, or `backend/name`.
    """

    accounts: tuple[str, ...] = ()
    identities: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()

    @property
    def anyone(self) -> bool:
        return not self.accounts and not self.identities


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """One policy. It targets the named Service or Gateway, or else the pods with these labels."""

    namespace: str
    name: str
    action: Action
    rules: tuple[RulePlan, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    service: str | None = None
    gateway: str | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One question: may this identity (None: an anonymous caller) reach the workload or Gateway with this key?

    A call of a tool also names the `backend` of the Gateway.
    """

    workload: str
    identity: str | None
    port: int
    method: str | None = None
    path: str | None = None
    tool: str | None = None
    backend: str | None = None

    @property
    def qualified(self) -> str:
        """Return `backend/tool`."""
        return f"{self.backend}/{self.tool}" if self.tool is not None else ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A world and the policies on it."""

    pods: Sequence[Pod]
    services: Sequence[Service]
    policies: Sequence[PolicyPlan]
    identities: Sequence[str]
    gateways: Sequence[tuple[str, str]] = ()
