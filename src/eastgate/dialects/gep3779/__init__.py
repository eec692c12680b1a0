"""GEP-3779: identity-based authorization of east-west traffic in three forms, and Eastgate's cluster-wide tiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eastgate.dialects.base import Dialect, Kind, NameUse, reader
from eastgate.dialects.gep3779 import codes, meaning, shapes
from eastgate.dialects.gep3779.assemble import layers, stance_of
from eastgate.dialects.gep3779.model import Action, Policy, Tier
from eastgate.dialects.gep3779.settings import GepSettings
from eastgate.dialects.gep3779.words import WORDS, conditions
from eastgate.dialects.serving import (
    ACTION,
    AGE,
    ATTACHED,
    INHERITED,
    LEVEL,
    PROBLEM,
    PROGRAMMED,
    TARGETS,
    Column,
    Served,
    ServedResource,
    Status,
)
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["CLUSTER_GROUP", "DIALECT", "GROUP", "Policy"]

GROUP = "gateway.networking.x-k8s.io"  # the drafts give none; upstream's experimental kinds are in this one
CLUSTER_GROUP = "eastgate.dev"


def _v1alpha1_shape(root: Node) -> Record[Settings]:
    """Return the shape for one target, as in the Go type, or for a list of targets, which Eastgate accepts too."""
    spec = root.get("spec")
    targets = spec.get("targetRefs") if spec is not None else None
    is_object = targets is not None and isinstance(targets.value, dict)
    return shapes.V1ALPHA1_ONE_TARGET if is_object else shapes.V1ALPHA1


def _closes(policy: Policy) -> bool:
    """Return whether the policy is an ALLOW without callers, which turns deny by default on."""
    return not policy.rules and policy.action is Action.ALLOW and policy.tier is Tier.NAMESPACED and not policy.audit


_AUTHORIZATION_POLICY = ServedResource("authorizationpolicies", Status.ANCESTORS, INHERITED)

_KINDS: tuple[Kind[Policy], ...] = (
    Kind(
        GROUP,
        "v1alpha2",
        "AuthorizationPolicy",
        reader(shapes.V1ALPHA2, meaning.v1alpha2),
        lambda: (shapes.V1ALPHA2,),
        name_use=NameUse.OTHER_GROUPS,
        short="authzpol",
        served=Served(_AUTHORIZATION_POLICY, (TARGETS, ACTION, LEVEL, *ATTACHED)),
    ),
    Kind(
        GROUP,
        "v1alpha1",
        "AuthorizationPolicy",
        reader(_v1alpha1_shape, meaning.v1alpha1),
        lambda: (shapes.V1ALPHA1, shapes.V1ALPHA1_ONE_TARGET),
        name_use=NameUse.OTHER_GROUPS,
        short="authzpol",
        served=Served(
            _AUTHORIZATION_POLICY,
            (TARGETS, ACTION, *ATTACHED),
            superseded=f"write {GROUP}/v1alpha2",
            shape=shapes.V1ALPHA1_ONE_TARGET,
        ),
    ),
    Kind(
        GROUP,
        "v1alpha1",
        "XAuthorizationPolicy",
        reader(shapes.X_V1ALPHA1, meaning.x_v1alpha1),
        lambda: (shapes.X_V1ALPHA1,),
        short="xauthzpol",
        served=Served(
            ServedResource("xauthorizationpolicies", Status.ANCESTORS, INHERITED), (TARGETS, ACTION, LEVEL, *ATTACHED)
        ),
    ),
    Kind(
        CLUSTER_GROUP,
        "v1alpha1",
        "ClusterAuthorizationPolicy",
        reader(shapes.CLUSTER_POLICY, meaning.cluster_policy),
        lambda: (shapes.CLUSTER_POLICY,),
        short="cauthzpol",
        served=Served(
            ServedResource("clusterauthorizationpolicies", Status.CONDITIONS),
            (
                Column("Tier", ".spec.tier"),
                Column("Priority", ".spec.priority", "integer"),
                ACTION,
                LEVEL,
                Column("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
                PROGRAMMED,
                PROBLEM,
                AGE,
            ),
        ),
        cluster_scoped=True,
    ),
)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.gep3779.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="GEP-3779",
    model=Policy,
    kinds=_KINDS,
    layers=layers,
    stance=stance_of,
    words=WORDS,
    settings=GepSettings,
    codes=lambda: (codes,),
    closes=_closes,
    lint=_lint,
    status=conditions,
    bystanders=frozenset(
        {(GROUP, kind) for kind in ("XBackend", "XBackendTrafficPolicy", "XListenerSet", "XMesh")}
        | {(CLUSTER_GROUP, kind) for kind in ("ClusterInvariant", "DecisionTest", "Invariant")}
    ),
)
