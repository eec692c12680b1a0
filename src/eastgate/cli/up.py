"""`up`: the local mesh, with a real Envoy for each workload, real mTLS, and enforcement of every saved change."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.diagnostics.printable import json_text
from eastgate.basics.regexes import regex
from eastgate.cli.identities import Identities, identity_options
from eastgate.cli.options import (
    Sources,
    bad_option,
    jwks_option,
    more_files,
    source_options,
    strict_option,
)
from eastgate.cli.output import UNDECIDED, colored, emit, output_option, print_lines, warn

if TYPE_CHECKING:
    from eastgate.envoy.config.clusters import SocketAddress
    from eastgate.local.mesh import LocalMesh
    from eastgate.local.screens import Screen
    from eastgate.local.session import Session

_EPILOG = (
    "Exits with 0 after Ctrl-C, which stops the mesh; 2 if the mesh could not be started. "
    "`eastgate call` and `eastgate why` use the running mesh."
)
_WORKLOAD = regex(r"[^/:=\s]+/[^/:=\s]+(:[0-9]{1,5})?")


@click.command(epilog=_EPILOG)
@source_options(more_files, strict_option)
@click.option("--name", default="default", show_default=True, help="Name of the mesh, for `call` and `why`.")
@click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="NS/NAME[:PORT]=HOST:PORT",
    help="Address of your own application behind a workload, instead of the built-in one.",
)
@click.option("--network", metavar="CIDR", help="Addresses of the workloads, in 127.0.0.0/8. Default: a free /16.")
@click.option("--metrics", metavar="[HOST:]PORT", help="Serve Prometheus metrics here.")
@identity_options
@jwks_option
@output_option("text", "json", about="Format of the answer.")
def up(
    sources: Sources,
    name: str,
    apps: tuple[str, ...],
    network: str | None,
    metrics: str | None,
    identities: Identities,
    jwks: tuple[str, ...],
    output: str,
) -> None:
    """Run the manifests as a mesh on this machine.

    The mesh enforces a change as soon as you save its file.
    """
    paths = sources.paths
    if not paths:
        raise click.UsageError("no manifests: give files or folders with -f")
    if "-" in paths:
        raise click.UsageError("standard input cannot be watched: give files or folders with -f")
    chosen = sources.settings()

    from eastgate.local.mesh import MeshOptions
    from eastgate.local.session import Session

    options = MeshOptions(
        name=name,
        network=network,
        apps=_apps(apps),
        by_address=identities.by_address,
        tokens=identities.tokens(chosen),
        federate=identities.stand_ins,
        source=identities.source(chosen),
    )
    session = Session(
        sources.file_source(jwks),
        chosen,
        options,
        _address(metrics, "--metrics") if metrics is not None else None,
    )
    _run(session, output, sources.verbose)


def _run(session: Session, output: str, verbose: bool) -> None:
    from eastgate.authority.reading import ManifestError
    from eastgate.control.codes import MESH_NOT_STARTED
    from eastgate.local.machine.rundir import LocalMeshError

    proxies = 0

    def started(mesh: LocalMesh) -> None:
        nonlocal proxies
        proxies = len(mesh.nodes)
        errors = (error for rejected in mesh.authority.rejected for error in rejected.errors)
        warn([*mesh.authority.warnings, *errors])

    try:
        asyncio.run(session.run(_screen(session, output, verbose), started))
    except ManifestError as error:
        _not_started(error.diagnostics, output)
    except LocalMeshError as error:
        _not_started([Diagnostic(MESH_NOT_STARTED, str(error.args[0]), None, error.help or None)], output)
    if output != "json":
        print_lines(f"stopped {session.options.name}: {proxies} prox{'y' if proxies == 1 else 'ies'}", err=True)


def _screen(session: Session, output: str, verbose: bool) -> Screen:
    from rich.console import Console

    from eastgate.local.screens import JsonScreen, TextScreen

    def gone() -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python reports the error again at the end
        session.stop()

    if output == "json":
        return JsonScreen(sys.stdout, gone, verbose=verbose)
    return TextScreen(Console(no_color=not colored() or None), gone, verbose=verbose)


def _not_started(diagnostics: Sequence[Diagnostic], output: str) -> NoReturn:
    listed = list(diagnostics)
    if output == "json":
        event = {
            "event": "failed",
            "error": listed[0].message,
            "diagnostics": [diagnostic.to_json() for diagnostic in listed],
        }
        emit(json_text(event) + "\n")
    else:
        warn(listed)
        print_lines(f"{len(listed)} error{'' if len(listed) == 1 else 's'}: nothing was started", err=True)
    sys.exit(UNDECIDED)


def _apps(values: Sequence[str]) -> dict[str, SocketAddress]:
    from eastgate.envoy.config.clusters import SocketAddress

    apps = {}
    for value in values:
        workload, equals, address = value.partition("=")
        if not equals or not _WORKLOAD.fullmatch(workload):
            bad_option(f"`{value}` names no workload and address", "write --app NS/NAME[:PORT]=HOST:PORT")
        apps[workload] = SocketAddress(*_address(address, f"--app {workload}="))
    return apps


def _address(value: str, option: str) -> tuple[str, int]:
    host, _, port = value.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535 or any(c in host for c in "/ @"):
        bad_option(f"`{value}` is not HOST:PORT", f"write {option} 127.0.0.1:9000")
    return {"": "127.0.0.1", "localhost": "127.0.0.1"}.get(host, host.strip("[]")), int(port)
