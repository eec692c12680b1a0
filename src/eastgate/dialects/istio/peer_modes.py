"""The mTLS mode of each port of a workload, from the PeerAuthentications that select it.

The oldest policy of the mesh, of the namespace and of the workload count, each overriding the one before; what is UNSET
is inherited, and without any policy both plaintext and mTLS are accepted. ztunnel is told the same as DENY policies, in
a translation with quirks of its own: see `ztunnel_denials`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from eastgate.diagnostics.spans import Span
from eastgate.dialects.istio.authentications import MtlsMode, PeerAuthentication
from eastgate.ir import And, Is, Not, OneOf, Predicate, Present
from eastgate.ir.attributes import IDENTITY, PORT
from eastgate.records import dataclass

__all__ = ["PLAINTEXT", "PeerMode", "PeerModes", "ZtunnelDenial", "peer_modes", "ztunnel_denials"]

PLAINTEXT: Final = Not(Is(IDENTITY, Present()))
_LAX: Final = frozenset({MtlsMode.PERMISSIVE, MtlsMode.DISABLE})


@dataclass(frozen=True, slots=True)
class PeerMode:
    """A mode that is in force, with the policy that sets it; None where that is Istio's default."""

    mode: MtlsMode
    policy: PeerAuthentication | None = None
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class PeerModes:
    """The modes of a workload: those of certain ports, and that of all others."""

    others: PeerMode
    ports: tuple[tuple[int, PeerMode], ...] = ()

    def at(self, port: int) -> PeerMode:
        """Return the mode of a port."""
        return dict(self.ports).get(port, self.others)


def peer_modes(policies: Iterable[PeerAuthentication], root_namespace: str) -> PeerModes:
    """Return the modes at a sidecar. `policies` are those that select the workload."""
    levels = _Levels.of(policies, root_namespace)
    others = PeerMode(MtlsMode.PERMISSIVE)
    for policy in (levels.mesh, levels.namespace, levels.workload):
        if policy is not None and policy.mode is not MtlsMode.UNSET:
            others = PeerMode(policy.mode, policy, policy.mode_span)
    workload = levels.workload
    if workload is None:
        return PeerModes(others)
    ports = {
        each.port: others if each.mode is MtlsMode.UNSET else PeerMode(each.mode, workload, each.span)
        for each in workload.ports
    }
    return PeerModes(others, tuple(sorted(ports.items(), key=lambda item: item[0])))


@dataclass(frozen=True, slots=True)
class _Levels:
    mesh: PeerAuthentication | None
    namespace: PeerAuthentication | None
    workload: PeerAuthentication | None

    @classmethod
    def of(cls, policies: Iterable[PeerAuthentication], root_namespace: str) -> _Levels:
        oldest_first = sorted(policies, key=_age)
        mesh = (each for each in oldest_first if each.namespace == root_namespace and not each.selects_labels)
        others = [each for each in oldest_first if each.namespace != root_namespace]
        namespace = (each for each in others if not each.selects_labels)
        workload = (each for each in others if each.selects_labels)
        return cls(next(mesh, None), next(namespace, None), next(workload, None))


def _age(policy: PeerAuthentication) -> tuple[bool, str, str]:
    """Sort by age, then by name. One that the API server has not dated yet is older than all."""
    return policy.created is not None, policy.created or "", policy.ref.name


# At ztunnel


@dataclass(frozen=True, slots=True)
class ZtunnelDenial:
    """A DENY rule that istiod makes of a PeerAuthentication for ztunnel."""

    policy: PeerAuthentication
    span: Span
    when: Predicate


def ztunnel_denials(policies: Sequence[PeerAuthentication], root_namespace: str) -> tuple[ZtunnelDenial, ...]:
    """Return what ztunnel denies for them. `policies` are those that select the workload.

    DISABLE is the same as PERMISSIVE here. Where istiod refers to a translation that it then does not make, ztunnel
    skips it, so that nothing is denied at all: this follows istiod in that, too.
    """
    levels = _Levels.of(policies, root_namespace)
    strict = None
    for policy in (levels.mesh, levels.namespace, levels.workload):
        if policy is not None and policy.mode is not MtlsMode.UNSET:
            strict = policy if policy.mode is MtlsMode.STRICT else None
    workload = levels.workload
    if workload is None or not _refers_to_ports(workload, inherits_strict=strict is not None):
        return (ZtunnelDenial(strict, strict.mode_span, PLAINTEXT),) if strict is not None else ()
    unselective = [policy for policy in sorted(policies, key=_age) if not policy.has_selector]
    namespace = next((policy for policy in unselective if policy.namespace != root_namespace), None)
    mesh = next((policy for policy in unselective if policy.namespace == root_namespace), None)
    return tuple(_translated(workload, namespace, mesh))


def _refers_to_ports(workload: PeerAuthentication, *, inherits_strict: bool) -> bool:
    """Return whether istiod has the workload obey the translation of its ports, instead of one mode for all."""
    modes = {each.mode for each in workload.ports}
    match workload.mode:
        case MtlsMode.STRICT:
            return bool(modes & _LAX)
        case MtlsMode.PERMISSIVE | MtlsMode.DISABLE:
            return MtlsMode.STRICT in modes
        case MtlsMode.UNSET:  # DISABLE alone does not make an exception from STRICT
            return (MtlsMode.PERMISSIVE if inherits_strict else MtlsMode.STRICT) in modes


def _translated(
    workload: PeerAuthentication, namespace: PeerAuthentication | None, mesh: PeerAuthentication | None
) -> Iterator[ZtunnelDenial]:
    """Yield the translation of a policy with modes of ports, as istiod's `convertPeerAuthentication` makes it."""
    of_mesh = _mode(namespace) is MtlsMode.UNSET and _mode(mesh) is MtlsMode.STRICT
    of_namespace = _mode(namespace) is MtlsMode.STRICT
    skips_strict = (
        workload.mode is MtlsMode.STRICT or (workload.mode is MtlsMode.UNSET and of_namespace) or of_mesh
    )  # also where the workload is PERMISSIVE, in a STRICT mesh
    inherits_lax = _mode(mesh if namespace is None else namespace) is not MtlsMode.STRICT
    skips_lax = workload.mode in _LAX or (workload.mode is MtlsMode.UNSET and inherits_lax)
    exempt: list[int] = []
    for each in sorted(workload.ports, key=lambda each: each.port):
        if each.mode is MtlsMode.STRICT and not skips_strict:
            yield ZtunnelDenial(workload, each.span, And((PLAINTEXT, Is(PORT, OneOf(frozenset({each.port}))))))
        elif each.mode in _LAX and not skips_lax:
            exempt.append(each.port)
    if exempt:  # only where the mode of all others is STRICT
        elsewhere = Not(Is(PORT, OneOf(frozenset(exempt))))
        yield ZtunnelDenial(workload, workload.mode_span, And((PLAINTEXT, elsewhere)))


def _mode(policy: PeerAuthentication | None) -> MtlsMode:
    return MtlsMode.UNSET if policy is None else policy.mode
