"""Converts Linkerd's inbound policy to GEP-3779: each Server becomes an ALLOW for its pods on its port.

GEP-3779 knows clients by their identities only, and closes all other ports of a targeted workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import ParentRef, PodsMatching, Selector, Workload, dns_label_problem, dns_subdomain_problem
from eastgate.convert import codes
from eastgate.convert.gep_reading import Account, Gep, GepRule, NamedCaller, PodsTarget, SpiffeIdentity, WholeNamespace
from eastgate.convert.linkerd_writing import default_of, selected
from eastgate.convert.model import Item, Job
from eastgate.convert.selectors import may_meet
from eastgate.dialects import gep3779
from eastgate.dialects.gep3779.model import Action, Level, Tier
from eastgate.dialects.linkerd import GROUP
from eastgate.dialects.linkerd.authorizations import Authorizations, cluster_networks, default_client
from eastgate.dialects.linkerd.model import AuthorizationPolicy, HttpRoute, LinkerdResource, Server
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.dialects.linkerd.stance import ports_named, probes_with
from eastgate.ir import ALWAYS, And, Is, OneOf, Or, PolicyRef, Predicate, Suffix
from eastgate.ir.attributes import MESH_NAME
from eastgate.ir.symbolic.names import MeshNames
from eastgate.settings import Settings

# Linkerd's clients as callers of GEP-3779, if GEP-3779 can name them.


@dataclass(frozen=True, slots=True)
class Clients:
    """The callers; None means any caller. `unnamed` describes the clients that GEP-3779 cannot name."""

    callers: tuple[NamedCaller, ...] | None
    unnamed: str = ""


def callers_of(when: Predicate, settings: Settings) -> Clients:
    """Return the callers of an authorization."""
    if when == ALWAYS:
        return Clients(None)
    callers: list[NamedCaller] = []
    unnamed: list[str] = []
    for part in when.parts if isinstance(when, Or) else (when,):
        clients = _clients_of(part, settings)
        callers += clients.callers or ()
        unnamed += [clients.unnamed] if clients.unnamed else []
    return Clients(tuple(dict.fromkeys(callers)), ", ".join(unnamed))


def _clients_of(part: Predicate, settings: Settings) -> Clients:
    match part:
        case Is(attribute, OneOf(values)) if attribute == MESH_NAME:
            callers_by_name = {str(value): _caller_of(str(value), settings) for value in sorted(values, key=str)}
            unnamed = ", ".join(name for name, caller in callers_by_name.items() if caller is None)
            return Clients(tuple(caller for caller in callers_by_name.values() if caller is not None), unnamed)
        case And((Is(attribute, Suffix(text)), _)) if attribute == MESH_NAME:
            stem = _stem(text.removeprefix("."), settings)
            if stem is not None and dns_label_problem(stem) is None:
                return Clients((WholeNamespace(stem),))
            return Clients((), f"*{text}")
        case _:
            return Clients((), str(part))


def _caller_of(name: str, settings: Settings) -> NamedCaller | None:
    if name.startswith("spiffe://"):
        # A SPIFFE ID of the mesh's trust domain is a service account in GEP-3779, and another client in Linkerd.
        return None if name.startswith(f"spiffe://{settings.trust_domain}/") else SpiffeIdentity(name)
    stem = _stem(name, settings)
    account, dot, namespace = stem.rpartition(".") if stem is not None else ("", "", "")
    if not dot or dns_label_problem(namespace) is not None or dns_subdomain_problem(account) is not None:
        return None
    return Account(namespace, account)


def _stem(name: str, settings: Settings) -> str | None:
    """Return the part of a mesh name before the suffix that all service accounts of the mesh share."""
    tail = MeshNames(settings).tail
    return name.removesuffix(tail) if name.endswith(tail) else None


_OPEN = (InboundPolicy.ALL_UNAUTHENTICATED, InboundPolicy.AUDIT)
Write = Callable[[Gep, Job], None]


def from_linkerd(items: Sequence[Item], job: Job, write: Write) -> None:
    """Convert namespace by namespace, because a policy depends on its Server and on the other Servers."""
    by_namespace: dict[str, list[Item]] = {}
    for item in items:
        by_namespace.setdefault(item.policy.ref.namespace or "default", []).append(item)
    for namespace, chosen in by_namespace.items():
        _InboundPort(namespace, chosen, job).convert(write)


class _InboundPort:
    def __init__(self, namespace: str, items: Sequence[Item], job: Job) -> None:
        self.namespace, self.items, self.job = namespace, items, job
        self.resources = [item.policy for item in items if isinstance(item.policy, LinkerdResource)]
        everything = [item.policy for item in job.items if isinstance(item.policy, LinkerdResource)]
        self.authorizations = Authorizations(
            [
                resource
                for resource in everything
                if resource.ref.namespace == namespace or resource.ref.kind.endswith("Authentication")
            ],
            cluster_networks(job.settings),
        )
        self.servers = [resource for resource in self.resources if isinstance(resource, Server)]

    def convert(self, write: Write) -> None:
        """Convert a namespace.

        If one Server stays in Linkerd, all policies stay, because the Server needs its authorizations.
        """
        stays = [item for item in self.items if self._must_stay(item)]
        for item in self.items:
            if isinstance(item.policy, Server) and item not in stays:
                gep = self._gep(item, item.policy)
                write(gep, self.job)
        if stays:
            self.job.kept += [
                item.document
                for item in self.items
                if not isinstance(item.policy, Server) and item.document not in self.job.kept
            ]

    # Policies that are not converted

    def _must_stay(self, item: Item) -> bool:
        reason = self._reason(item.policy) if isinstance(item.policy, LinkerdResource) else None
        if reason is None:
            return False
        code, why, span = reason
        self.job.keep(item.document, code, f"{why}: {item.policy.ref} is not converted", span)
        return True

    def _reason(self, policy: LinkerdResource) -> tuple[Code, str, Span] | None:
        if policy.audit:
            return codes.AUDIT, "it only observes, and is not converted", policy.span
        if isinstance(policy, AuthorizationPolicy) and policy.target.is_workload:
            return codes.POLICY_LEFT_OUT, f"it targets a {policy.target.kind}", policy.span
        if not isinstance(policy, Server):
            return None
        if any(_governs(item.policy, self.namespace) for item in self.job.items):
            why = f"namespace {self.namespace} has policies of GEP-3779 already"
            return codes.POLICIES_MEET, why, policy.span
        if policy.external:
            return codes.POLICY_LEFT_OUT, "it selects ExternalWorkloads", policy.span
        if self._has_routes(policy):
            return codes.ROUTES, "the Server has routes", policy.span
        if self._ports(policy) is None:
            return codes.PORTS_UNKNOWN, f"the number of port `{policy.port}` is not known for all pods", policy.span
        rival = next(
            (other for other in self.servers if other is not policy and self._share_a_port(policy, other)), None
        )
        if rival is not None:
            return codes.SERVERS_MEET, f"Server {rival.ref.name} may have the same port of the same pods", policy.span
        if any(isinstance(other, AuthorizationPolicy) and other.target.is_workload for other in self.resources):
            return codes.POLICY_LEFT_OUT, "a policy of the namespace targets workloads themselves", policy.span
        return None

    def _has_routes(self, server: Server) -> bool:
        parents = [
            parent
            for resource in self.resources
            if isinstance(resource, HttpRoute)
            for parent in resource.route.parents
        ]
        parents += [
            parent
            for route in self.job.world.routes.values()
            if route.namespace == self.namespace
            for parent in route.parents
        ]
        return any(_is_server(parent) and parent.name == server.ref.name for parent in parents)

    def _selector(self, server: Server) -> Selector:
        target = server.targets[0]
        return target.selector if isinstance(target, PodsMatching) else Selector.of()

    def _workloads(self, server: Server) -> list[Workload]:
        return selected(self.namespace, self._selector(server), self.job)

    def _ports(self, server: Server) -> frozenset[int] | None:
        """Return the numbers of its port, which must be equal in all pods; None if they differ or are not known."""
        if isinstance(server.port, int):
            return frozenset({server.port})
        ports = {ports_named(workload, server.port, self.job.world) for workload in self._workloads(server)}
        return next(iter(ports)) if len(ports) == 1 and all(ports) else None

    def _share_a_port(self, server: Server, other: Server) -> bool:
        if other.external or other.audit or not may_meet(self._selector(server), self._selector(other)):
            return False
        ours, theirs = self._ports(server), self._ports(other)
        return ours is None or theirs is None or not ours.isdisjoint(theirs)

    # Policies that are converted

    def _gep(self, item: Item, server: Server) -> Gep:
        ports = tuple(sorted(self._ports(server) or ()))
        rules = [GepRule(callers, ports, span=span) for callers, span in self._callers(server)]
        rules += self._allow_other_ports(server)
        ref = PolicyRef("AuthorizationPolicy", self.namespace, server.ref.name, gep3779.GROUP)
        policy = gep3779.Policy(ref, server.span, (), Action.ALLOW, Level.NETWORK, ())
        target = PodsTarget(self._selector(server), server.span)
        return Gep(policy, item.document, (target,), tuple(rules), level_written=False)

    def _callers(self, server: Server) -> Iterator[tuple[tuple[NamedCaller, ...] | None, Span | None]]:
        for rule in self.authorizations.on_server(server, audit=False):
            clients = callers_of(rule.when, self.job.settings)
            span = rule.origin.part(next(iter(rule.origin.parts))[0]) if rule.origin.parts else rule.origin.span
            if clients.unnamed:
                message = f"the target cannot name these clients, which are left out: {clients.unnamed}"
                self.job.lose(codes.CLIENT, message, span)
            if clients.callers is None or clients.callers:
                yield clients.callers, span
        client = default_client(server.access, cluster_networks(self.job.settings))
        if server.access in _OPEN:
            yield None, server.access_span
        elif client is not None:
            message = f"the target cannot name the clients of accessPolicy {server.access}, which are left out"
            self.job.lose(codes.CLIENT, message, server.access_span)

    def _allow_other_ports(self, server: Server) -> Iterator[GepRule]:
        """Allow every caller on ports without a Server, if the default policy allows every caller."""
        workloads = self._workloads(server)
        unknown = Workload(f"{self.namespace}/-", self.namespace, "-")
        defaults = {default_of(workload, self.job) for workload in (unknown, *workloads)}
        ports = self._ports(server) or frozenset()
        probed = any(probe.rooted for workload in workloads for probe in probes_with(workload, ports, self.job.world))
        if probed and self.job.settings.section(LinkerdSettings).linkerd_probe_networks:
            message = "the probes of these pods now need a rule of their own: the kubelet has no identity"
            self.job.lose(codes.PROBES, message, server.span)
        if defaults == {InboundPolicy.DENY}:
            return
        self.job.lose(codes.OTHER_PORTS, "undeclared other ports of these pods are closed", server.span)
        if not defaults <= set(_OPEN):
            return
        selector = self._selector(server)
        near = [other for other in self.servers if not other.external and may_meet(selector, self._selector(other))]
        owned = [self._ports(other) for other in near]
        if None in owned:
            return
        declared = {port.number for workload in workloads for port in workload.ports if port.protocol == "TCP"}
        rest = declared.difference(*(taken for taken in owned if taken is not None))
        if rest and not self._identity_required(workloads):
            yield GepRule(None, tuple(sorted(rest)), span=server.span)

    def _identity_required(self, workloads: Sequence[Workload]) -> bool:
        annotation = "config.linkerd.io/proxy-require-identity-inbound-ports"
        annotations = [listed.annotations for listed in workloads]
        return any(
            annotation in listed for listed in (*annotations, self.job.world.namespace(self.namespace).annotations)
        )


def _governs(policy: object, namespace: str) -> bool:
    """Return whether a policy of GEP-3779 may target pods of a namespace."""
    if not isinstance(policy, gep3779.Policy):
        return False
    return policy.tier is not Tier.NAMESPACED or policy.ref.namespace == namespace


def _is_server(parent: ParentRef) -> bool:
    return parent.group.lower() == GROUP and parent.kind.lower() == "server"
