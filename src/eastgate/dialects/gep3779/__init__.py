"""GEP-3779: identity-based authorization for east-west traffic, in its three forms, and our cluster-wide tiers."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.diagnostics import Diagnostic, Reporter
from eastgate.dialects.base import Dialect, Kind
from eastgate.dialects.gep3779 import meaning, shapes
from eastgate.dialects.gep3779.assemble import layers
from eastgate.dialects.gep3779.model import Policy
from eastgate.dialects.gep3779.validation import Subject
from eastgate.schema import Check, Record, check
from eastgate.settings import Settings
from eastgate.sources import Document
from eastgate.sources.node import Node

__all__ = ["CLUSTER_GROUP", "DIALECT", "GROUP", "Policy"]

GROUP = "gateway.networking.x-k8s.io"  # the drafts give none; upstream's experimental kinds live here
CLUSTER_GROUP = "eastgate.dev"

Meaning = Callable[[Document, Node, Settings], Policy]


def _reader(
    shape: Record[Subject] | Callable[[Node], Record[Subject]], meaning_of: Meaning
) -> Callable[[Document, Node, Settings, Reporter], Policy | None]:
    def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
        found = Reporter()
        kind = root.get("kind")
        check(
            shape if isinstance(shape, Record) else shape(root),
            root,
            Check(found, Subject(settings)),
            kind.span if kind is not None else None,
        )
        reporter.found.extend(sorted(found, key=_place))
        return None if found.errors else meaning_of(document, root, settings)

    return read


def _place(finding: Diagnostic) -> tuple[int, int]:
    return (finding.span.line, finding.span.column) if finding.span else (0, 0)


def _v1alpha1_shape(root: Node) -> Record[Subject]:
    """The Go type has one target; files may give a list too."""
    spec = root.get("spec")
    targets = spec.get("targetRefs") if spec is not None else None
    is_object = targets is not None and isinstance(targets.value, dict)
    return shapes.V1ALPHA1_ONE_TARGET if is_object else shapes.V1ALPHA1


DIALECT: Dialect[Policy] = Dialect(
    name="GEP-3779",
    kinds=(
        Kind(GROUP, "v1alpha2", "AuthorizationPolicy", _reader(shapes.V1ALPHA2, meaning.v1alpha2)),
        Kind(GROUP, "v1alpha1", "AuthorizationPolicy", _reader(_v1alpha1_shape, meaning.v1alpha1)),
        Kind(GROUP, "v1alpha1", "XAuthorizationPolicy", _reader(shapes.X_V1ALPHA1, meaning.x_v1alpha1)),
        Kind(
            CLUSTER_GROUP,
            "v1alpha1",
            "ClusterAuthorizationPolicy",
            _reader(shapes.CLUSTER_POLICY, meaning.cluster_policy),
        ),
    ),
    layers=layers,
    bystanders=frozenset(
        {(GROUP, kind) for kind in ("XBackend", "XBackendTrafficPolicy", "XListenerSet", "XMesh")}
        | {(CLUSTER_GROUP, "DecisionTest")}
    ),
)
