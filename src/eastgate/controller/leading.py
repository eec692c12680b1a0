"""Leader-only reconcilers. Each runs after a change and every 60 s."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from eastgate.authority.sources.batches import ClusterChanges
from eastgate.basics.tasks import BackgroundTask, Nudge, run_together
from eastgate.cluster.gateways import GATEWAY_GROUP, ROUTE_KINDS
from eastgate.cluster.proxies import GATEWAY_CLASS
from eastgate.control.gateway_nodes import gateway_node
from eastgate.controller.admission.webhooks import CaBundleKeeper
from eastgate.controller.certificates.shared_ca import namespaces_with_proxies, write_config_maps
from eastgate.controller.gateways.parameters import GatewayParameters
from eastgate.controller.gateways.pods import CONTROLLER_NAME, MANAGED_BY_LABEL, MANAGER, ProxySetup
from eastgate.controller.gateways.reconciling import GatewayReconciler, GatewayView
from eastgate.controller.gateways.status import GatewayProgress
from eastgate.controller.invariants import InvariantStatuses
from eastgate.controller.logs import log_recovery, log_trouble
from eastgate.controller.peers import PeerReports, peer_addresses
from eastgate.controller.proxies.progress import MeshReport, merge
from eastgate.controller.replica import Replica
from eastgate.controller.status.assessment import StoredPolicy
from eastgate.controller.status.natively import without_failures
from eastgate.controller.tracing import span
from eastgate.convert.model import Options
from eastgate.convert.native import NativePlan, NativeWriter, control_plane_of, is_serving, wanted
from eastgate.envoy.config.bootstrap import pod_bootstrap, secret_sources
from eastgate.ir import PolicyRef
from eastgate.reading.kubernetes import ApiError, JsonObject

_LOG = logging.getLogger(__name__)
_DEBOUNCE_SECONDS: Final = 0.1  # so that several changes need one reconciliation
_RESYNC_SECONDS: Final = 60.0
_PEER_POLL_SECONDS: Final = 1.0
_NATIVES: Final = "writing native policies"  # in the log


_CLASS_MANIFEST: Final[JsonObject] = {
    "apiVersion": f"{GATEWAY_GROUP}/v1",
    "kind": "GatewayClass",
    "metadata": {"name": GATEWAY_CLASS, "labels": {MANAGED_BY_LABEL: MANAGER}},
    "spec": {
        "controllerName": CONTROLLER_NAME,
        "description": "Gateways that Eastgate runs, and whose policies it enforces.",
    },
}


class Leader:
    """The writers of a replica. They run only while it leads."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._changed = [Nudge() for _ in range(4)]
        self._gateways, self._natives, self._config_maps, self._invariants = self._changed
        self._reported = Nudge()
        self._report = MeshReport()
        self._unwritten: set[tuple[str, str, str]] = set()  # objects of Gateways that could not be written
        self._failed_natives: set[str] = set()  # namespaces
        self._with_roots: frozenset[str] = frozenset()  # namespaces whose ConfigMaps hold these roots
        self._roots, self._roots_seen_at = "", 0.0
        self._has_class = False  # a GatewayClass existed or was created since the cluster has Gateway API
        options = replica.options
        plane, files = options.injection.control_plane, options.injection.files
        setup = ProxySetup(pod_bootstrap(plane, files, address="0.0.0.0"), secret_sources(files))  # noqa: S104
        defaults = GatewayParameters(image=options.injection.proxy_image)
        self._reconciler = GatewayReconciler(replica.connection, setup, defaults)
        self._native_writer = NativeWriter(replica.connection)
        self._bundles = CaBundleKeeper(replica.connection, self._own_bundle)
        self._peers = PeerReports(replica.tls, replica.identity, options.ports.peers)
        self._standings = InvariantStatuses(replica)

    async def run(self) -> None:
        """Write until cancelled."""
        replica = self._replica
        stop = [replica.listen(self._on_changes), replica.control.server.listen(lambda _event: self._reported())]
        self._with_roots = frozenset()
        fields = {"replica": replica.options.replica}
        _LOG.info("%s leads now", replica.options.replica, extra=fields)
        try:
            await run_together(*self._writers())
        finally:
            self._standings.stop()
            for each in stop:
                each()
            _LOG.info("%s does not lead any more", replica.options.replica, extra=fields)

    def _writers(self) -> list[Awaitable[None]]:
        options = self._replica.options
        writers: dict[str, Callable[[], Awaitable[None]]] = {
            "the statuses of policies": self._replica.statuses.writer.run,
            "the reports of proxies": self._keep_reporting,
            "the CA": self._keep_rotating,
            "the ConfigMaps with the CA": lambda: self._write_and_wait(self._config_maps, self._write_config_maps),
            "native policies": lambda: self._write_and_wait(self._natives, self._write_natives),
        }
        if options.gateways:
            writers["the Gateways"] = lambda: self._write_and_wait(self._gateways, self._reconcile_gateways)
        if options.webhooks:
            writers["the certificates of webhooks"] = self._bundles.run
            writers["the statuses of Invariants"] = lambda: self._write_and_wait(
                self._invariants, self._standings.write
            )
        return [BackgroundTask(name, work, self._replica.on_failure).run() for name, work in writers.items()]

    def _on_changes(self, _changes: ClusterChanges) -> None:
        for nudge in self._changed:
            nudge()

    async def _write_and_wait(self, nudge: Nudge, write: Callable[[], Awaitable[None]]) -> None:
        """Write, and return when a change or the resync needs another write."""
        await write()
        await nudge.wait(_RESYNC_SECONDS)
        await asyncio.sleep(_DEBOUNCE_SECONDS)

    # Reports

    async def _keep_reporting(self) -> None:
        replica = self._replica
        addresses = peer_addresses(replica.world, replica.options.namespace, replica.options.replica)
        reports = await self._peers.ask(addresses)
        report = merge([*reports, replica.control.report()])
        if report != self._report:
            self._report = report
            replica.statuses.take_report(report)
            self._gateways()
        await self._reported.wait(_PEER_POLL_SECONDS)
        await asyncio.sleep(_DEBOUNCE_SECONDS / 2)

    # Gateways

    async def _reconcile_gateways(self) -> None:
        replica = self._replica
        by_kind: dict[str, list[JsonObject]] = {}
        for ref, obj in replica.objects.items():
            if ref.group == "gateway.networking.k8s.io":
                by_kind.setdefault(ref.kind, []).append(obj)
        await self._make_gateway_class(by_kind.get("GatewayClass", []))
        gateways = by_kind.get("Gateway", [])
        if not by_kind.get("GatewayClass"):
            return
        unreadable = {
            (ref.kind, ref.namespace or "", ref.name): "; ".join(error.message for error in errors)
            for ref, errors in replica.source.faults.items()
        }
        routes = [route for kind in ROUTE_KINDS for route in by_kind.get(kind, [])]
        progress = {name: self._progress_of(name) for name in (_name_of(gateway) for gateway in gateways)}
        view = GatewayView(replica.world, by_kind["GatewayClass"], gateways, routes, progress, unreadable)
        result = await self._reconciler.reconcile(view)
        for key, message in result.errors.items():
            _LOG.warning("%s could not be written: %s", "/".join(key), message, extra=_fields_of(key, "trouble"))
        for key in self._unwritten - result.errors.keys():
            _LOG.info("%s can be written again, or is gone", "/".join(key), extra=_fields_of(key, "over"))
        self._unwritten = set(result.errors)

    async def _make_gateway_class(self, classes: list[JsonObject]) -> None:
        """Create the GatewayClass if the cluster has Gateway API and no class of Eastgate.

        This happens once after each installation of Gateway API: a class that a user deletes stays deleted.
        """
        resource = self._replica.find(PolicyRef("GatewayClass", None, GATEWAY_CLASS, GATEWAY_GROUP))
        if resource is None:
            self._has_class = False
            return
        if self._has_class or not self._replica.options.gateway_class:
            return
        if not any(each["spec"].get("controllerName") == CONTROLLER_NAME for each in classes):
            try:
                await self._replica.connection.create(resource, _CLASS_MANIFEST)
            except ApiError as error:
                if not (
                    error.is_conflict or error.is_forbidden
                ):  # the name is in use, or the controller may not create it
                    raise
                _LOG.warning("the GatewayClass %s could not be created: %s", GATEWAY_CLASS, error)
        self._has_class = True

    def _progress_of(self, name: str) -> GatewayProgress:
        namespace, _, own = name.partition("/")
        proxies = [report for report in self._report.proxies.values() if report.node == gateway_node(namespace, own)]
        if not proxies:
            return GatewayProgress(False, "no proxy has connected yet")
        waiting = [report.proxy for report in proxies if not (report.connected and report.settled)]
        rejected = [f"{each.name}: {each.message}" for report in proxies for each in report.rejected]
        if waiting or rejected:
            return GatewayProgress(False, rejected[0] if rejected else f"waiting for {', '.join(waiting)}")
        return GatewayProgress(True)

    # Native policies

    async def _write_natives(self) -> None:
        replica, mesh = self._replica, self._replica.options.native
        if mesh is None:
            return
        stored = {ref: StoredPolicy.of(obj) for ref, obj in replica.objects.items()}  # not newer than the plan
        with span("native plan", {"mesh": mesh.value}):
            plan = await asyncio.to_thread(self._plan_natives)
            failures = await self._native_writer.write(plan)
        failed = {failure.step.namespace: failure.error for failure in failures}
        for namespace, error in failed.items():
            log_trouble(_LOG, _NATIVES, error, namespace=namespace)
        for namespace in self._failed_natives - failed.keys():
            log_recovery(_LOG, _NATIVES, namespace=namespace)
        self._failed_natives = set(failed)
        serves = await is_serving(replica.connection, mesh, replica.settings)
        not_serving = None if serves else control_plane_of(mesh, replica.settings)
        replica.statuses.take_plan(plan, without_failures(stored, failures), not_serving)

    def _plan_natives(self) -> NativePlan:
        options = self._replica.options
        assert options.native is not None  # noqa: S101 - checked by the caller
        with self._replica.control.lock:
            return wanted(self._replica.authority, options.native, Options(options.assumed), options.unwritable)

    # Certificates

    def _own_bundle(self) -> str:
        bundles = self._replica.tls.bundles
        return bundles.pem(bundles.own)

    async def _keep_rotating(self) -> None:
        if await self._replica.ca.rotate():
            self._bundles.write_soon()
            self._config_maps()
        await asyncio.sleep(_RESYNC_SECONDS)

    async def _write_config_maps(self) -> None:
        replica = self._replica
        sites = replica.control.enforcement.sites
        namespaces = namespaces_with_proxies(replica.world, sites)
        roots = self._own_bundle()
        if (
            roots != self._roots or time.monotonic() - self._roots_seen_at > _RESYNC_SECONDS
        ):  # another program may have changed one
            self._with_roots, self._roots, self._roots_seen_at = frozenset(), roots, time.monotonic()
        known = self._with_roots & namespaces
        self._with_roots = known | await write_config_maps(replica.connection, namespaces - known, replica.tls.bundles)


def _fields_of(key: tuple[str, ...], state: str) -> dict[str, str]:
    return {"kind": key[0], "object": "/".join(key[1:]), state: "an object that could not be written"}


def _name_of(obj: JsonObject) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
