"""Kubernetes' network policies: connections into pods and out of them, by labels, addresses and ports.

NetworkPolicy, and the cluster-wide kinds with tiers before and after it: ClusterNetworkPolicy, and the kinds that it
replaces, AdminNetworkPolicy and BaselineAdminNetworkPolicy. The network enforces them at both ends of a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Everything, PodsAcross, PodsMatching, Target
from eastgate.cluster.points import Direction
from eastgate.cluster.unread.locating import content_of, selector_in
from eastgate.dialects.base import Dialect, Kind, NameUse, Scene
from eastgate.dialects.network import codes
from eastgate.dialects.network.model import CLUSTER_GROUP, GROUP, NetworkPolicy
from eastgate.dialects.network.settings import NetworkSettings
from eastgate.dialects.network.words import WORDS, conditions
from eastgate.ir import Attachment, Layer
from eastgate.ir.labels import Selector
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting


# The targets of a network policy with errors elsewhere: it closes these, and no others.


def locate_pods(document: Document) -> tuple[Target, ...]:
    """Return the pods that a NetworkPolicy selects, or all pods of its namespace if its selector cannot be read."""
    selector = selector_in(content_of(document), "podSelector")
    return (PodsMatching(document.home, selector) if selector is not None else Everything(document.home),)


def locate_subject(document: Document) -> tuple[Target, ...]:
    """Return the pods that a cluster-wide policy is for, or everything if its subject cannot be read."""
    subject = content_of(document).get("subject")
    if isinstance(subject, dict) and len(subject) == 1:
        if isinstance(subject.get("namespaces"), dict):
            namespaces = selector_in(subject, "namespaces")
            return (Everything(None) if namespaces is None else PodsAcross(namespaces, Selector.of()),)
        pods = subject.get("pods")
        if isinstance(pods, dict) and not pods.keys() - {"namespaceSelector", "podSelector"}:
            namespaces, labels = selector_in(pods, "namespaceSelector"), selector_in(pods, "podSelector")
            if namespaces is not None and labels is not None:
                return (PodsAcross(namespaces, labels),)
    return (Everything(None),)


__all__ = ["CLUSTER_GROUP", "DIALECT", "GROUP", "NetworkPolicy"]

_BYSTANDERS = ("ClusterCIDR", "IPAddress", "Ingress", "IngressClass", "ServiceCIDR")


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> NetworkPolicy | None:
    from eastgate.dialects.network.meaning import (
        read,  # imported here because many folders have no network policy
    )

    return read(document, root, settings, reporter)


def _shapes(kind: str) -> tuple[Record[Settings], ...]:
    from eastgate.dialects.network.meaning import shape_of

    return (shape_of(kind),)


def _ends(attached: Sequence[Attachment[NetworkPolicy]], direction: Direction, scene: Scene) -> list[Layer]:
    from eastgate.dialects.network.assemble import ends

    return ends(attached, direction, scene)


def _is_about_egress(manifest: Mapping[str, Any]) -> bool:
    spec = manifest.get("spec")
    return not isinstance(spec, Mapping) or bool(spec.get("egress")) or "Egress" in (spec.get("policyTypes") or ())


def _lint() -> Linting[NetworkPolicy]:
    from eastgate.dialects.network.lint import LINTING

    return LINTING


def _kind(
    group: str,
    version: str,
    kind: str,
    short: str,
    locate: Callable[[Document], tuple[Target, ...]] = locate_subject,
    name_use: NameUse = NameUse.OURS_ALONE,
) -> Kind[NetworkPolicy]:
    return Kind(
        group,
        version,
        kind,
        _read,
        partial(_shapes, kind),
        name_use=name_use,
        short=short,
        cluster_scoped=group == CLUSTER_GROUP,
        locate=locate,
        is_about_callers=_is_about_egress if group == GROUP else None,
    )


def _port_names(policy: NetworkPolicy) -> list[str]:
    ports = (port for rules in policy.rules.values() for rule in rules for port in rule.ports or ())
    return [port.name for port in ports if port.name is not None]


DIALECT: Dialect[NetworkPolicy] = Dialect(
    name="Kubernetes network policies",
    model=NetworkPolicy,
    kinds=(
        _kind(GROUP, "v1", "NetworkPolicy", "netpol", locate_pods, NameUse.OTHER_GROUPS),
        _kind(CLUSTER_GROUP, "v1alpha2", "ClusterNetworkPolicy", "cnp", name_use=NameUse.OTHER_GROUPS),
        _kind(CLUSTER_GROUP, "v1alpha1", "AdminNetworkPolicy", "anp"),
        _kind(CLUSTER_GROUP, "v1alpha1", "BaselineAdminNetworkPolicy", "banp"),
    ),
    layers=lambda _attached, _scene: [],
    ends=_ends,
    words=WORDS,
    settings=NetworkSettings,
    codes=lambda: (codes,),
    closes=lambda policy: policy.isolates and not policy.audit and not any(policy.rules.values()),
    lint=_lint,
    status=conditions,
    port_names=_port_names,
    bystanders=frozenset((GROUP, kind) for kind in _BYSTANDERS),
)
