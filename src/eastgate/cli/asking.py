"""How commands ask a running mesh."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from eastgate.basics.diagnostics import Code, Diagnostic, Severity
from eastgate.cli.output import fail

mesh_option = click.option("--name", default="default", show_default=True, metavar="MESH", help="Name of the mesh.")


def ask(name: str, what: str, **arguments: Any) -> dict[str, Any]:
    """Ask a running mesh. Where it does not answer, say why and exit."""
    from eastgate.control.codes import NO_MESH
    from eastgate.local.machine.control import ControlClient
    from eastgate.local.machine.errors import LocalMeshError
    from eastgate.local.machine.rundir import find

    try:
        client = ControlClient(find(name).socket("control"))
        answer = asyncio.run(client.ask(what, **arguments))
    except LocalMeshError as error:
        fail([Diagnostic(NO_MESH, str(error.args[0]), None, error.help or None)])
    if "failed" in answer:
        fail([failed(answer["failed"])])
    return answer


def failed(answer: dict[str, Any]) -> Diagnostic:
    """Read a diagnostic that a mesh gave."""
    return Diagnostic(
        Code(answer["code"], "", "", Severity(answer["severity"])), answer["message"], None, answer["help"]
    )


def known_workloads(context: click.Context) -> list[dict[str, Any]]:
    """Return the workloads of the running mesh, for completion: none where none runs."""
    return _known(context, "workloads")


def known_gateways(context: click.Context) -> list[dict[str, Any]]:
    """Return the gateways of the running mesh, for completion."""
    return _known(context, "gateways")


def _known(context: click.Context, what: str) -> list[dict[str, Any]]:
    from eastgate.local.machine.control import ControlClient
    from eastgate.local.machine.errors import LocalMeshError
    from eastgate.local.machine.rundir import find

    try:
        client = ControlClient(find(context.params.get("name") or "default").socket("control"))
        known: list[dict[str, Any]] = asyncio.run(client.ask("status"))[what]
    except LocalMeshError:
        return []
    return known
