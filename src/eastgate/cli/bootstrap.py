"""`bootstrap`: the configuration of an Envoy that the user runs, for the control plane in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from eastgate.basics.diagnostics.printable import printable
from eastgate.cli.output import emit, emit_json, output_option

if TYPE_CHECKING:
    from eastgate.envoy.config.bootstrap import ControlPlane

_LAST_PORT = 65535


def control_plane_of(address: str | None, name: str | None = None) -> ControlPlane:
    """Parse an address, `HOST:PORT`. By default it is that of the Service in the cluster."""
    from eastgate.envoy.config.bootstrap import ControlPlane

    if address is None:
        return ControlPlane(name=name)
    host, colon, port = address.rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT):
        raise click.BadParameter(printable(f"{address} is no HOST:PORT"))
    return ControlPlane(host.strip("[]"), int(port), name)


def _key(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and (value.count("/") != 1 or not all(value.split("/"))):
        raise click.BadParameter("write <namespace>/<name>")
    return value


@click.command(epilog="Exits with 0.")
@click.option("--node", required=True, metavar="NAMESPACE/POD", callback=_key, help="Pod of the Envoy.")
@click.option("--gateway", metavar="NAMESPACE/NAME", callback=_key, help="Gateway that the Envoy serves.")
@click.option("--control-plane", metavar="HOST:PORT", help="Address of the control plane.")
@click.option("--server-name", metavar="NAME", help="Name in the control plane's certificate. Default: its host.")
@click.option("--token", metavar="FILE", help="File of the pod's service account token, with the audience eastgate.")
@click.option("--ca", metavar="FILE", help="File of the control plane's CA.")
@click.option("--sources", metavar="FOLDER", help="Folder for token.json and trust.json, which -o all prints.")
@click.option("--admin", metavar="SOCKET", help="Socket for Envoy's admin interface. Default: none.")
@click.option(
    "--address",
    default="0.0.0.0",  # noqa: S104 - kubelets ask from outside
    show_default=True,
    help="Address for readiness probes of kubelets, at port 15021.",
)
@output_option("yaml", "json", "all", about="Format of the bootstrap.")
def bootstrap(
    node: str,
    gateway: str | None,
    control_plane: str | None,
    server_name: str | None,
    token: str | None,
    ca: str | None,
    sources: str | None,
    admin: str | None,
    address: str,
    output: str,
) -> None:
    """Print the bootstrap of an Envoy in the cluster.

    The Envoy gets the rest of its configuration from the control plane.
    """
    from eastgate.convert.run import as_yaml
    from eastgate.envoy.config.bootstrap import ProxyFiles, pod_bootstrap, secret_sources

    usual = ProxyFiles()
    files = ProxyFiles(token or usual.token, ca or usual.ca, sources or usual.sources, admin)
    pod = node.rpartition("/")[2]
    plain = pod_bootstrap(
        control_plane_of(control_plane, server_name),
        files,
        node=node if gateway is None else f"gateway:{gateway}/{pod}",
        address=address,
    )
    if output == "all":
        emit_json({"bootstrap.json": plain, **secret_sources(files)})
    elif output == "json":
        emit_json(plain)
    else:
        emit(as_yaml([plain]))
