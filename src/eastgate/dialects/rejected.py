"""Policies that cannot be read: each closes its targets. Objects with errors close everything that they may apply to.

The rules of such a policy are unknown. So at its targets, every request that it could have denied is denied: a question
about them gets no decision, and proxies close the port.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import CONTROLLER_KINDS, Everything, GatewayNamed, Target, World, dns_label_problem
from eastgate.cluster.points import Direction
from eastgate.cluster.unread.locating import content_of, locate_targets
from eastgate.dialects.base import Condition, Dialect, Kind, Scene
from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, DescribedRule, LayerMode, Mode, Words, refusing
from eastgate.ir import (
    And,
    Attachment,
    Chain,
    Deny,
    Layer,
    Origin,
    Placement,
    PolicyRef,
    Refusal,
    Rule,
    RuleKind,
    repr_of_named,
)
from eastgate.reading.manifests import Document
from eastgate.reading.manifests import codes as text_codes
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

UNREADABLE = Placement(None, "unreadable")

# Errors in the text itself, which make the rest of it unreliable
_TEXT_ERRORS = frozenset(code.id for code in vars(text_codes).values() if isinstance(code, Code))
_TEXT_ERRORS -= {text_codes.PLACEHOLDER.id}
_HEAD_FIELDS = ("apiVersion", "kind", "metadata")
_KNATIVE = ("serving.knative.dev", "Service")
_NAMESPACE_LOCAL_KINDS = frozenset(
    {("", "Pod"), ("", "Service"), ("", "ServiceAccount"), ("discovery.k8s.io", "EndpointSlice")}
)
_PARENT_FIELDS = ("kind", "name", "namespace")
_TARGET_FIELDS = ("targetRefs", "targetRef", "podSelector", "externalWorkloadSelector", "server")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The origin of the rule that replaces an unreadable policy."""

    kind: ClassVar[RuleKind] = RuleKind.UNREADABLE

    def __str__(self) -> str:
        return "which cannot be read"


@dataclass(frozen=True, slots=True, eq=False)
class RejectedPolicy:
    """A policy or an object with errors. Only its name and its possible targets are known."""

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    errors: tuple[Diagnostic, ...]
    is_policy: bool = True
    is_unfilled: bool = False
    """Whether it has placeholders and no errors. Then it denies at the targets that could be read."""

    references: ClassVar[tuple[PolicyRef, ...]] = ()
    audit: ClassVar[bool] = False

    __repr__ = repr_of_named

    @property
    def origins(self) -> Iterator[Origin]:
        """Return no origins, because its rules are unknown."""
        return iter(())


def reject(
    document: Document,
    errors: Sequence[Diagnostic],
    kind: Kind[Any] | None,
    *,
    cluster_scoped: bool,
    is_policy: bool,
) -> RejectedPolicy:
    """Return the policy that closes everything that a document with errors may apply to.

    `kind` is None if no dialect reads that kind in that version as a policy. `cluster_scoped`: a kind with that name
    has no namespace. `is_policy`: the document is, or claims to be, a policy, and not another object.
    """
    namespace = None if cluster_scoped else document.home
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    targets = _targets(document, errors, kind, cluster_scoped=cluster_scoped, is_policy=is_policy)
    return RejectedPolicy(ref, document.span, targets, tuple(errors), is_policy)


def stays_in_namespace(document: Document) -> bool:
    """Return whether an object affects only its own namespace: pods, their controllers, Services and the like."""
    kind = "KnativeService" if (document.group, document.kind) == _KNATIVE else document.kind
    return (document.group, document.kind) in _NAMESPACE_LOCAL_KINDS or CONTROLLER_KINDS.get(kind) == document.group


def _targets(
    document: Document,
    errors: Sequence[Diagnostic],
    kind: Kind[Any] | None,
    *,
    cluster_scoped: bool,
    is_policy: bool,
) -> tuple[Target, ...]:
    """Return its targets if these have no errors; otherwise its namespace or, if that has errors, everything."""
    namespace = document.home
    if [error.code for error in errors] == [text_codes.DUPLICATE_OBJECT] and stays_in_namespace(document):
        return (Everything(namespace),)
    unsound = [error for error in errors if error.code.id in _TEXT_ERRORS]
    if any(
        error.span is None or error.span.underlined in _HEAD_FIELDS or _is_within(document, error.span, "metadata")
        for error in unsound
    ):
        return (Everything(None),)
    if cluster_scoped:
        if kind is None or unsound or _has_error_in(document, errors, "subject"):
            return (Everything(None),)
        targets = kind.locate(document) if kind.locate is not None else None
        return targets if targets is not None else locate_targets(document, cluster_scoped=True)
    if dns_label_problem(namespace) is not None or (
        document.namespace is None and _may_have_other_namespace(document, errors, kind)
    ):
        return (Everything(None),)
    content = content_of(document)
    if "parentRefs" in content:  # a route: without it, other routes match its requests at each parent
        return (Everything(namespace), *_parents(document, [] if unsound else content["parentRefs"]))
    if not is_policy and not stays_in_namespace(document):
        return (Everything(None),)
    if kind is None or unsound or any(_has_error_in(document, errors, field) for field in _TARGET_FIELDS):
        return (Everything(namespace),)
    if kind.by_reference:
        return ()
    targets = kind.locate(document) if kind.locate is not None else None
    return targets if targets is not None else locate_targets(document, cluster_scoped=False)


def _parents(document: Document, refs: object) -> Iterator[Target]:
    """Yield the parents of a route with errors in other namespaces, or everything if they cannot be read."""
    for ref in refs if isinstance(refs, list) and refs else [None]:
        kind, name, namespace = (ref.get(key) for key in _PARENT_FIELDS) if isinstance(ref, dict) else (None, None, 0)
        if kind not in (None, "Gateway", "Server", "Service") or not isinstance(namespace, str | None):
            yield Everything(None)
        elif namespace is None or namespace == document.home:
            continue
        elif kind in (None, "Gateway") and isinstance(name, str):
            yield GatewayNamed(namespace, name)
        else:
            yield Everything(namespace)


def _may_have_other_namespace(document: Document, errors: Sequence[Diagnostic], kind: Kind[Any] | None) -> bool:
    """Return whether an object without a namespace may be in a named one: its kind or metadata is unreliable."""
    return kind is None or any(
        error.span is not None and _is_within(document, error.span, "metadata") for error in errors
    )


def _has_error_in(document: Document, errors: Sequence[Diagnostic], field: str) -> bool:
    """Return whether an error is in a field of the spec, or may be because its position is unknown."""
    if any(error.span is None for error in errors):
        return True
    present = field in content_of(document)
    return present and any(
        error.span is not None and _is_within(document, error.span, "spec", field) for error in errors
    )


def _is_within(document: Document, span: Span, *path: str) -> bool:
    """Return whether a span is in a field. The field begins at its key, on the line of its value or the one before."""
    field = document.locate(*path)
    return field.line - 1 <= span.line <= field.end_line


def _layers(attached: Sequence[Attachment[RejectedPolicy]], _scene: Scene) -> list[Layer]:
    policies = {attachment.policy.ref: attachment.policy for attachment in attached}
    rules = tuple(
        Rule(And(()), Origin(policy.ref, 0, policy.span, derived=Unreadable())) for policy in policies.values()
    )
    return [Layer(UNREADABLE, Chain((Deny("unreadable", rules, Refusal.CLOSED),)))]


def _ends(attached: Sequence[Attachment[RejectedPolicy]], _direction: Direction, scene: Scene) -> list[Layer]:
    return _layers(attached, scene)


def _conditions(
    policy: RejectedPolicy, _policies: Sequence[RejectedPolicy], _settings: Settings, _world: World
) -> Sequence[Condition]:
    message = policy.errors[0].message if policy.errors else "it cannot be read"
    return (Condition("Accepted", "False", "Invalid", message),)


def _rules(policy: RejectedPolicy) -> list[DescribedRule]:
    return [
        DescribedRule("CLOSE", (f"it cannot be read: {error.message}",), None, error.span) for error in policy.errors
    ]


def _why_idle(_policy: RejectedPolicy, problem: str | None, selects: bool) -> str:
    return NO_RULES if selects else problem or NOTHING_SELECTED


def _modes(layer: Layer, _policies: Sequence[RejectedPolicy], _stance: Hashable) -> list[LayerMode]:
    refs = refusing(layer.otherwise)
    return [LayerMode(layer.at, Mode.CLOSED, f"{', '.join(map(str, refs))} cannot be read", refs)]


def _lint() -> Linting[RejectedPolicy]:
    from eastgate.dialects.rejected_lint import LINTING

    return LINTING


DIALECT: Dialect[RejectedPolicy] = Dialect(
    name="Rejected",
    model=RejectedPolicy,
    kinds=(),
    layers=_layers,
    ends=_ends,
    words=Words(
        action=lambda _policy: "UNREADABLE",
        level=lambda _policy: "all",
        rules=_rules,
        why_idle=_why_idle,
        modes=_modes,
    ),
    lint=_lint,
    codes=lambda: (),
    closes=lambda _policy: False,
    status=_conditions,
)
