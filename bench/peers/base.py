"""The interface of an adapter: it takes plain rules and questions, and returns an engine that answers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Protocol

from bench.plans import TRUST_DOMAIN, Ask, Plan, PolicyPlan
from eastgate.cluster import service_account_id
from eastgate.dialects.gep3779.model import Action

__all__ = ["Loaded", "Peer", "PlainRule", "RuleSet", "all_rules", "own_rules", "space_of", "traits_of", "version_of"]

Traits = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PlainRule:
    """One rule that every engine can express. It matches if ALL parts match; an empty part is no condition.

    `target` has the traits that the workload (or Gateway) must have. It is empty if the engine gets only its own
    policies. A path may begin or end with `*`; a tool is `name`, or `backend/name`.
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
class RuleSet:
    """The rules that an engine loads. `traits` of each point are given only if the rules have targets."""

    rules: Sequence[PlainRule]
    asks: Sequence[Ask]
    traits: Mapping[str, Traits] = field(default_factory=dict)


class Loaded(Protocol):
    """An engine with its policies loaded. Only `decide` is measured."""

    def prepare(self, ask: Ask) -> Any:
        """Return a question in the engine's own form."""
        ...

    def decide(self, question: Any) -> bool:
        """Return the engine's answer to a prepared question."""
        ...


class Peer(Protocol):
    """An engine that Eastgate is compared with."""

    @property
    def name(self) -> str:
        """The name of the engine in `--peers`."""
        ...

    @property
    def package(self) -> str:
        """The name of the installed package."""
        ...

    def load(self, rule_set: RuleSet) -> Loaded:
        """Do all the work that is possible before the first question."""
        ...


def version_of(peer: Peer) -> str:
    """Return the package of a peer with its version."""
    return f"{peer.package} {metadata.version(peer.package)}"


def all_rules(plan: Plan, asks: Sequence[Ask]) -> RuleSet:
    """Return the rules of all policies. The engine itself must find those that target the workload of a question."""
    return RuleSet(list(_rules(plan.policies, targeted=True)), asks, traits_of(plan))


def own_rules(policies: Iterable[PolicyPlan], asks: Sequence[Ask]) -> RuleSet:
    """Return the rules of the policies that target one workload. The engine gets the work of Eastgate's index free."""
    return RuleSet(list(_rules(policies, targeted=False)), asks)


def space_of(identity: str | None) -> str:
    """Return the namespace of a caller, as `spiffe://domain/ns/name`."""
    return (identity or "").rpartition("/sa/")[0]


def traits_of(plan: Plan) -> dict[str, Traits]:
    """Return the labels and names of each point that a target can require. A pod has the Service of its application."""
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
