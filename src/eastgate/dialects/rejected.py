"""Policies that cannot be read: each closes what it targets. Objects with errors close what they may be about.

What such a policy says is unknown, so that anything it could have denied is denied where it applies. A question about
that is not answered at all; proxies close the port.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from eastgate.cluster import CONTROLLER_KINDS, Everything, GatewayNamed, Target, World, dns_label_problem
from eastgate.diagnostics import Diagnostic
from eastgate.diagnostics.spans import Span
from eastgate.dialects.base import Condition, Dialect, Kind, Scene
from eastgate.dialects.modes import LayerMode, Mode, refusing
from eastgate.dialects.words import NO_RULES, NOTHING_SELECTED, DescribedRule, Words
from eastgate.ir import And, Attachment, Chain, Deny, Layer, Origin, Placement, PolicyRef, Refusal, Rule, RuleKind
from eastgate.manifests import Document
from eastgate.manifests.codes import DUPLICATE_OBJECT
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.unread.locating import content_of, locate_targets

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "UNREADABLE", "Policy", "rejected", "stays_in_namespace"]

UNREADABLE = Placement(None, "unreadable")

_READER = "EG10"  # codes of what is wrong with a text: what is left of it may be anything
_HEAD = ("apiVersion", "kind", "metadata")
_KNATIVE = ("serving.knative.dev", "Service")
_INSIDE = frozenset({("", "Pod"), ("", "Service"), ("", "ServiceAccount"), ("discovery.k8s.io", "EndpointSlice")})
_PARENT = ("kind", "name", "namespace")
_TARGETS = ("targetRefs", "targetRef", "podSelector", "externalWorkloadSelector", "server")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands for the rules of a policy that nobody can read."""

    kind: ClassVar[RuleKind] = RuleKind.UNREADABLE

    def __str__(self) -> str:
        return "which cannot be read"


@dataclass(frozen=True, slots=True, eq=False)
class Policy:
    """A policy with errors, or an object that exists with errors: all that is known is its name, and what it may be
    about.
    """

    ref: PolicyRef
    span: Span
    targets: tuple[Target, ...]
    errors: tuple[Diagnostic, ...]
    is_policy: bool = True

    references: ClassVar[tuple[PolicyRef, ...]] = ()
    audit: ClassVar[bool] = False

    @property
    def origins(self) -> Iterator[Origin]:
        """It has no rules that anybody knows."""
        return iter(())


def rejected(
    document: Document,
    errors: Sequence[Diagnostic],
    kind: Kind[Any] | None,
    *,
    cluster_scoped: bool,
    is_policy: bool,
) -> Policy:
    """Make of a document with errors what it comes to.

    `kind` is None where no dialect reads that kind in that version as a policy; `cluster_scoped`: a kind of that name
    has no namespace; `is_policy`: it is, or claims to be, a policy, and no object that exists.
    """
    namespace = None if cluster_scoped else document.home
    ref = PolicyRef(document.kind, namespace, document.name, document.group)
    targets = _targets(document, errors, kind, cluster_scoped=cluster_scoped, is_policy=is_policy)
    return Policy(ref, document.span, targets, tuple(errors), is_policy)


def stays_in_namespace(document: Document) -> bool:
    """Whether an object says nothing of what is outside of its namespace: pods, what makes them and leads to them."""
    kind = "KnativeService" if (document.group, document.kind) == _KNATIVE else document.kind
    return (document.group, document.kind) in _INSIDE or CONTROLLER_KINDS.get(kind) == document.group


def _targets(
    document: Document,
    errors: Sequence[Diagnostic],
    kind: Kind[Any] | None,
    *,
    cluster_scoped: bool,
    is_policy: bool,
) -> tuple[Target, ...]:
    """What it is about, where that has no errors; otherwise its namespace, or all there is where even that has."""
    namespace = document.home
    if [one.code for one in errors] == [DUPLICATE_OBJECT] and stays_in_namespace(document):
        return (Everything(namespace),)
    unsound = [one for one in errors if one.code.id.startswith(_READER)]
    if any(one.span is None or one.span.underlined in _HEAD or _in(document, one.span, "metadata") for one in unsound):
        return (Everything(None),)
    if cluster_scoped:
        sound = kind is not None and not unsound and not _wrong(document, errors, "subject")
        return locate_targets(document, cluster_scoped=True) if sound else (Everything(None),)
    if dns_label_problem(namespace) is not None or (document.namespace is None and _unplaced(document, errors, kind)):
        return (Everything(None),)
    content = content_of(document)
    if "parentRefs" in content:  # a route: without it others take its requests, at each of its parents
        return (Everything(namespace), *_parents(document, [] if unsound else content["parentRefs"]))
    if not is_policy and not stays_in_namespace(document):
        return (Everything(None),)
    if kind is None or unsound or any(_wrong(document, errors, field) for field in _TARGETS):
        return (Everything(namespace),)
    if kind.by_reference:
        return ()
    targets = kind.locate(document) if kind.locate is not None else None
    return targets if targets is not None else locate_targets(document, cluster_scoped=False)


def _parents(document: Document, written: object) -> Iterator[Target]:
    """What a route with errors is attached to in other namespaces; all there is where that cannot be read."""
    for ref in written if isinstance(written, list) and written else [None]:
        kind, name, namespace = (ref.get(key) for key in _PARENT) if isinstance(ref, dict) else (None, None, 0)
        if kind not in (None, "Gateway", "Server", "Service") or not isinstance(namespace, str | None):
            yield Everything(None)
        elif namespace is None or namespace == document.home:
            continue
        elif kind in (None, "Gateway") and isinstance(name, str):
            yield GatewayNamed(namespace, name)
        else:
            yield Everything(namespace)


def _unplaced(document: Document, errors: Sequence[Diagnostic], kind: Kind[Any] | None) -> bool:
    """Whether what says no namespace may have another, or none: its kind is unknown, or its metadata has errors."""
    return kind is None or any(one.span is not None and _in(document, one.span, "metadata") for one in errors)


def _wrong(document: Document, errors: Sequence[Diagnostic], field: str) -> bool:
    """Whether an error is in a field of the spec, or nobody knows where it is."""
    if any(one.span is None for one in errors):
        return True
    there = field in content_of(document)
    return there and any(one.span is not None and _in(document, one.span, "spec", field) for one in errors)


def _in(document: Document, span: Span, *path: str) -> bool:
    """Whether a place is in a field. It begins with its key, on the line of its value or on the one before."""
    field = document.locate(*path)
    return field.line - 1 <= span.line <= field.end_line


def _layers(attached: Sequence[Attachment[Policy]], _scene: Scene) -> list[Layer]:
    policies = {one.policy.ref: one.policy for one in attached}
    rules = tuple(
        Rule(And(()), Origin(policy.ref, 0, policy.span, derived=Unreadable())) for policy in policies.values()
    )
    return [Layer(UNREADABLE, Chain((Deny("unreadable", rules, Refusal.CLOSED),)))]


def _conditions(policy: Policy, _policies: Sequence[Policy], _settings: Settings, _world: World) -> Sequence[Condition]:
    message = policy.errors[0].message if policy.errors else "it cannot be read"
    return (Condition("Accepted", "False", "Invalid", message),)


def _rules(policy: Policy) -> list[DescribedRule]:
    return [DescribedRule("CLOSE", (f"it cannot be read: {one.message}",), None, one.span) for one in policy.errors]


def _why_idle(_policy: Policy, problem: str | None, selects: bool) -> str:
    return NO_RULES if selects else problem or NOTHING_SELECTED


def _modes(layer: Layer, _policies: Sequence[Policy], _stance: Hashable) -> list[LayerMode]:
    refs = refusing(layer.otherwise)
    return [LayerMode(layer.at, Mode.CLOSED, f"{', '.join(map(str, refs))} cannot be read", refs)]


def _lint() -> Linting[Policy]:
    from eastgate.dialects.rejected_lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="Rejected",
    model=Policy,
    kinds=(),
    layers=_layers,
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
