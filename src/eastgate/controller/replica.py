"""One replica of the controller: it follows the cluster, serves its proxies and answers webhooks, as every replica
does.

Only the leader writes (`leading`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Final

from prometheus_client import Counter

from eastgate import dialects
from eastgate.authority.auditing import Would
from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes
from eastgate.authority.sources.batches import ClusterChanges
from eastgate.authority.sources.needs import WatchedKind
from eastgate.authority.sources.source import ClusterSource
from eastgate.basics.collection import give_memory_back
from eastgate.basics.tasks import Nudge, innermost, log_failure, run_together
from eastgate.cluster import World
from eastgate.cluster.gateways import GATEWAY_GROUP, ROUTE_KINDS
from eastgate.control.access_log import read_record
from eastgate.control.authorizer.checks import ProxyAnswer
from eastgate.control.authorizer.external import ServiceAddress
from eastgate.control.authorizer.log import task_failures
from eastgate.control.deciders import Deciders
from eastgate.control.gateways import gateway_identity
from eastgate.control.identity import IdentityError
from eastgate.control.sites import TlsEndpoint
from eastgate.controller.admission.server import WebhookCertificate, WebhookServer, names_of_service
from eastgate.controller.admitting import (
    mutate_pod,
)
from eastgate.controller.certificates.ca_secret import ServerTls, control_plane_identity, control_plane_names
from eastgate.controller.certificates.shared_ca import SharedCa
from eastgate.controller.decision_log import SampledDecisions, open_decision_log
from eastgate.controller.judging import ChangeJudges, ObservedWebhooks
from eastgate.controller.logs import log_recovery, log_trouble
from eastgate.controller.metrics import ControllerMetrics
from eastgate.controller.options import SERVICE, ControllerOptions
from eastgate.controller.peers import PeerServer
from eastgate.controller.proxies.control import ProxyControl
from eastgate.controller.proxies.token_reviews import PodAuthenticator, SvidProofs, TokenReviews
from eastgate.controller.status.keeping import PolicyStatuses, keeps_status
from eastgate.controller.status.marking import unwritten_groups
from eastgate.controller.tracing import span
from eastgate.envoy.config.gateway_routes import AuthorizerAddress
from eastgate.envoy.plan.decisions import policy_name
from eastgate.envoy.server import AuthenticatedProxy, Metrics
from eastgate.ir import ExternalAuthorizer, PolicyRef
from eastgate.reading.kubernetes import ApiError, Connection, JsonObject, Resource, UnreachableError
from eastgate.reports.invariants.objects import (
    GROUP,
    VERSION,
)
from eastgate.reports.invariants.shapes import KINDS as INVARIANTS
from eastgate.settings import Settings

_LOG = logging.getLogger(__name__)
_CLASSES: Final = WatchedKind(GATEWAY_GROUP, "GatewayClass")
ALSO_FOLLOWED: Final = (_CLASSES, *(WatchedKind(GROUP, kind, (VERSION,)) for kind in INVARIANTS))
"""Kinds that are followed although no decision depends on them."""
_REFRESH_SECONDS: Final = 30.0
_TRIM_AFTER_BYTES: Final = 2 << 20  # of policies that were read, before memory is released
_SETTLE_SECONDS: Final = 5.0  # before memory is released, since more policies may come
_CA: Final = "reading the CA"  # in the log
_GATEWAY_KINDS: Final = frozenset({"GatewayClass", "Gateway", *ROUTE_KINDS})


class Replica:
    """A running replica. Use it with `async with`, and run `follow`. `failures` counts those of several replicas."""

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        options: ControllerOptions,
        failures: Counter | None = None,
    ) -> None:
        self.connection = connection
        self.settings = settings.enforced()
        self.options = options
        self.identity = control_plane_identity(settings.trust_domain, options.namespace)
        self._listeners: list[Callable[[ClusterChanges], None]] = []
        self._stack = AsyncExitStack()
        self.ready = False
        self._server_metrics = Metrics()
        self.metrics = ControllerMetrics(self._server_metrics.registry)
        self.task_failures = failures or task_failures(None)
        self.metrics.registry.register(self.task_failures)
        self._decisions: SampledDecisions | None = None
        self._deciders = Deciders()
        self._memory_due = Nudge()
        self.invariant_states: dict[PolicyRef, str] = {}
        """The reason of the condition of each Invariant, while this replica leads."""
        self.applying_since: float | None = None
        """The start of the current batch of changes, by the monotonic clock, or None."""

    @property
    def is_ready(self) -> bool:
        """Return whether the replica serves: it has listed and follows every kind, and has computed the resources of
        proxies.

        A replica that may not list some policies would let proxies allow requests that those policies deny.
        """
        return self.ready and self.control.has_begun and not self.unseen_policies and self.source.follower.is_running

    @property
    def unseen_policies(self) -> list[str]:
        """Return the kinds of policies that the controller may not list."""
        read = {(group, kind) for group, _, kind in dialects.registered().policies}
        unlisted = self.source.follower.unlisted
        return [str(resource) for resource in unlisted if (resource.group, resource.kind) in read]

    def certificate_ends(self) -> dict[str, datetime]:
        """Return the expiry of each certificate of the control plane, by its role."""
        ends = dict(self.ca.ends)
        with suppress(IdentityError):  # there may be none now, which is reported elsewhere
            ends["server"] = self.tls.end
        return ends

    @property
    def authority(self) -> Authority:
        """Return the authority after the last applied change."""
        return self.source.authority

    @property
    def world(self) -> World:
        """Return the world of the authority."""
        return self.authority.world

    @property
    def objects(self) -> Mapping[PolicyRef, JsonObject]:
        """Return the policies, Gateways and routes as the API server has them."""
        return self.source.follower.held.kept

    def find(self, ref: PolicyRef) -> Resource | None:
        """Return the served resource of an object's kind."""
        return self.source.follower.resources.get((ref.group, ref.kind))

    def listen(self, listener: Callable[[ClusterChanges], None]) -> Callable[[], None]:
        """Call `listener` with every applied batch, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    # Starting and stopping

    async def __aenter__(self) -> Replica:
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ready = False
        await self._stack.aclose()

    async def _start(self) -> None:
        enter = self._stack.enter_async_context
        options, settings = self.options, self.settings
        if (log := options.observation.decision_log) is not None:
            stream = self._stack.enter_context(open_decision_log(log))
            self._decisions = SampledDecisions(stream, options.observation.sampling)
        self.source = await enter(
            ClusterSource(
                self.connection,
                settings,
                also=ALSO_FOLLOWED,
                keeps=_is_kept,
                on_trouble=self._on_trouble,
                on_recovery=lambda what: log_recovery(_LOG, what, kind=what),
            )
        )
        self.ca = await SharedCa.open(self.connection, settings.trust_domain, namespace=options.namespace)
        names = control_plane_names(settings.cluster_domain, options.namespace)
        self.tls = await enter(ServerTls(self.ca.source, self.identity, names))
        self.statuses = PolicyStatuses(
            self.connection, self.authority, self.objects, self.find, instance=options.replica
        )
        if options.shared_status:
            self.statuses.take_settings(mesh=None, shared_groups=await unwritten_groups(self.connection))
        await self._start_proxies()
        if options.webhooks:
            await self._start_webhooks()
        self.ready = True

    async def _start_proxies(self) -> None:
        enter, options, ports = self._stack.enter_async_context, self.options, self.options.ports
        proofs = (TokenReviews(self.connection, lambda: self.world), SvidProofs(lambda: self.world, self.settings))
        host = f"{SERVICE}.{options.namespace}.svc.{self.settings.cluster_domain}"
        service = AuthorizerAddress(host, ports.authorizer, ports.tools, self.identity)
        self.control = ProxyControl(
            self.authority,
            PodAuthenticator(lambda: self.world, proofs),
            self.ca.source,
            replica=options.replica,
            session_key=self.ca.session_key,
            authorizer=service,
            metrics=self._server_metrics,
            on_record=self._on_record if options.observation.access_logs else None,
        )
        await enter(self.control)
        await self.control.plane.answer_checks(
            self._address_of, self._endpoint(ports.authorizer), self._endpoint(ports.tools), self._on_decided
        )
        opened = {ports.xds: False} | ({ports.svid: True} if ports.svid is not None else {})
        addresses = (
            (f"{options.host}:{port}", self.tls.grpc_credentials(verify_clients=verified))
            for port, verified in opened.items()
        )
        self.xds_port, *_ = await self.control.start(addresses, _generations(self.objects.values()))
        self.peers = await enter(PeerServer(options.host, ports.peers, self.tls, self.identity, self.control.report))

    async def _start_webhooks(self) -> None:
        enter, options = self._stack.enter_async_context, self.options
        self.judges = ChangeJudges(
            self.authority,
            self.objects,
            self.source.follower.held.sizes,
            options,
            self.control.lock,
            self.metrics.admitted_unproven,
        )
        self._stack.callback(self.judges.close)
        webhooks = ObservedWebhooks(
            self.settings,
            metrics=self.metrics,
            judge=self.judges.judge,
            late=self.judges.refuse_unjudged,
            mutate=partial(mutate_pod, options.injection),
        )
        names = names_of_service(options.namespace, SERVICE, self.settings.cluster_domain)
        certificate = await enter(
            WebhookCertificate(
                self.ca.source, self.identity, (*names, "localhost"), client_ca=options.webhook_client_ca
            )
        )
        self.webhooks = await enter(
            WebhookServer(
                webhooks,
                certificate.context,
                host=options.host,
                port=options.ports.webhooks,
                client_names=options.webhook_client_names,
            )
        )

    def _endpoint(self, port: int) -> TlsEndpoint:
        return TlsEndpoint(self.options.host, port, self.tls.context, lambda: self.tls.bundles, self._is_gateway)

    def _is_gateway(self, identity: str) -> bool:
        gateways = self.control.enforcement.gateways.values()
        return any(gateway_identity(site.gateway, self.settings) == identity for site in gateways)

    def _address_of(self, authorizer: ExternalAuthorizer) -> ServiceAddress | None:
        if f"{authorizer.namespace}/{authorizer.service}" not in self.world.services:
            return None
        domain = self.settings.cluster_domain
        return ServiceAddress(f"{authorizer.service}.{authorizer.namespace}.svc.{domain}", authorizer.port)

    # Following

    async def follow(self) -> None:
        """Apply the changes of the cluster until an error. Then this replica may lack a change and must be replaced.

        Raises the error.
        """
        await run_together(self._apply_changes(), self.control.raise_failure())

    async def _apply_changes(self) -> None:
        async for changes in self.source.batches():
            await self.apply(changes)
            del changes  # it may be large, and the next one may come late

    async def keep_ca(self) -> None:
        """Wait, then read the Secret of the CA again, since the leader rotates the CA."""
        await asyncio.sleep(_REFRESH_SECONDS)
        try:
            await self.ca.refresh()
            log_recovery(_LOG, _CA)
        except (ApiError, UnreachableError) as error:
            log_trouble(_LOG, _CA, error)

    async def release_memory(self) -> None:
        """Release memory after many policies were read: reading a policy takes much more memory than storing it."""
        await self._memory_due.wait()
        await asyncio.sleep(_SETTLE_SECONDS)
        self.source.follower.held.sizes.turnover = 0
        await asyncio.to_thread(give_memory_back)

    async def apply(self, changes: ClusterChanges) -> None:
        """Apply one batch to the authority, the resources of proxies, and the statuses."""
        began = self.applying_since = time.monotonic()
        try:
            with span("apply changes", {"put": len(changes.put), "removed": len(changes.removed)}):
                await self._apply(changes)
        finally:
            self.applying_since = None
        ended = time.monotonic()
        self.metrics.applied(ended - began, ended - changes.arrived_at if changes.arrived_at is not None else None)

    async def _apply(self, changes: ClusterChanges) -> None:
        policies = _generations(obj for ref in changes.touched if (obj := self.objects.get(ref)) is not None)
        has_applied = self.control.tracker.has_applied
        if not changes.changes_anything and all(has_applied(name, *known) for name, known in policies.items()):
            self.statuses.take_objects(changes.touched)  # only a status changed, as in most events of a watch
            return
        applied: list[Changes] = []
        with self.control.lock:
            touched = self.source.apply(changes, applied.append)
        removed = [policy_name(ref) for ref in changes.removed]
        with span("push to proxies") as traced:
            nodes = await self.control.follow(touched, policies, removed)
            if traced is not None:
                traced.set_attribute("eastgate.nodes", len(nodes))
        self._forget(removed)
        if self.options.webhooks:
            self.judges.update(applied, changes.put)
        if self.source.follower.held.sizes.turnover > _TRIM_AFTER_BYTES:
            self._memory_due()
        self.statuses.take_changes(changes.touched, touched)
        for listener in tuple(self._listeners):
            listener(changes)

    # Observing

    def _forget(self, policies: list[str]) -> None:
        self.metrics.forget(policies)
        for policy in policies:
            self.control.server.metrics.forget(policy)

    def _on_decided(self, answer: ProxyAnswer, seconds: float) -> None:
        """Count and log a decision. It is called in the thread of the check."""
        self.metrics.checked(answer, seconds, self.control.tracker.policies)
        if (
            self._decisions is not None and not self.options.observation.access_logs
        ):  # otherwise the gateway sends the decision
            self._decisions.decided(answer, seconds)

    def _on_record(self, _proxy: AuthenticatedProxy, record: Mapping[str, Any]) -> None:
        """Count and log a decision that a proxy sent."""
        observation = read_record(record)
        if observation is None:
            return
        self.metrics.decided(observation, self.control.tracker.policies)
        if self._decisions is None:
            return
        audited = self._deciders.audited(observation, self.control.enforcement.authority)
        would_deny = any(each.changes and each.verdict is Would.DENY for each in audited)  # sampled like a denial
        logged = {**record, "audited": [each.to_json() for each in audited]} if audited else record
        self._decisions.observed(logged, allowed=observation.allowed and not would_deny)

    def on_failure(self, name: str, error: Exception) -> None:
        """Count and log the failure of a background task."""
        self.task_failures.labels(name).inc()
        cause = innermost(error)
        if isinstance(cause, UnreachableError):
            log_trouble(_LOG, name, cause)
        else:
            log_failure(name, error)

    def _on_trouble(self, what: str, error: Exception) -> None:
        self.metrics.failed_watch(what)
        if isinstance(error, ApiError | UnreachableError | ValueError):  # other errors are logged where they happen
            log_trouble(_LOG, what, error, kind=what)


def _is_kept(resource: Resource) -> bool:
    is_gateway = resource.group == GATEWAY_GROUP and resource.kind in _GATEWAY_KINDS
    return is_gateway or keeps_status(resource) or (resource.group == GROUP and resource.kind in INVARIANTS)


def _generations(objects: Iterable[JsonObject]) -> dict[str, tuple[int, str]]:
    """Return the generation and uid of objects, by the policy names in resources of proxies."""
    generations = {}
    for obj in objects:
        metadata = obj["metadata"]
        group = str(obj["apiVersion"]).rpartition("/")[0]
        ref = PolicyRef(obj["kind"], metadata.get("namespace"), metadata["name"], group)
        generations[policy_name(ref)] = (metadata.get("generation") or 0, metadata.get("uid") or "")
    return generations
