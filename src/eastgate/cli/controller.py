"""`controller`: Eastgate in a cluster, as one replica of a Deployment."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from typing import TYPE_CHECKING, NoReturn

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli.options import record, settings_from, settings_options
from eastgate.cli.output import fail
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.controller.decision_log import DecisionSampling
    from eastgate.controller.options import ControllerOptions, ListeningPorts
    from eastgate.convert.model import Assumption

_EPILOG = "Exits with 0 after SIGTERM or Ctrl-C; 2 if it could not be started."
_port = click.IntRange(0, 65535)
_share = click.FloatRange(0.0, 1.0)
_port.name, _share.name = "port", "share"  # in the form of the help


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClusterOptions:
    """The cluster that the controller watches, and the namespace that it runs in."""

    kubeconfig: str | None
    context: str | None
    namespace: str
    replica: str | None
    lease_duration: float


_cluster = record(
    "cluster",
    _ClusterOptions,
    click.option(
        "--kubeconfig",
        type=click.Path(),
        metavar="FILE",
        help="Kubeconfig of the cluster. Default: the account of the pod.",
    ),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."),
    click.option(
        "-n", "--namespace", default="eastgate-system", show_default=True, help="Namespace that the controller runs in."
    ),
    click.option(
        "--replica", envvar="POD_NAME", metavar="NAME", help="Name of this replica. Default: the name of the pod."
    ),
    click.option(
        "--lease-duration",
        type=click.FloatRange(1.0),
        default=15.0,
        show_default=True,
        help="Seconds after which another replica replaces a silent leader.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ControllerPorts:
    """The address and the ports of the controller. A port without a number is closed."""

    host: str
    xds_port: int
    authorizer_port: int
    tools_port: int
    peers_port: int
    webhook_port: int
    http_port: int
    svid_port: int | None
    debug_port: int | None

    def ports(self) -> ListeningPorts:
        """Return the ports. The port for debugging is separate, as it is on localhost."""
        from eastgate.controller.options import ListeningPorts

        return ListeningPorts(
            self.xds_port,
            self.authorizer_port,
            self.tools_port,
            self.peers_port,
            self.webhook_port,
            self.http_port,
            self.svid_port,
        )


_listening = record(
    "listening",
    _ControllerPorts,
    click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen on."),  # noqa: S104 - a pod
    click.option(
        "--xds-port", type=_port, default=15010, show_default=True, help="Port for the configuration of proxies."
    ),
    click.option(
        "--authorizer-port", type=_port, default=15011, show_default=True, help="Port for decisions for gateways."
    ),
    click.option(
        "--tools-port", type=_port, default=15012, show_default=True, help="Port for tool lists for gateways."
    ),
    click.option("--peers-port", type=_port, default=15013, show_default=True, help="Port for other replicas."),
    click.option(
        "--webhook-port", type=_port, default=9443, show_default=True, help="Port for admission and conversion."
    ),
    click.option(
        "--http-port", type=_port, default=8080, show_default=True, help="Port for /healthz, /readyz, /metrics."
    ),
    click.option("--debug-port", type=_port, help="Port for a snapshot of the state, at /debug on localhost only."),
    click.option("--svid-port", type=_port, help="Port for proxies with an SVID in place of a token."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Webhooks:
    """Whether the controller answers webhooks, and the certificates that it demands of API servers."""

    no_webhooks: bool
    webhook_client_ca: str | None
    webhook_client_names: tuple[str, ...]


_webhooks = record(
    "webhooks",
    _Webhooks,
    click.option("--no-webhooks", is_flag=True, help="Answer no webhooks."),
    click.option(
        "--webhook-client-ca",
        type=click.Path(exists=True, dir_okay=False),
        help="CA of API servers: admission reviews need a client certificate of this CA.",
    ),
    click.option(
        "--webhook-client-name",
        "webhook_client_names",
        multiple=True,
        metavar="NAME",
        help="Accepted common name of this certificate. Default: any.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Logs:
    """The logs of the controller and of proxies."""

    access_logs: bool
    decision_log: str | None
    decision_sample: float
    decision_sample_denied: float
    log_format: str
    verbose: bool

    def sampling(self) -> DecisionSampling:
        """Return the share of requests in the decision log."""
        from eastgate.controller.decision_log import DecisionSampling

        return DecisionSampling(self.decision_sample, self.decision_sample_denied)


_logs = record(
    "logs",
    _Logs,
    click.option("--access-logs", is_flag=True, help="Proxies send their decisions, for metrics and decision log."),
    click.option("--decision-log", metavar="FILE", help="Log decisions as JSON lines; - is stdout."),
    click.option(
        "--decision-sample", type=_share, default=0.01, show_default=True, help="Share of allowed requests to log."
    ),
    click.option(
        "--decision-sample-denied",
        type=_share,
        default=1.0,
        show_default=True,
        help="Share of denied requests to log.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["json", "text"]),
        default="json",
        show_default=True,
        help="Format of the log.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Log everything."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Enforcing:
    """The proxies that enforce policies: those of Eastgate, or those of another mesh."""

    no_gateways: bool
    no_gateway_class: bool
    native: str | None
    linkerd_status: bool
    native_unwritable: str
    assumed: tuple[str, ...]
    proxy_image: str | None


_enforcing = record(
    "enforcing",
    _Enforcing,
    click.option("--no-gateways", is_flag=True, help="Run no Gateways, and write nothing into their status."),
    click.option("--no-gateway-class", is_flag=True, help="Do not create a missing GatewayClass."),
    click.option(
        "--native",
        type=click.Choice(["istio", "linkerd"]),
        help="Write native policies of this mesh from GEP-3779 policies, and leave its proxies as they are.",
    ),
    click.option("--linkerd-status", is_flag=True, help="Write the status of Linkerd's routes, unless Linkerd does."),
    click.option(
        "--native-unwritable",
        type=click.Choice(["leave", "close"]),
        default="leave",
        show_default=True,
        help="`leave` or `close` pods with policies that the mesh of --native cannot express. The status tells so.",
    ),
    click.option(
        "--assume",
        "assumed",
        multiple=True,
        metavar="NAME",
        help="Fact about the mesh of --native, as in `eastgate convert`.",
    ),
    click.option("--proxy-image", metavar="IMAGE", help="Image of sidecars and gateways."),
)


@click.command(epilog=_EPILOG)
@_cluster
@_listening
@_webhooks
@_logs
@_enforcing
@record("settings", settings_from, *settings_options)
def controller(
    cluster: _ClusterOptions,
    listening: _ControllerPorts,
    webhooks: _Webhooks,
    logs: _Logs,
    enforcing: _Enforcing,
    settings: Settings,
) -> None:
    """Run the controller in a cluster.

    The controller watches policies, configures proxies, and writes the status of policies.
    """
    from dataclasses import replace

    from eastgate.controller.election import ElectionTimes
    from eastgate.controller.injection import InjectionOptions
    from eastgate.controller.logs import configure_logs
    from eastgate.controller.options import ControllerOptions, ObservationOptions
    from eastgate.convert.native import NativeMesh, Unwritable
    from eastgate.envoy.config.bootstrap import ControlPlane

    if webhooks.webhook_client_names and webhooks.webhook_client_ca is None:
        raise click.UsageError("--webhook-client-name is for a --webhook-client-ca")
    configure_logs(logs.log_format, logging.DEBUG if logs.verbose else logging.INFO)
    injection = InjectionOptions(control_plane=ControlPlane(f"eastgate.{cluster.namespace}.svc", listening.xds_port))
    if (image := enforcing.proxy_image) is not None:
        injection = replace(injection, proxy_image=image)
    options = ControllerOptions(
        cluster.replica or socket.gethostname(),
        cluster.namespace,
        listening.host,
        listening.ports(),
        NativeMesh(enforcing.native) if enforcing.native is not None else None,
        Unwritable(enforcing.native_unwritable),
        _assumptions(enforcing.assumed),
        webhooks=not webhooks.no_webhooks,
        webhook_client_ca=webhooks.webhook_client_ca,
        webhook_client_names=frozenset(webhooks.webhook_client_names),
        gateways=not enforcing.no_gateways,
        gateway_class=not enforcing.no_gateway_class,
        injection=injection,
        shared_status=enforcing.linkerd_status,
        observation=ObservationOptions(listening.debug_port, logs.decision_log, logs.sampling(), logs.access_logs),
        election=ElectionTimes.of_lease(cluster.lease_duration),
    )
    _run(cluster, settings, options)


def _assumptions(names: tuple[str, ...]) -> frozenset[Assumption]:
    from eastgate.convert.model import Assumption

    try:
        return frozenset(map(Assumption, names))
    except ValueError:
        raise click.BadParameter(printable(f"write one of {', '.join(Assumption)}"), param_hint="--assume") from None


def _run(cluster: _ClusterOptions, settings: Settings, options: ControllerOptions) -> None:
    from eastgate.controller.controller import run_controller
    from eastgate.reading.kubernetes import ApiError, KubeconfigError, UnreachableError, connect

    async def run() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        async with connect(cluster.kubeconfig, cluster.context, agent="eastgate-controller") as connection:
            await run_controller(connection, settings, options, stopping)

    try:
        asyncio.run(run())
    except (KubeconfigError, UnreachableError, ApiError, OSError, ValueError) as error:
        _stop(error)


def _stop(error: Exception) -> NoReturn:
    from eastgate.authority.sources.codes import NO_CLUSTER

    fail([Diagnostic(NO_CLUSTER, f"the controller could not be started: {error}")])
