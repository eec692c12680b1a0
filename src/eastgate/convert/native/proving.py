"""Proves native policies: compares the verdicts of the GEP-3779 policies and of the mesh for all requests.

Both sides include the native policies that Eastgate did not write. The proof adds pods to those that exist: one for
each selector of a policy, and one for each two selectors that may overlap. So it also covers pods that do not exist
yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import Manifests, read_plain
from eastgate.cluster import Namespace, Operator, PodsMatching, Selector, Workload, WorldObject
from eastgate.cluster.unread import Handling
from eastgate.convert.assuming import assume
from eastgate.convert.model import Options
from eastgate.convert.native.model import Json, NativeMesh
from eastgate.convert.native.situation import Situation, SourcePolicy, read_documents
from eastgate.convert.native.targets import pods_of
from eastgate.convert.selectors import may_meet
from eastgate.reach.comparison import AuthorityComparison
from eastgate.reach.differences import compare
from eastgate.reading.manifests import Document
from eastgate.settings import Settings

_PROBE = "eastgate-probe-for-pods-to-come"
_MAX_PAIRED_SELECTORS = 32
_DEFAULTS = frozenset(
    {"config.linkerd.io/default-inbound-policy", "config.linkerd.io/proxy-require-identity-inbound-ports"}
)
_NO_DEFAULT = {"linkerdDefaultPolicy": "all-unauthenticated"}


class Prover:
    """Compares the policies of a situation with native objects. `probes` are the added pods, by key."""

    def __init__(self, situation: Situation, options: Options) -> None:
        self._situation, self._options = situation, options
        self._is_linkerd = situation.mesh is NativeMesh.LINKERD
        self.probes = {f"{pods.namespace}/{_PROBE}-{number}": pods for number, pods in enumerate(_probed(situation))}
        self._pods = read_plain([_pod(key, pods) for key, pods in self.probes.items()], situation.settings).objects
        # Linkerd's default policy is no part of the GEP-3779 policies. It counts only on the side that Linkerd
        # enforces.
        self._bare = [_without_default(declared) for declared in situation.objects]
        before = Settings.from_mapping(_NO_DEFAULT, situation.settings)
        before = before if self._is_linkerd else before.enforced()
        self._after = (situation.settings, situation.objects) if self._is_linkerd else (before, self._bare)
        documents = [source.document for source in situation.sources]
        self.policies = self._authority([*documents, *situation.foreign], before, self._bare)
        """The authority with the GEP-3779 policies."""

    def compare(self, natives: Iterable[Json]) -> AuthorityComparison:
        """Return the requests with another verdict in the mesh with these objects."""
        mesh = self._authority([*natives, *self._situation.foreign], *self._after)
        if self._is_linkerd:
            attached = programs_of(self.policies).attached
            targeted = {key for key in self.policies.world.workloads if attached(key)}
            comparison = compare(self.policies, mesh, targeted, spellings=False)
        else:
            comparison = compare(self.policies, mesh, spellings=False, handshakes=False)
        return assume(comparison, self._options.assumed, self._situation.settings.trust_domain)

    def sources_at(self, kind: str, members: Sequence[str]) -> list[SourcePolicy]:
        """Return the policies that target a destination.

        For a destination that is no pod, return those of its namespace.
        """
        world, engine = self.policies.world, programs_of(self.policies)
        pods = [member for member in members if kind == "pod" and member in world.workloads]
        refs = {each.policy.ref for pod in pods for each in engine.attached(pod)}
        namespaces = {member.partition("/")[0] for member in members} if not pods else set()
        return [
            source
            for source in self._situation.sources
            if source.ref in refs or (not pods and source.ref.namespace in (None, *namespaces))
        ]

    def _authority(
        self, documents: Iterable[Document | Json], settings: Settings, objects: Sequence[WorldObject]
    ) -> Authority:
        read = read_documents(documents, settings)
        side = Manifests(settings, [*objects, *self._pods, *read.objects], read.policies)
        side.faults, side.reporter = read.faults, read.reporter
        return Authority(side, strict=False, unread=Handling.IGNORE)


def _without_default(declared: WorldObject) -> WorldObject:
    """Return an object without the annotations that only Linkerd reads.

    They would hide requests that no policy denies.
    """
    if not isinstance(declared, Namespace | Workload) or _DEFAULTS.isdisjoint(declared.annotations):
        return declared
    kept = {key: value for key, value in declared.annotations.items() if key not in _DEFAULTS}
    return replace(declared, annotations=kept)


def _probed(situation: Situation) -> Iterator[PodsMatching]:
    """Yield a pod for each selector of a policy, and for each two that may overlap."""
    targets = (target for source in situation.sources for target in source.closing.targets)
    probed = list(dict.fromkeys(pods for target in targets for pods in pods_of(target, situation)))
    yield from probed
    if len(probed) > _MAX_PAIRED_SELECTORS:
        return
    for pods, others in combinations(probed, 2):
        if pods.namespace == others.namespace and may_meet(pods.selector, others.selector):
            yield PodsMatching(pods.namespace, _both(pods.selector, others.selector))


def _both(selector: Selector, other: Selector) -> Selector:
    return Selector(selector.match_labels | other.match_labels, selector.expressions | other.expressions)


def _pod(key: str, pods: PodsMatching) -> Json:
    namespace, _, name = key.partition("/")
    metadata = {"name": name, "namespace": namespace, "labels": _labels(pods.selector)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}]}}


def _labels(selector: Selector) -> dict[str, str]:
    """Return labels that a selector selects, if such labels exist."""
    labels = dict(selector.match_labels)
    for requirement in sorted(selector.expressions, key=lambda each: (each.key, each.operator)):
        if requirement.operator is Operator.IN and requirement.values:
            labels.setdefault(requirement.key, min(requirement.values))
        elif requirement.operator is Operator.EXISTS:
            labels.setdefault(requirement.key, "any")
    return labels
