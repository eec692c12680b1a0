"""What an adapter is given, and what it gives: plain rules and questions in, an engine that answers them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Protocol

from bench.plans import TRUST_DOMAIN, Ask, Plan, PolicyPlan
from eastgate.cluster import service_account_id
from eastgate.dialects.gep3779.model import Action

__all__ = ["Deck", "Loaded", "Peer", "PlainRule", "own_deck", "space_of", "traits_of", "version_of", "whole_deck"]

Traits = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlainRule:
    """One rule, in words that every engine has: it holds where ALL parts do; an empty part is no condition.

    `target` is what the workload (or the gateway) must have; empty where only its own policies are given.
    A path may begin or end with `*`; a tool is `name`, or `backend/name`.
    """

    uid: str
    deny: bool
    target: Traits
    callers: tuple[str, ...]
    spaces: tuple[str, ...]
    ports: tuple[int, ...]
    methods: tuple[str, ...]
    paths: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Deck:
    """What an engine is to load. `traits` of each point are there only where rules have targets."""

    rules: Sequence[PlainRule]
    asks: Sequence[Ask]
    traits: Mapping[str, Traits] = field(default_factory=dict)


class Loaded(Protocol):
    """An engine with its policies, ready. Only `decide` is timed."""

    def prepare(self, ask: Ask) -> Any:
        """A question, in the engine's own form."""
        ...

    def decide(self, question: Any) -> bool:
        """The engine's answer to a question that it has prepared."""
        ...


class Peer(Protocol):
    """An engine that we are compared with."""

    @property
    def name(self) -> str:
        """As it is chosen on the command line."""
        ...

    @property
    def package(self) -> str:
        """What is installed."""
        ...

    def load(self, deck: Deck) -> Loaded:
        """Everything that can be done before the first question."""
        ...


def version_of(peer: Peer) -> str:
    """Which one this is."""
    return f"{peer.package} {metadata.version(peer.package)}"


def whole_deck(plan: Plan, asks: Sequence[Ask]) -> Deck:
    """All policies: the engine finds out by itself which of them target what is asked about."""
    return Deck(list(_rules(plan.policies, targeted=True)), asks, traits_of(plan))


def own_deck(policies: Iterable[PolicyPlan], asks: Sequence[Ask]) -> Deck:
    """Only the policies that target what is asked about: the work of Eastgate's index, for free."""
    return Deck(list(_rules(policies, targeted=False)), asks)


def space_of(identity: str | None) -> str:
    """`spiffe://domain/ns/name`, of a caller in that namespace."""
    return (identity or "").rpartition("/sa/")[0]


def traits_of(plan: Plan) -> dict[str, Traits]:
    """What each point has that a target may ask for. A pod is in the one Service of its application."""
    services = {(one.namespace, one.selector["app"]): one.name for one in plan.services}
    found: dict[str, Traits] = {
        f"Gateway {ns}/{name}": {"namespace": ns, "gateway": name} for ns, name in plan.gateways
    }
    for pod in plan.pods:
        service = services.get((pod.namespace, pod.labels["app"]), "")
        found[f"{pod.namespace}/{pod.name}"] = {"namespace": pod.namespace, **pod.labels, "service": service}
    return found


def _target(plan: PolicyPlan) -> Traits:
    if plan.gateway is not None:
        return {"namespace": plan.namespace, "gateway": plan.gateway}
    if plan.service is not None:
        return {"namespace": plan.namespace, "service": plan.service}
    return {"namespace": plan.namespace, **plan.labels}


def _rules(policies: Iterable[PolicyPlan], *, targeted: bool) -> Iterator[PlainRule]:
    for plan in policies:
        target = _target(plan) if targeted else {}
        for index, rule in enumerate(plan.rules):
            accounts = [account.split("/") for account in rule.accounts]
            exact = tuple(service_account_id(TRUST_DOMAIN, *account) for account in accounts if account[1] != "*")
            spaces = tuple(f"spiffe://{TRUST_DOMAIN}/ns/{namespace}" for namespace, name in accounts if name == "*")
            yield PlainRule(
                f"{plan.namespace}/{plan.name}/{index}", plan.action is Action.DENY, target,
                (*exact, *rule.identities), spaces, rule.ports, rule.methods, rule.paths, rule.tools,
            )  # fmt: skip
