"""The meaning of a checked document, and its status."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster import PodsMatching, Selector, World
from eastgate.cluster.resources import is_audit
from eastgate.cluster.targets import Target
from eastgate.dialects.base import Condition
from eastgate.ir import Is, OneOf, Origin, PolicyRef, Rule
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.spiffe import service_account_id
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings
from tests.toy.model import GuestList

__all__ = ["accepted", "guest_list", "locate"]


def guest_list(document: Document, root: Node, settings: Settings) -> GuestList:
    """Return the GuestList of a document: each guest is a rule on the caller's identity."""
    namespace, spec = document.home, root["spec"]
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    rules = []
    for index, guest in enumerate(spec.get("guests") or ()):
        identity = service_account_id(settings.trust_domain, namespace, guest.text)
        origin = Origin(ref, index, guest.span, ((IDENTITY, guest.span),))
        rules.append(Rule(Is(IDENTITY, OneOf(frozenset({identity}))), origin))
    return GuestList(ref, document.span, (_pods(namespace, spec["app"].text),), tuple(rules), is_audit(root))


def _pods(namespace: str, app: str) -> PodsMatching:
    return PodsMatching(namespace, Selector.of({"app": app}))


def locate(document: Document) -> tuple[Target, ...] | None:
    """Return the targets of a GuestList with errors elsewhere, so that it closes only these."""
    spec = document.node.get("spec") if document.node is not None else None
    app = spec.get("app") if spec is not None else None
    return (_pods(document.home, app.text),) if app is not None and isinstance(app.value, str) else None


def accepted(policy: GuestList, _all: Sequence[GuestList], _settings: Settings, world: World) -> list[Condition]:
    """Return the condition that a pod has the app's label."""
    if any(world.select(target) for target in policy.targets):
        return [Condition("Accepted", "True", "Accepted", "it applies to its pods")]
    return [Condition("Accepted", "False", "TargetNotFound", "no pod has the app's label")]
