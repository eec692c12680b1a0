"""Every kind that is read, with its shape; and how an API server is to serve those that nobody else defines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eastgate.crds.openapi import Schema
from eastgate.crds.status import CONDITIONS, POLICY_STATUS
from eastgate.dialects import gep3779, kuadrant, linkerd
from eastgate.dialects.accesspolicy import shapes as access_shapes
from eastgate.dialects.accesspolicy.validation import NETWORKING_GROUP, PROTOTYPE_GROUP
from eastgate.dialects.gep3779 import shapes as gep_shapes
from eastgate.dialects.kuadrant import shapes as kuadrant_shapes
from eastgate.dialects.kuadrant.nulls import WIDENING
from eastgate.dialects.linkerd import route_shapes
from eastgate.dialects.linkerd import shapes as linkerd_shapes
from eastgate.schema import Record

__all__ = ["SERVED", "Column", "Definition", "Readable", "Version", "readable"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; those of priority 1 show with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a kind. One that is `superseded` is served only where something converts it."""

    name: str
    shape: Record[Any]
    columns: tuple[Column, ...]
    superseded: str | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """One CustomResourceDefinition. The first version is the one that is stored.

    `attachment` is how the policy attaches to its targets (GEP-713), for tools that look for such policies. In a kind
    that takes a null for a field left out, `widening_nulls` are the fields in which it does not.
    """

    group: str
    kind: str
    plural: str
    versions: tuple[Version, ...]
    status: Schema
    attachment: str | None = None
    cluster_scoped: bool = False
    widening_nulls: frozenset[str] | None = None


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_ACTION = Column("Action", ".spec.action")
_LEVEL = Column("Level", ".spec.enforcementLevel", priority=1)
_TARGETS = Column("Targets", ".spec.targetRefs")
# A column shows the first thing that its path leads to. So this one leads only to what is wrong, with whatever target.
_PROBLEM = Column("Problem", '.status.ancestors[*].conditions[?(@.status!="True")].reason')
_CONTROLLER = Column("Controller", ".status.ancestors[*].controllerName", priority=1)
_ATTACHED = (_CONTROLLER, _PROBLEM, _AGE)
_INHERITED = "Inherited"

SERVED: tuple[Definition, ...] = (
    Definition(
        gep3779.GROUP,
        "AuthorizationPolicy",
        "authorizationpolicies",
        (
            Version("v1alpha2", gep_shapes.V1ALPHA2, (_TARGETS, _ACTION, _LEVEL, *_ATTACHED)),
            Version(
                "v1alpha1",
                gep_shapes.V1ALPHA1_ONE_TARGET,
                (_TARGETS, _ACTION, *_ATTACHED),
                superseded=f"write {gep3779.GROUP}/v1alpha2",
            ),
        ),
        POLICY_STATUS,
        attachment=_INHERITED,
    ),
    Definition(
        gep3779.GROUP,
        "XAuthorizationPolicy",
        "xauthorizationpolicies",
        (Version("v1alpha1", gep_shapes.X_V1ALPHA1, (_TARGETS, _ACTION, _LEVEL, *_ATTACHED)),),
        POLICY_STATUS,
        attachment=_INHERITED,
    ),
    Definition(
        gep3779.CLUSTER_GROUP,
        "ClusterAuthorizationPolicy",
        "clusterauthorizationpolicies",
        (
            Version(
                "v1alpha1",
                gep_shapes.CLUSTER_POLICY,
                (
                    Column("Tier", ".spec.tier"),
                    Column("Priority", ".spec.priority", "integer"),
                    _ACTION,
                    _LEVEL,
                    Column("Accepted", '.status.conditions[?(@.type=="Accepted")].status'),
                    _AGE,
                ),
            ),
        ),
        CONDITIONS,
        cluster_scoped=True,
    ),
    Definition(
        PROTOTYPE_GROUP,
        "XAccessPolicy",
        "xaccesspolicies",
        (Version("v0alpha0", access_shapes.V0ALPHA0, (_TARGETS, _ACTION, *_ATTACHED)),),
        POLICY_STATUS,
        attachment=_INHERITED,
    ),
    Definition(
        PROTOTYPE_GROUP,
        "XBackend",
        "xbackends",
        (
            Version(
                "v0alpha0",
                access_shapes.BACKEND,
                (
                    Column("Service", ".spec.mcp.serviceName"),
                    Column("Host", ".spec.mcp.hostname"),
                    Column("Port", ".spec.mcp.port", "integer"),
                    _AGE,
                ),
            ),
        ),
        CONDITIONS,
    ),
    Definition(
        kuadrant.GROUP,
        "AuthPolicy",
        "authpolicies",
        (
            Version(
                "v1alpha1",
                kuadrant_shapes.AUTH_POLICY,
                (
                    Column("Target", ".spec.targetRef.kind"),
                    Column("Target Name", ".spec.targetRef.name"),
                    Column("Available", '.status.conditions[?(@.type=="Available")].status'),
                    _AGE,
                ),
            ),
        ),
        CONDITIONS,
        attachment=_INHERITED,
        widening_nulls=WIDENING,
    ),
)


@dataclass(frozen=True, slots=True)
class Readable:
    """A kind in one version as a file may hold it: one shape, or any of some."""

    group: str
    version: str
    kind: str
    shapes: tuple[Record[Any], ...]


def readable() -> Iterator[Readable]:
    """Every kind that Eastgate reads itself. A test holds the list against the dialects."""
    for version, kind, shapes in _GEP:
        yield Readable(gep3779.GROUP, version, kind, shapes)
    yield Readable(gep3779.CLUSTER_GROUP, "v1alpha1", "ClusterAuthorizationPolicy", (gep_shapes.CLUSTER_POLICY,))
    for group, version, policy in _ACCESS:
        for name in ("XAccessPolicy", "AccessPolicy"):
            yield Readable(group, version, name, (policy,))
        for name in ("XBackend", "Backend"):
            yield Readable(group, version, name, (access_shapes.BACKEND,))
    for version in _ALPHA_TO_BETA_3:
        yield Readable(linkerd.GROUP, version, "Server", (linkerd_shapes.server(version),))
        yield Readable(linkerd.GROUP, version, "HTTPRoute", (route_shapes.HTTP_ROUTE,))
    for version, kind, shape in _LINKERD:
        yield Readable(linkerd.GROUP, version, kind, (shape,))
    yield Readable(kuadrant.GROUP, "v1alpha1", "AuthPolicy", (kuadrant_shapes.AUTH_POLICY,))


_GEP: tuple[tuple[str, str, tuple[Record[Any], ...]], ...] = (
    ("v1alpha2", "AuthorizationPolicy", (gep_shapes.V1ALPHA2,)),
    ("v1alpha1", "AuthorizationPolicy", (gep_shapes.V1ALPHA1, gep_shapes.V1ALPHA1_ONE_TARGET)),
    ("v1alpha1", "XAuthorizationPolicy", (gep_shapes.X_V1ALPHA1,)),
)
_ACCESS = (
    (PROTOTYPE_GROUP, "v0alpha0", access_shapes.V0ALPHA0),
    (NETWORKING_GROUP, "v0alpha0", access_shapes.V0ALPHA0_CEL),
    (NETWORKING_GROUP, "v1alpha1", access_shapes.V1ALPHA1),
)
_ALPHA_TO_BETA_3 = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3")
_LINKERD: tuple[tuple[str, str, Record[Any]], ...] = (
    ("v1alpha1", "ServerAuthorization", linkerd_shapes.SERVER_AUTHORIZATION),
    ("v1beta1", "ServerAuthorization", linkerd_shapes.SERVER_AUTHORIZATION),
    ("v1alpha1", "AuthorizationPolicy", linkerd_shapes.AUTHORIZATION_POLICY),
    ("v1alpha1", "MeshTLSAuthentication", linkerd_shapes.MESH_TLS_AUTHENTICATION),
    ("v1alpha1", "NetworkAuthentication", linkerd_shapes.NETWORK_AUTHENTICATION),
)
