"""Documents that cannot be used as written: the reason, and the objects that they close or may affect."""

from __future__ import annotations

import enum
from dataclasses import field, replace

from eastgate import dialects
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.cluster import Everything, GatewayNamed, ObjectId, RouteNamed, Target, dns_label_problem
from eastgate.cluster.names import dns_subdomain_problem
from eastgate.cluster.unread import (
    EnforcementPlane,
    TargetField,
    Unread,
    UnreadEffect,
    UnreadKind,
    lost_object,
    lost_part,
)
from eastgate.dialects import Policy
from eastgate.dialects.rejected import RejectedPolicy, stays_in_namespace
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.document import content_of, origin_of
from eastgate.reading.manifests.placeholders import placeholder_in
from eastgate.reading.manifests.rendered import RenderedObject
from eastgate.reading.repository import LeftOut
from eastgate.settings import Settings

UNFILLED = "they have placeholders; fill these in, or leave the files out: --exclude"
_NAMESPACE_ONLY_KINDS = frozenset(
    {"ConfigMap", "Secret", "ServiceAccount"}
)  # objects of these kinds affect only their namespace


class FaultReason(enum.StrEnum):
    """The reason why a document cannot be used as written."""

    POLICY = "policy"  # a policy has errors: it closes its targets
    ROUTE = "route"  # a route has errors: it closes its parents
    TWICE = "twice"  # two documents of one name contradict each other: which of them exists is unknown
    OBJECT = "object"  # any other object has errors
    KEPT = "kept"  # a document has errors, and its earlier version stays in force
    LEFT_OUT = "left out"  # any object that is left out: an answer that it could change tells so


@dataclass(slots=True)
class Fault:
    """A document that cannot be used as written, and its errors."""

    document: Document
    reason: FaultReason
    errors: list[Diagnostic]
    settings: Settings = field(default_factory=Settings)
    unfit: Policy | None = None
    """The policy as read, if it has errors only beside everything else."""
    targets: tuple[Target, ...] | None = None
    """The targets that it closes or may affect, if they are known better than from the document."""
    is_unfilled: bool = False
    """Whether its only fault are placeholders, which a person or a tool has yet to fill in."""

    @classmethod
    def of_head(cls, document: Document, settings: Settings, errors: list[Diagnostic] | None = None) -> Fault:
        """Return the fault of an object whose head alone could be read. A policy closes its namespace."""
        is_policy = dialects.is_policy(document)
        fault = cls(document, FaultReason.POLICY if is_policy else FaultReason.OBJECT, errors or [], settings)
        if not is_policy and (dialects.unread(document) is not None or stays_in_namespace(document)):
            fault.targets = (Everything(document.home),)
        return fault

    @property
    def closes(self) -> bool:
        """Return whether the document closes its targets, or the objects that it may affect."""
        return self.reason in (FaultReason.POLICY, FaultReason.ROUTE, FaultReason.TWICE)

    @property
    def policy(self) -> RejectedPolicy:
        """Return the policy that closes the targets of the document."""
        policy = dialects.reject(self.document, self.errors, self.settings)
        policy = replace(policy, is_unfilled=self.is_unfilled)
        if self.targets is not None:
            return replace(policy, targets=self.targets)
        if any(placeholder_in(str(target)) is not None for target in policy.targets):
            return replace(policy, targets=(Everything(policy.ref.namespace),))
        return policy

    def left_out(self, why: str | None = None) -> Unread:
        """Return the object as a part that is left out, about everything that it may affect."""
        document, errors = self.document, self.errors
        more = f" and {len(errors) - 1} more error{'s' if len(errors) > 2 else ''}" if len(errors) > 1 else ""
        span = (errors[0].span if errors else None) or document.span
        message = f"{errors[0].message}; {errors[0].help}" if self.is_unfilled else f"{errors[0].message}{more}"
        part = LeftOut(described(document), span.location, why or message, reason=self._reason)
        targets, at_gateways = about(self)
        return lost_object(part, document, targets, at_gateways=at_gateways)

    @property
    def _reason(self) -> str:
        """Return the reason that several such documents share."""
        if self.is_unfilled:
            return UNFILLED
        return "they are written twice, with different content" if self.reason is FaultReason.TWICE else ""


def lost_text(finding: Diagnostic) -> Unread:
    """Return a text with placeholders, which must be rendered first, as a part that may affect anything."""
    where, text = (finding.span.location, finding.span.source.text) if finding.span is not None else ("", None)
    part = LeftOut("a document", where, f"{finding.message}; {finding.help}", reason=UNFILLED)
    return lost_part(part, finding.span, text=text)


def ref_of_document(document: Document) -> PolicyRef:
    """Return the name of the object that a document describes."""
    return PolicyRef(document.kind, document.home, document.name, document.group)


def ref_of_id(name: ObjectId) -> PolicyRef:
    """Return the name of an object of the world, as a policy reference."""
    return PolicyRef(name.kind, name.namespace or None, name.name, name.group)


def described(document: Document) -> str:
    """Return the kind and the name of an object, for people."""
    return f"{document.kind} {f'{document.namespace}/' if document.namespace else ''}{document.name}"


def has_no_namespace(document: Document) -> bool:
    """Return whether the namespace of a namespaced object is invalid, and so unknown."""
    return document.namespace is not None and dns_label_problem(document.namespace) is not None


def about(fault: Fault) -> tuple[tuple[Target, ...], bool]:
    """Return the targets that an object with errors may affect, and whether they are only at gateways."""
    document = fault.document
    if document.kind == "Namespace" and not document.group:
        return (Everything(document.name if dns_label_problem(document.name) is None else None),), False
    if has_no_namespace(document):
        return (Everything(None),), False
    if not document.group and document.kind in _NAMESPACE_ONLY_KINDS and not _is_selected(document):
        return (Everything(document.home),), False
    if fault.reason is FaultReason.ROUTE and (gateways := _gateways(document)):
        return (RouteNamed(document.home, document.name, document.kind), *gateways), True
    return fault.policy.targets or (Everything(None),), False


def _is_selected(document: Document) -> bool:
    """Return whether a Secret has a label by which an authorizer may select it, from any namespace."""
    content = content_of(document)
    metadata = content.get("metadata") if isinstance(content, dict) else None
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels is not None and (not isinstance(labels, dict) or any("kuadrant" in label for label in labels))


def _gateways(document: Document) -> tuple[Target, ...]:
    """Return the Gateways that a route is attached to; empty if it is, or may be, attached to something else."""
    content = content_of(document)
    spec = content.get("spec") if isinstance(content, dict) else None
    refs = spec.get("parentRefs") if isinstance(spec, dict) else None
    found: list[Target] = []
    for ref in refs if isinstance(refs, list) else ():
        if not isinstance(ref, dict) or ref.get("kind", "Gateway") != "Gateway":
            return ()
        name, namespace = ref.get("name"), ref.get("namespace", document.home)
        if not isinstance(name, str) or not isinstance(namespace, str):
            return ()
        if dns_label_problem(namespace) is not None or dns_subdomain_problem(name) is not None:
            return ()
        found.append(GatewayNamed(namespace, name))
    return tuple(found)


FAULTY = UnreadKind("", "object with errors", UnreadEffect.CHANGE, EnforcementPlane.MESH, TargetField.NAMESPACE)


def is_left_out(document: Document) -> bool:
    """Return whether an object of a cluster with errors is left out, so that it does not stop all answers.

    A route is never left out: it closes its parents.
    """
    return isinstance(origin_of(document), RenderedObject) and not dialects.is_route(document)
