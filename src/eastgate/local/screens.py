"""Shows the events of a mesh: on a terminal, in a log, as JSON."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Protocol

from rich.console import Console

from eastgate.authority.questions import Question, QuestionError, ends
from eastgate.basics.diagnostics.printable import composed, json_text, printable
from eastgate.control.access_log import Repeats
from eastgate.control.events import Decided, MeshEvent, Noted
from eastgate.control.gateways import GatewaySite, gateway_identity
from eastgate.control.sites import ProxySite, identity_of
from eastgate.local.event_text import EventText
from eastgate.local.guarding import policies_at
from eastgate.local.handlers import application_of, policies_behind, status_of
from eastgate.local.live_view import LiveView, workload_table
from eastgate.local.machine.rundir import DEFAULT_NAME
from eastgate.local.mesh import LocalMesh

_LOG_WIDTH = 140
_MAX_TRIES = 200


class Screen(Protocol):
    """Shows the events of a mesh that has started."""

    def open(self, mesh: LocalMesh, event_text: EventText) -> AbstractContextManager[object]:
        """Show the workloads, and the events for as long as the block lasts."""
        ...

    def show(self, event: MeshEvent) -> None: ...


class JsonScreen:
    """Writes one JSON object on one line for each event."""

    def __init__(self, out: IO[str], on_lost: Callable[[], None], *, verbose: bool = False) -> None:
        self._out = _Output(out, on_lost)
        self._verbose = verbose

    def open(self, mesh: LocalMesh, event_text: EventText) -> AbstractContextManager[object]:
        """Write the line about the workloads."""
        self._event_text = event_text
        self._out.line(json_text({"event": "started", **status_of(mesh)}))
        return nullcontext()

    def show(self, event: MeshEvent) -> None:
        if _is_shown(event, self._verbose):
            self._out.line(json_text(self._event_text.to_json(event)))


class TextScreen:
    """Writes lines for people; on a terminal a live display."""

    def __init__(self, console: Console, on_lost: Callable[[], None], *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._out = _Output(console.file, on_lost)
        self._repeats = Repeats()
        self._live: LiveView | None = None

    def open(self, mesh: LocalMesh, event_text: EventText) -> AbstractContextManager[object]:
        """Write the table of workloads, and an example of a call."""
        self._event_text = event_text
        if not self._console.is_terminal:
            self._console.width = max(self._console.width, _LOG_WIDTH)
        try:
            rows = [_row(mesh, mesh.sites[key]) for key in sorted(mesh.sites)]
            rows += [_gateway_row(mesh, mesh.gateways[node]) for node in sorted(mesh.gateways)]
            self._console.print(workload_table(rows, self._console.width))
        except BrokenPipeError:
            self._out.report_lost()
        words = example_call(mesh)
        if words is not None:
            self._out.line(f"\ncall it: {printable(words)}\n")
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            return nullcontext()
        self._live = LiveView(mesh, event_text, self._console, verbose=self._verbose)
        return self._live

    def show(self, event: MeshEvent) -> None:
        """Write a line, or update the live display."""
        if self._live is not None:
            self._live.show(event)
        elif _is_shown(event, self._verbose) and not (
            isinstance(event, Decided) and self._repeats.is_repeat(event.observation)
        ):
            self._out.line(composed(self._event_text.line(event)))


class _Output:
    """A stream whose reader may go away; then `on_lost` is called, to stop the mesh."""

    def __init__(self, out: IO[str], on_lost: Callable[[], None]) -> None:
        self._out = out
        self._on_lost = on_lost

    def line(self, text: str) -> None:
        try:
            self._out.write(text + "\n")
            self._out.flush()
        except (BrokenPipeError, ValueError):
            self.report_lost()

    def report_lost(self) -> None:
        self._on_lost()


def _is_shown(event: MeshEvent, verbose: bool) -> bool:
    """Return whether to show an event. Plain notes, such as the Envoys' own lines, are shown only if `verbose`."""
    return verbose or not isinstance(event, Noted) or event.trouble


def _row(mesh: LocalMesh, site: ProxySite) -> tuple[str, str, str, str, str]:
    apps = list(dict.fromkeys(application_of(site, port) for port in sorted(site.apps)))
    policies = len(policies_at(site.workload, mesh.authority))
    identity = identity_of(mesh.authority.world.workloads[site.workload], mesh.settings)
    return site.workload, _address(site), ", ".join(apps) or "none", identity or "none", str(policies)


def _gateway_row(mesh: LocalMesh, site: GatewaySite) -> tuple[str, str, str, str, str]:
    identity, policies = gateway_identity(site.gateway, mesh.settings), policies_behind(mesh, site)
    return site.node, _address(site), "gateway", identity, str(len(policies))


def _address(site: ProxySite | GatewaySite) -> str:
    ports = [f"{bound}" if bound == port else f"{bound} (for {port})" for port, bound in sorted(site.ports.items())]
    address = ", ".join(f"{site.address}:{port}" if not index else f":{port}" for index, port in enumerate(ports))
    return address or site.address


def example_call(mesh: LocalMesh) -> str | None:
    """Return a command that makes a call, an allowed one if it is found soon; None without any port."""
    world, first, tried = mesh.authority.world, None, 0
    pods = (workload for workload in world.workloads.values() if workload.is_pod)
    accounts = sorted({ends.ServiceAccount(pod.namespace, pod.service_account) for pod in pods}, key=str)
    for key, site in sorted(mesh.sites.items()):
        workload = world.workloads[key]
        own = ends.ServiceAccount(workload.namespace, workload.service_account)
        for port in sorted(site.ports):
            for account in (other for other in accounts if other != own):
                called = ends.Pod(workload.namespace, workload.name)
                question = Question(account, called, port, "GET", "/", headers={})
                tried += 1
                first = first or question
                if tried > _MAX_TRIES:
                    return _command(first, mesh)
                try:
                    decision = mesh.authority.enforced(question)
                except QuestionError:
                    continue
                if decision.allowed and decision.policy is not None:
                    return _command(question, mesh)
    return _command(first, mesh) if first is not None else None


def _command(question: Question, mesh: LocalMesh) -> str:
    name = "" if mesh.options.name == DEFAULT_NAME else f" --name {mesh.options.name}"
    return f"eastgate call{name} --from {question.source} --to {question.destination} --port {question.port} /"
