"""The chain of a proxy with Envoy's RBAC filter, in the order of its filters.

    [Deny (plaintext), Deny (a path that the proxy refuses), AskAll or Deny (CUSTOM), Deny (tokens),
     Observe (AUDIT and dry runs), Deny, AllowAny]

`AllowAny` exists if an ALLOW policy is attached, even if the proxy drops all its rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eastgate.basics.records import dataclass
from eastgate.dialects.istio.attributes import compared_path
from eastgate.dialects.istio.derived import narrowed, rewrite_chain
from eastgate.dialects.istio.lowering import View, lower_policy
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy, MtlsMode
from eastgate.dialects.istio.peer_modes import PLAINTEXT, PeerMode, PeerModes, ZtunnelDenial
from eastgate.dialects.istio.planes import NoIdentity, PortScope
from eastgate.dialects.istio.provenance import MTLS_DEMAND, PROXY_REFUSAL, BadProvider, IstioScope, StageName, Surface
from eastgate.ir import (
    ALWAYS,
    NEVER,
    AllowAny,
    Ask,
    AskAll,
    Chain,
    Computed,
    Deny,
    ExternalProtocol,
    Is,
    Observe,
    OneOf,
    Origin,
    Predicate,
    Present,
    Reading,
    Refusal,
    Rule,
    SelectorCase,
    Stage,
    mentions,
    rewrite,
    rules_of,
)
from eastgate.ir.attributes import IDENTITY, PORT, REFUSED_PATH, SNI

# The chains of a sidecar under the mTLS modes of its ports: plaintext is refused, or callers have no identity.


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
    """Return the stage that closes plaintext connections."""
    rules = (Rule(denial.when, Origin(denial.policy.ref, 0, denial.span, derived=MTLS_DEMAND)) for denial in denials)
    return Deny(StageName.MTLS, tuple(rules), Refusal.CLOSED)


def without_identity(predicate: Predicate) -> Predicate:
    """Return a predicate for plaintext requests: without an identity, and without a server name."""

    def absent(atom: Is | Computed) -> Predicate:
        if isinstance(atom, Is):
            return NEVER if atom.attribute in (IDENTITY, SNI) else atom
        if atom.attributes != {IDENTITY}:
            return atom
        return ALWAYS if atom.holds({IDENTITY: None}) else NEVER

    return rewrite(predicate, absent)


_REFUSED = Rule(Is(REFUSED_PATH, Present()), Origin(None, 0, derived=PROXY_REFUSAL))


@dataclass(frozen=True, slots=True)
class ChainParts:
    """The other parts of a chain: the stages before CUSTOM, and those after it."""

    first: tuple[Stage, ...] = ()
    tokens: tuple[Stage, ...] = ()
    readings: tuple[Reading, ...] = ()


def build_chain(policies: Sequence[IstioAuthorizationPolicy], view: View, parts: ChainParts) -> Chain:
    """Return the chain of the policies that are attached at a proxy, for its view of traffic."""
    enforced = [policy for policy in policies if not policy.audit]
    stages: list[Stage] = []
    stages.extend(_custom([policy for policy in enforced if policy.action is Action.CUSTOM], view))
    stages.extend(parts.tokens if view.surface is not Surface.BYTES else ())
    stages.extend(_observed([policy for policy in policies if policy.audit or policy.action is Action.AUDIT], view))
    refusal = _refusal(view)
    denying = _rules([policy for policy in enforced if policy.action is Action.DENY], view)
    if denying:
        stages.append(Deny(StageName.DENY, denying, refusal))
    allowing = [policy for policy in enforced if policy.action is Action.ALLOW]
    if allowing:
        stages.append(AllowAny(StageName.ALLOW, _rules(allowing, view), refusal))
    paths = compared_path(view.mesh.path_normalization)
    looks_at_paths = any(paths in mentions(rule.when) for stage in stages for rule in rules_of(stage))
    refusing = (Deny(StageName.PATH, (_REFUSED,), Refusal.BAD_REQUEST),) if looks_at_paths else ()
    return Chain(
        (*parts.first, *refusing, *stages),
        parts.readings,
        None if view.surface is Surface.ANY else IstioScope(view.surface),
    )


def _refusal(view: View) -> Refusal:
    return Refusal.CLOSED if view.surface is Surface.BYTES else Refusal.FORBIDDEN


def _rules(policies: Sequence[IstioAuthorizationPolicy], view: View) -> tuple[Rule, ...]:
    return tuple(rule for policy in policies for rule in lower_policy(policy, view))


def _observed(policies: Sequence[IstioAuthorizationPolicy], view: View) -> Iterator[Observe]:
    rules = [(rule, str(policy.action)) for policy in policies for rule in lower_policy(policy, view)]
    if rules:
        yield Observe(StageName.AUDIT, tuple(rule for rule, _ in rules), tuple(would for _, would in rules))


# CUSTOM


def _custom(policies: Sequence[IstioAuthorizationPolicy], view: View) -> Iterator[Stage]:
    """Yield the stage of CUSTOM policies: questions to the provider or, without a valid one, denials."""
    names = sorted({policy.provider.text for policy in policies if policy.provider is not None})
    if not names:
        return
    provider = view.mesh.provider(names[0])
    if len(names) > 1 or provider is None:
        several = f"several providers are named: {', '.join(names)}"
        why = several if len(names) > 1 else f"the mesh has no valid provider {names[0]}"
        rules = tuple(
            replace(rule, origin=replace(rule.origin, derived=BadProvider(why))) for rule in _rules(policies, view)
        )
        yield Deny(StageName.BAD_CUSTOM, rules, _refusal(view))
    elif view.surface is not Surface.BYTES or provider.protocol is ExternalProtocol.GRPC:
        asks = (Ask(rule, provider.authorizer, fail_open=provider.fail_open) for rule in _rules(policies, view))
        yield AskAll(StageName.CUSTOM, tuple(asks), _refusal(view))
