"""The mTLS mode of each port of a workload, from the PeerAuthentications that select it.

The oldest policy of the mesh, of the namespace and of the workload count. Each overrides the one before; UNSET
inherits. Without any policy, both plaintext and mTLS are accepted. Of policies with one age, the first by name counts.
ztunnel gets the modes as DENY policies, in a translation with peculiarities, and may get any policy of one age: see
`ztunnel_denials`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final, TypeAlias

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.dialects.istio.model import MtlsMode, PeerAuthentication
from eastgate.ir import And, Is, Not, OneOf, Predicate, Present
from eastgate.ir.attributes import IDENTITY, PORT

PLAINTEXT: Final = Not(Is(IDENTITY, Present()))
_LAX: Final = frozenset({MtlsMode.PERMISSIVE, MtlsMode.DISABLE})
_Level: TypeAlias = tuple[PeerAuthentication, ...]


@dataclass(frozen=True, slots=True)
class PeerMode:
    """A mode in force, with the policy that sets it; None for Istio's default."""

    mode: MtlsMode
    policy: PeerAuthentication | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class PeerModes:
    """The modes of a workload: modes of single ports, and the mode of all others."""

    others: PeerMode
    ports: tuple[tuple[int, PeerMode], ...] = ()

    def at(self, port: int) -> PeerMode:
        """Return the mode of a port."""
        return dict(self.ports).get(port, self.others)


def peer_modes(policies: Iterable[PeerAuthentication], root_namespace: str) -> PeerModes:
    """Return the modes at a sidecar. `policies` are those that select the workload."""
    mesh, namespace, workload = (next(iter(level), None) for level in _levels(policies, root_namespace))
    others = PeerMode(MtlsMode.PERMISSIVE)
    for policy in (mesh, namespace, workload):
        if policy is not None and policy.mode is not MtlsMode.UNSET:
            others = PeerMode(policy.mode, policy, policy.mode_span)
    if workload is None:
        return PeerModes(others)
    ports = {
        each.port: others if each.mode is MtlsMode.UNSET else PeerMode(each.mode, workload, each.span)
        for each in workload.ports
    }
    return PeerModes(others, tuple(sorted(ports.items(), key=lambda item: item[0])))


def overridden(policies: Iterable[PeerAuthentication], root_namespace: str) -> Iterator[tuple[PeerAuthentication, ...]]:
    """Yield the policies of each level with several, the effective one first."""
    levels: dict[tuple[bool, bool], list[PeerAuthentication]] = {}
    for policy in policies:
        in_root = policy.namespace == root_namespace
        if not (in_root and policy.selects_labels):
            levels.setdefault((in_root, policy.selects_labels), []).append(policy)
    return (tuple(sorted(level, key=_age)) for level in levels.values() if len(level) > 1)


def _levels(policies: Iterable[PeerAuthentication], root_namespace: str) -> tuple[_Level, _Level, _Level]:
    """Return the oldest policies of the mesh, of the namespace and of the workload."""
    mesh: list[PeerAuthentication] = []
    namespace: list[PeerAuthentication] = []
    workload: list[PeerAuthentication] = []
    for policy in policies:
        if policy.namespace != root_namespace:
            (workload if policy.selects_labels else namespace).append(policy)
        elif not policy.selects_labels:
            mesh.append(policy)
    return _oldest(mesh), _oldest(namespace), _oldest(workload)


def _oldest(policies: Iterable[PeerAuthentication]) -> _Level:
    """Return the oldest of these policies, by name."""
    oldest_first = sorted(policies, key=_age)
    return tuple(policy for policy in oldest_first if policy.created == oldest_first[0].created)


def _age(policy: PeerAuthentication) -> tuple[bool, str, str]:
    """Return the sort key by age, then by name. A policy without a creation time is older than all others."""
    return policy.created is not None, policy.created or "", policy.ref.name


# At ztunnel


@dataclass(frozen=True, slots=True)
class ZtunnelDenial:
    """A DENY rule that istiod generates from a PeerAuthentication for ztunnel."""

    policy: PeerAuthentication
    span: Span
    when: Predicate


def ztunnel_denials(policies: Sequence[PeerAuthentication], root_namespace: str) -> tuple[ZtunnelDenial, ...]:
    """Return the denials of ztunnel for these policies, which select the workload.

    DISABLE has the same effect as PERMISSIVE here. If istiod refers to a translation that it does not generate, ztunnel
    skips it, so that nothing is denied: this code does the same. Of several policies with one age, istiod uses any one,
    and not always the same. So a request is denied if ztunnel denies it for ANY choice of them.
    """
    candidates = (_distinct(level) for level in _candidates(policies, root_namespace))
    choices = product(*(level or (None,) for level in candidates))
    denials = (denial for choice in choices for denial in _denials(*choice))
    return tuple({(denial.policy.ref, denial.when): denial for denial in denials}.values())


def ztunnel_ties(policies: Sequence[PeerAuthentication], root_namespace: str) -> tuple[_Level, ...]:
    """Return different policies of one level and one age: ztunnel may use any of them."""
    levels = (level for level in _candidates(policies, root_namespace) if len(_distinct(level)) > 1)
    return tuple(dict.fromkeys(levels))


def _candidates(policies: Sequence[PeerAuthentication], root_namespace: str) -> tuple[_Level, ...]:
    """Return the policies from which istiod chooses: those of each level, and those to merge with a translation."""
    unselective = [policy for policy in policies if not policy.has_selector]
    mesh, namespace, _ = _levels(unselective, root_namespace)
    return (*_levels(policies, root_namespace), namespace, mesh)


def _distinct(level: _Level) -> _Level:
    """Return the policies of a level, one for each meaning."""
    by_modes: dict[object, PeerAuthentication] = {}
    for policy in level:
        by_modes.setdefault((policy.mode, frozenset((each.port, each.mode) for each in policy.ports)), policy)
    return tuple(by_modes.values())


def _denials(
    mesh: PeerAuthentication | None,
    namespace: PeerAuthentication | None,
    workload: PeerAuthentication | None,
    merged_namespace: PeerAuthentication | None,
    merged_mesh: PeerAuthentication | None,
) -> Iterator[ZtunnelDenial]:
    """Yield the denials for one policy of each level."""
    strict = None
    for policy in (mesh, namespace, workload):
        if policy is not None and policy.mode is not MtlsMode.UNSET:
            strict = policy if policy.mode is MtlsMode.STRICT else None
    if workload is not None and _refers_to_ports(workload, inherits_strict=strict is not None):
        yield from _translated(workload, merged_namespace, merged_mesh)
    elif strict is not None:
        yield ZtunnelDenial(strict, strict.mode_span, PLAINTEXT)


def _refers_to_ports(workload: PeerAuthentication, *, inherits_strict: bool) -> bool:
    """Return whether istiod uses the translation of the workload's ports, instead of one mode for all."""
    modes = {each.mode for each in workload.ports}
    match workload.mode:
        case MtlsMode.STRICT:
            return bool(modes & _LAX)
        case MtlsMode.PERMISSIVE | MtlsMode.DISABLE:
            return MtlsMode.STRICT in modes
        case MtlsMode.UNSET:  # DISABLE alone is not an exception from STRICT
            return (MtlsMode.PERMISSIVE if inherits_strict else MtlsMode.STRICT) in modes


def _translated(
    workload: PeerAuthentication, namespace: PeerAuthentication | None, mesh: PeerAuthentication | None
) -> Iterator[ZtunnelDenial]:
    """Yield the translation of a policy with modes of ports, as istiod's `convertPeerAuthentication` generates it."""
    of_mesh = _mode(namespace) is MtlsMode.UNSET and _mode(mesh) is MtlsMode.STRICT
    of_namespace = _mode(namespace) is MtlsMode.STRICT
    skips_strict = (
        workload.mode is MtlsMode.STRICT or (workload.mode is MtlsMode.UNSET and of_namespace) or of_mesh
    )  # also if the workload is PERMISSIVE in a STRICT mesh
    inherits_lax = _mode(mesh if namespace is None else namespace) is not MtlsMode.STRICT
    skips_lax = workload.mode in _LAX or (workload.mode is MtlsMode.UNSET and inherits_lax)
    exempt: list[int] = []
    for each in sorted(workload.ports, key=lambda each: each.port):
        if each.mode is MtlsMode.STRICT and not skips_strict:
            yield ZtunnelDenial(workload, each.span, And((PLAINTEXT, Is(PORT, OneOf(frozenset({each.port}))))))
        elif each.mode in _LAX and not skips_lax:
            exempt.append(each.port)
    if exempt:  # only if the mode of all other ports is STRICT
        elsewhere = Not(Is(PORT, OneOf(frozenset(exempt))))
        yield ZtunnelDenial(workload, workload.mode_span, And((PLAINTEXT, elsewhere)))


def _mode(policy: PeerAuthentication | None) -> MtlsMode:
    return MtlsMode.UNSET if policy is None else policy.mode
