"""A cluster to look at: the authority that decides, the manifests as they were written, and what affects what.

Which policy affects a workload is read from the workload's own layers, so that it is the real effect and not what a
selector promises: a Baseline policy that a team's own policy replaces, an AuthorizationPolicy on a Server of another
pod's port and an AuthPolicy that came second leave no trace in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar, cast

from eastgate.api.authority import Authority, sort_documents
from eastgate.cluster import ObjectId
from eastgate.cluster.points import NamedPoint, Point
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.diagnostics import Diagnostic, Reporter
from eastgate.dialects import Policy, dialect_of
from eastgate.dialects.linting import Finding
from eastgate.ir import Layer, PolicyRef
from eastgate.manifests import Document
from eastgate.records import dataclass
from eastgate.settings import Settings
from eastgate.unread import Callers, Handling, Unconsidered

__all__ = ["Cluster", "Effects", "effects_of"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Effects:
    """The policies that shape some layers, and those that are only observed there."""

    enforced: frozenset[PolicyRef]
    observed: frozenset[PolicyRef]


def effects_of(layers: Iterable[Layer]) -> Effects:
    """Which policies left their rules in some layers, or chose one of their chains."""
    enforced: set[PolicyRef] = set()
    observed: set[PolicyRef] = set()
    for layer in layers:
        for chain in layer.chains:
            enforced.update(chain.chosen_by)
            rules = chain.rules(observed=False)
            enforced |= {rule.origin.policy for rule in rules if rule.origin.policy is not None}
            observed |= {rule.origin.policy for rule, _ in chain.audited if rule.origin.policy is not None}
    return Effects(frozenset(enforced), frozenset(observed - enforced))


class Cluster:
    """What there is to look at. The documents are those that the authority was built from."""

    def __init__(self, authority: Authority, documents: Sequence[Document] = ()) -> None:
        self.authority = authority
        self.documents = list(documents)
        self.findings: list[Finding] | None = None  # what lint said, once somebody asked
        self._known: dict[tuple[str, int], object] = {}

    @classmethod
    def of(
        cls,
        documents: Sequence[Document],
        settings: Settings,
        reporter: Reporter,
        twice: Iterable[tuple[Document, Diagnostic]] = (),
        *,
        strict: bool = True,
        unread: Handling = Handling.BY_KIND,
    ) -> Cluster:
        """Raises ManifestError where a manifest has errors; without `strict`, where others than policies have."""
        manifests = sort_documents(documents, settings, reporter, twice)
        return cls(Authority(manifests, settings, strict=strict, unread=unread), documents)

    @property
    def policies(self) -> Sequence[Policy]:
        """Every policy, sorted by kind, namespace and name."""
        return self._policies

    @cached_property
    def _policies(self) -> Sequence[Policy]:
        return self.authority.policies

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str | None, str], Document]:
        return {(one.group, one.kind, one.namespace, one.name): one for one in self.documents}

    def document(self, ref: PolicyRef | ObjectId) -> Document | None:
        """The manifest of a policy or of something that exists, as it was written."""
        namespace = ref.namespace or None
        found = self._by_name.get((ref.group, ref.kind, namespace, ref.name))
        if found is None and namespace in (self.authority.settings.namespace, None):
            found = self._by_name.get((ref.group, ref.kind, None, ref.name))
        return found

    def layers(self, point: Point) -> tuple[Layer, ...]:
        """The layers of a workload, a Gateway, a route or a Backend."""
        return self.authority.engine.program(point).layers

    def attached(self, point: Point) -> list[Policy]:
        """The policies that target a point, each once."""
        return list({one.policy.ref: one.policy for one in self.authority.engine.attached(point)}.values())

    def unconsidered(self, points: Iterable[Point]) -> Unconsidered:
        """What could not be considered of who may reach some points, whoever calls."""
        authority = self.authority
        elsewhere = len(authority.rejected) - len(authority.rejected_at(points))
        return authority.unread_objects.about(points, Callers(anybody=True), authority.world, rejected=elsewhere)

    def effects(self, point: Point) -> Effects:
        """The policies that really affect a point; workloads that decide alike share the answer."""
        return self.of_class("effects", point, lambda: self._with_silent(effects_of(self.layers(point)), point))

    def of_class(self, what: str, point: Point, compute: Callable[[], T]) -> T:
        """What is the same for all points that decide alike, computed once: they have the same policies and stance."""
        key = what, id(self.authority.engine.program(point))
        if key not in self._known:
            self._known[key] = compute()
        return cast("T", self._known[key])

    def _with_silent(self, found: Effects, point: Point) -> Effects:
        """With the policies that act without a rule: an ALLOW policy that lists nobody closes what it targets, and an
        authentication acts through whoever refers to it."""
        attached = self.attached(point)
        enforced = set(found.enforced)
        enforced |= {policy.ref for policy in attached if dialect_of(policy).closes(policy)}
        observed = set(found.observed)
        for policy in attached:
            if policy.ref in enforced:
                enforced |= set(policy.references)
            elif policy.ref in observed:
                observed |= set(policy.references)
        return Effects(frozenset(enforced), frozenset(observed - enforced))

    def points(self, policy: Policy) -> list[Point]:
        """What a policy targets, as points of enforcement that exist."""
        world = self.authority.world
        found: set[Point] = set()
        for target in policy.targets:
            match target:
                case GatewayNamed(namespace, name):
                    found |= {target} if f"{namespace}/{name}" in world.gateways else set()
                case RouteNamed(namespace, name):
                    found |= {target} if f"HTTPRoute/{namespace}/{name}" in world.routes else set()
                case BackendNamed(namespace, name):
                    found |= {target} if f"{namespace}/{name}" in world.backends else set()
                case _:
                    found |= world.select(target)
        return sorted(found, key=str)

    def affected(self, policy: Policy) -> list[Point]:
        """The points that a policy really affects, by deciding there or (in audit mode) by being observed."""
        return [point for point in self._candidates(policy) if self._affects(policy, point)]

    def _affects(self, policy: Policy, point: Point) -> bool:
        effects = self.effects(point)
        return policy.ref in effects.enforced or policy.ref in effects.observed

    def _candidates(self, policy: Policy) -> list[Point]:
        if policy.targets:
            return self.points(policy)
        referring = self.referring(policy.ref)
        return sorted({point for one in referring for point in self.points(one)}, key=str)

    def beside(self, policy: Policy) -> list[Policy]:
        """The policies that one may get on with, or not: those of its API and namespace, and those it refers to."""
        ours = self._by_home.get((policy.ref.group, policy.ref.namespace), [])
        return [*ours, *(self._by_ref[ref] for ref in policy.references if ref in self._by_ref)]

    @cached_property
    def _by_ref(self) -> dict[PolicyRef, Policy]:
        return {policy.ref: policy for policy in self.policies}

    @cached_property
    def _by_home(self) -> dict[tuple[str, str | None], list[Policy]]:
        found: dict[tuple[str, str | None], list[Policy]] = {}
        for policy in self.policies:
            found.setdefault((policy.ref.group, policy.ref.namespace), []).append(policy)
        return found

    def referring(self, ref: PolicyRef) -> list[Policy]:
        """The policies that refer to another: to an authentication, say."""
        return self._referring.get(ref, [])

    @cached_property
    def _referring(self) -> dict[PolicyRef, list[Policy]]:
        found: dict[PolicyRef, list[Policy]] = {}
        for policy in self.policies:
            for ref in policy.references:
                found.setdefault(ref, []).append(policy)
        return found

    @cached_property
    def affected_counts(self) -> dict[PolicyRef, int]:
        """How many points each policy affects; for all policies at once, one look at each point."""
        counts: dict[PolicyRef, int] = {policy.ref: 0 for policy in self.policies}
        for point in self._every_point():
            effects = self.effects(point)
            for ref in effects.enforced | effects.observed:
                if ref in counts:
                    counts[ref] += 1
        return counts

    def _every_point(self) -> Iterator[Point]:
        yield from self.authority.world.workloads
        named = [one for one in self.policies if any(isinstance(target, NamedPoint) for target in one.targets)]
        declared = {point for policy in named for point in self.points(policy) if isinstance(point, NamedPoint)}
        yield from sorted(declared, key=str)
