"""Documents that do not count as they are written: why, what they close, and what they may be about."""

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
_AT_HOME = frozenset({"ConfigMap", "Secret", "ServiceAccount"})  # they are about their namespace


class FaultReason(enum.StrEnum):
    """Why a document does not count as it is written."""

    POLICY = "policy"  # a policy has errors: it closes what it targets
    ROUTE = "route"  # a route has errors: it closes where it is attached
    TWICE = "twice"  # an object contradicts another document of the same name: nobody knows which exists
    OBJECT = "object"  # any other object has errors
    KEPT = "kept"  # a policy, or what closes like one, has errors, and the one that was read before stays in force
    LEFT_OUT = "left out"  # any object that is left out: answers that it could change say so


@dataclass(slots=True)
class Fault:
    """A document that does not count as it is written, and its errors."""

    document: Document
    reason: FaultReason
    errors: list[Diagnostic]
    settings: Settings = field(default_factory=Settings)
    unfit: Policy | None = None
    """The policy by itself, where it is wrong only beside everything else."""
    targets: tuple[Target, ...] | None = None
    """What it closes, or may be about, where that is known better than the document says."""
    is_unfilled: bool = False
    """Whether it has placeholders, and nothing else is wrong: somebody, or a tool, has yet to fill them in."""

    @classmethod
    def of_head(cls, document: Document, settings: Settings, errors: list[Diagnostic] | None = None) -> Fault:
        """Return the fault of an object of which only the head could be read. A policy closes its namespace."""
        is_policy = dialects.is_policy(document)
        fault = cls(document, FaultReason.POLICY if is_policy else FaultReason.OBJECT, errors or [], settings)
        if not is_policy and (dialects.unread(document) is not None or stays_in_namespace(document)):
            fault.targets = (Everything(document.home),)
        return fault

    @property
    def closes(self) -> bool:
        """Return whether it closes what it targets, or may be about."""
        return self.reason in (FaultReason.POLICY, FaultReason.ROUTE, FaultReason.TWICE)

    @property
    def policy(self) -> RejectedPolicy:
        """Return the policy that closes what the document targets."""
        policy = dialects.reject(self.document, self.errors, self.settings)
        policy = replace(policy, is_unfilled=self.is_unfilled)
        if self.targets is not None:
            return replace(policy, targets=self.targets)
        if any(placeholder_in(str(target)) is not None for target in policy.targets):
            return replace(policy, targets=(Everything(policy.ref.namespace),))
        return policy

    def left_out(self, why: str | None = None) -> Unread:
        """Return the object as one that is left out, about all that it may be about."""
        document, errors = self.document, self.errors
        more = f" and {len(errors) - 1} more error{'s' if len(errors) > 2 else ''}" if len(errors) > 1 else ""
        span = (errors[0].span if errors else None) or document.span
        message = f"{errors[0].message}; {errors[0].help}" if self.is_unfilled else f"{errors[0].message}{more}"
        part = LeftOut(described(document), span.location, why or message, reason=self._reason)
        targets, at_gateways = about(self)
        return lost_object(part, document, targets, at_gateways=at_gateways)

    @property
    def _reason(self) -> str:
        """Return what the reasons of several such documents have in common."""
        if self.is_unfilled:
            return UNFILLED
        return "they are written twice, with different content" if self.reason is FaultReason.TWICE else ""


def lost_text(finding: Diagnostic) -> Unread:
    """Return a text that has to be rendered first, about anything."""
    where, text = (finding.span.location, finding.span.source.text) if finding.span is not None else ("", None)
    part = LeftOut("a document", where, f"{finding.message}; {finding.help}", reason=UNFILLED)
    return lost_part(part, finding.span, text=text)


def ref_of_document(document: Document) -> PolicyRef:
    """Return the name of the object that a document describes."""
    return PolicyRef(document.kind, document.home, document.name, document.group)


def ref_of_id(name: ObjectId) -> PolicyRef:
    """Return the name of an object that exists."""
    return PolicyRef(name.kind, name.namespace or None, name.name, name.group)


def described(document: Document) -> str:
    """Return the kind and the name of an object, for people."""
    return f"{document.kind} {f'{document.namespace}/' if document.namespace else ''}{document.name}"


def has_no_namespace(document: Document) -> bool:
    """Return whether nobody knows in which namespace a namespaced object is."""
    return document.namespace is not None and dns_label_problem(document.namespace) is not None


def about(fault: Fault) -> tuple[tuple[Target, ...], bool]:
    """Return what an object with errors may be about, and whether that is only at gateways."""
    document = fault.document
    if document.kind == "Namespace" and not document.group:
        return (Everything(document.name if dns_label_problem(document.name) is None else None),), False
    if has_no_namespace(document):
        return (Everything(None),), False
    if not document.group and document.kind in _AT_HOME and not _is_selected(document):
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
    """Return the Gateways that a route is attached to; none where it is attached to something else, or may be."""
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
    """Return whether an object with errors is left out, rather than stopping everything: where a cluster has it.

    A route is not: it closes where it is attached.
    """
    return isinstance(origin_of(document), RenderedObject) and not dialects.is_route(document)
