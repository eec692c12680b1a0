"""The chains of a sidecar under the mTLS modes of its ports: plaintext is refused, or nobody has an identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eastgate.dialects.istio.authentications import MtlsMode
from eastgate.dialects.istio.peer_modes import PLAINTEXT, PeerMode, PeerModes, ZtunnelDenial
from eastgate.dialects.istio.plane_provenance import NoIdentity, PortScope
from eastgate.dialects.istio.provenance import MtlsDemand, StageName
from eastgate.dialects.istio.rewriting import narrowed, rewrite_chain
from eastgate.ir import (
    ALWAYS,
    NEVER,
    Chain,
    Computed,
    Deny,
    Is,
    OneOf,
    Origin,
    Predicate,
    Refusal,
    Rule,
    SelectorCase,
    rewrite,
)
from eastgate.ir.attributes import IDENTITY, PORT, SNI


def guard_ports(cases: Sequence[SelectorCase], modes: PeerModes) -> tuple[SelectorCase, ...]:
    """Return the cases of a layer under the modes of its ports. The last case is for all other requests."""
    if not modes.ports:
        return tuple(replace(case, chain=_guarded(case.chain, modes.others)) for case in cases)
    numbers: dict[PeerMode, list[int]] = {}
    for port, mode in modes.ports:
        numbers.setdefault(mode, []).append(port)
    guarded: list[SelectorCase] = []
    for mode, ports in numbers.items():
        of_ports = [replace(case, chain=_scoped(_guarded(case.chain, mode), ports, mode)) for case in cases]
        guarded += narrowed(of_ports, Is(PORT, OneOf(frozenset(ports))))
    return (*guarded, *(replace(case, chain=_guarded(case.chain, modes.others)) for case in cases))


def _scoped(chain: Chain, ports: Sequence[int], mode: PeerMode) -> Chain:
    refs = (mode.policy.ref,) if mode.policy is not None else ()
    own = chain.scope.refs if chain.scope is not None else ()
    return replace(chain, scope=PortScope(tuple(ports), mode.mode, chain.scope, (*refs, *own)))


def _guarded(chain: Chain, mode: PeerMode) -> Chain:
    if mode.policy is None or mode.mode is MtlsMode.PERMISSIVE:
        return chain
    if mode.mode is MtlsMode.DISABLE:
        absent = rewrite_chain(chain, without_identity)
        return replace(absent, readings=(*absent.readings, NoIdentity(mode.policy.ref)))
    denial = ZtunnelDenial(mode.policy, mode.span or mode.policy.span, PLAINTEXT)
    return replace(chain, stages=(mtls_stage((denial,)), *chain.stages))


def mtls_stage(denials: Sequence[ZtunnelDenial]) -> Deny:
    """Return the stage that closes connections in plaintext."""
    rules = (Rule(denial.when, Origin(denial.policy.ref, 0, denial.span, derived=MtlsDemand())) for denial in denials)
    return Deny(StageName.MTLS, tuple(rules), Refusal.CLOSED)


def without_identity(predicate: Predicate) -> Predicate:
    """Return a predicate on requests in plaintext: without an identity, and without a name in TLS."""

    def absent(atom: Is | Computed) -> Predicate:
        if isinstance(atom, Is):
            return NEVER if atom.attribute in (IDENTITY, SNI) else atom
        if atom.attributes != {IDENTITY}:
            return atom
        return ALWAYS if atom.holds({IDENTITY: None}) else NEVER

    return rewrite(predicate, absent)
