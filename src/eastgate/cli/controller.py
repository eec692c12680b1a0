"""`controller`: Eastgate in a cluster, as one replica of a Deployment."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from typing import TYPE_CHECKING, NoReturn

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.cli.options import settings_from, with_default_namespace
from eastgate.cli.output import UNDECIDED, fail
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.convert.model import Assumption

_EPILOG = "SIGTERM and Ctrl-C end it and exit with 0; 2 if it could not be started."
_port = click.IntRange(0, 65535)
_share = click.FloatRange(0.0, 1.0)


@click.command(epilog=_EPILOG)
@click.option(
    "--kubeconfig",
    type=click.Path(),
    metavar="FILE",
    help="Kubeconfig of the cluster. Default: the account of the pod.",
)
@click.option("--context", metavar="NAME", help="The context of the kubeconfig.")
@click.option(
    "-n", "--namespace", default="eastgate-system", show_default=True, help="Namespace that the controller runs in."
)
@click.option(
    "--replica", envvar="POD_NAME", metavar="NAME", help="Name of this replica. Default: the name of the pod."
)
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to listen on.")  # noqa: S104 - a pod
@click.option("--xds-port", type=_port, default=15010, show_default=True, help="Configuration of proxies.")
@click.option("--authorizer-port", type=_port, default=15011, show_default=True, help="Decisions for gateways.")
@click.option("--tools-port", type=_port, default=15012, show_default=True, help="Lists of tools for gateways.")
@click.option("--peers-port", type=_port, default=15013, show_default=True, help="Connections of other replicas.")
@click.option("--webhook-port", type=_port, default=9443, show_default=True, help="Admission and conversion.")
@click.option(
    "--webhook-client-ca",
    type=click.Path(exists=True, dir_okay=False),
    help="The CA of API servers: admission reviews need a certificate that it signed.",
)
@click.option(
    "--webhook-client-name",
    "webhook_client_names",
    multiple=True,
    metavar="NAME",
    help="The common name of such a certificate; may be repeated. By default any.",
)
@click.option("--http-port", type=_port, default=8080, show_default=True, help="/healthz, /readyz, /metrics.")
@click.option("--debug-port", type=_port, help="A snapshot of all that it knows, at /debug on localhost only.")
@click.option("--access-logs", is_flag=True, help="Have proxies send their decisions, for metrics and decision log.")
@click.option("--decision-log", metavar="FILE", help="Log decisions as JSON lines; - is stdout.")
@click.option(
    "--decision-sample", type=_share, default=0.01, show_default=True, help="Share of allowed requests to log."
)
@click.option(
    "--decision-sample-denied", type=_share, default=1.0, show_default=True, help="Share of denied requests to log."
)
@click.option("--svid-port", type=_port, help="Configuration of proxies with an SVID in place of a token.")
@click.option("--no-webhooks", is_flag=True, help="Answer no webhooks.")
@click.option("--no-gateways", is_flag=True, help="Run no Gateways, and write nothing into their status.")
@click.option("--no-gateway-class", is_flag=True, help="Do not make the GatewayClass where none exists.")
@click.option(
    "--native",
    type=click.Choice(["istio", "linkerd"]),
    help="Write the policies of this mesh for those of GEP-3779, and leave its proxies as they are.",
)
@click.option("--linkerd-status", is_flag=True, help="Write the status of Linkerd's routes, unless Linkerd does.")
@click.option(
    "--native-unwritable",
    type=click.Choice(["leave", "close"]),
    default="leave",
    show_default=True,
    help="How to treat pods whose policies that mesh cannot express: `leave` or `close` them. The status says so.",
)
@click.option(
    "--assume",
    "assumed",
    multiple=True,
    metavar="NAME",
    help="Fact about that mesh, as in `eastgate convert`. May be repeated.",
)
@click.option(
    "--lease-duration",
    type=click.FloatRange(1.0),
    default=15.0,
    show_default=True,
    help="Seconds after which another replica replaces a silent leader.",
)
@click.option("--proxy-image", metavar="IMAGE", help="The image of sidecars and gateways.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting, such as denyOnly=allow.")
@click.option("--config", type=click.Path(dir_okay=False), help="A file with settings.")
@click.option(
    "--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True, help="Form of the log."
)
@click.option("-v", "--verbose", is_flag=True, help="Log everything.")
def controller(
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    replica: str | None,
    host: str,
    xds_port: int,
    authorizer_port: int,
    tools_port: int,
    peers_port: int,
    webhook_port: int,
    webhook_client_ca: str | None,
    webhook_client_names: tuple[str, ...],
    http_port: int,
    svid_port: int | None,
    debug_port: int | None,
    access_logs: bool,
    decision_log: str | None,
    decision_sample: float,
    decision_sample_denied: float,
    no_webhooks: bool,
    no_gateways: bool,
    no_gateway_class: bool,
    native: str | None,
    linkerd_status: bool,
    native_unwritable: str,
    assumed: tuple[str, ...],
    lease_duration: float,
    proxy_image: str | None,
    settings: tuple[str, ...],
    config: str | None,
    log_format: str,
    verbose: bool,
) -> None:
    """Run the controller in a cluster.

    The controller watches policies, configures proxies, and writes into the status of policies what is in force.
    """
    from dataclasses import replace

    from eastgate.controller.decision_log import DecisionSampling
    from eastgate.controller.election import ElectionTimes
    from eastgate.controller.injection import InjectionOptions
    from eastgate.controller.logs import configure_logs
    from eastgate.controller.options import ControllerOptions, ListeningPorts, ObservationOptions
    from eastgate.convert.native import NativeMesh, Unwritable
    from eastgate.envoy.config.pod_bootstrap import ControlPlane

    if webhook_client_names and webhook_client_ca is None:
        raise click.UsageError("--webhook-client-name is for a --webhook-client-ca")
    configure_logs(log_format, logging.DEBUG if verbose else logging.INFO)
    injection = InjectionOptions(control_plane=ControlPlane(f"eastgate.{namespace}.svc", xds_port))
    if proxy_image is not None:
        injection = replace(injection, proxy_image=proxy_image, redirect_image=proxy_image)
    options = ControllerOptions(
        replica or socket.gethostname(),
        namespace,
        host,
        ListeningPorts(xds_port, authorizer_port, tools_port, peers_port, webhook_port, http_port, svid_port),
        NativeMesh(native) if native is not None else None,
        Unwritable(native_unwritable),
        _assumptions(assumed),
        webhooks=not no_webhooks,
        webhook_client_ca=webhook_client_ca,
        webhook_client_names=frozenset(webhook_client_names),
        gateways=not no_gateways,
        gateway_class=not no_gateway_class,
        injection=injection,
        shared_status=linkerd_status,
        observation=ObservationOptions(
            debug_port, decision_log, DecisionSampling(decision_sample, decision_sample_denied), access_logs
        ),
        election=ElectionTimes.of_lease(lease_duration),
    )
    chosen = settings_from(with_default_namespace(settings, None), config, "text")
    _run(kubeconfig, context, chosen, options)


def _assumptions(names: tuple[str, ...]) -> frozenset[Assumption]:
    from eastgate.convert.model import Assumption

    try:
        return frozenset(map(Assumption, names))
    except ValueError:
        raise click.BadParameter(printable(f"write one of {', '.join(Assumption)}"), param_hint="--assume") from None


def _run(kubeconfig: str | os.PathLike[str] | None, context: str | None, settings: Settings, options: object) -> None:
    from eastgate.controller.controller import run_controller
    from eastgate.controller.options import ControllerOptions
    from eastgate.reading.kubernetes import ApiError, KubeconfigError, UnreachableError, connect

    assert isinstance(options, ControllerOptions)  # noqa: S101 - made by the command

    async def run() -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopping.set)
        async with connect(kubeconfig, context, agent="eastgate-controller") as connection:
            await run_controller(connection, settings, options, stopping)

    try:
        asyncio.run(run())
    except (KubeconfigError, UnreachableError, ApiError, OSError, ValueError) as error:
        _stop(error)


def _stop(error: Exception) -> NoReturn:
    from eastgate.authority.sources.codes import NO_CLUSTER

    fail([Diagnostic(NO_CLUSTER, f"the controller could not be started: {error}")], "text")
    raise SystemExit(UNDECIDED)
