"""Where the events of a mesh go: to a person at a terminal, to a log, to a program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Protocol

from rich.console import Console

from eastgate.mesh.events import Decided, Event, Noted
from eastgate.mesh.handlers import application_of, status_of
from eastgate.mesh.local.rundir import DEFAULT_NAME
from eastgate.mesh.mesh import LocalMesh
from eastgate.mesh.sites import Site, identity_of
from eastgate.mesh.telling import Repeats, Teller
from eastgate.mesh.view import LiveView, workload_table
from eastgate.printable import composed, json_text, printable
from eastgate.questions import Question, QuestionError

__all__ = ["JsonScreen", "Screen", "TextScreen", "example"]

_WIDE = 140
_TRIED = 200


class Screen(Protocol):
    """Shows what happens in a mesh that has started."""

    def open(self, mesh: LocalMesh, teller: Teller) -> AbstractContextManager[object]:
        """Say who is there; what is shown ends with the block."""
        ...

    def tell(self, event: Event) -> None:
        """Show one more event."""
        ...


class JsonScreen:
    """One object on one line for each event."""

    def __init__(self, out: IO[str], gone: Callable[[], None], *, verbose: bool = False) -> None:
        self._out = _Out(out, gone)
        self._verbose = verbose

    def open(self, mesh: LocalMesh, teller: Teller) -> AbstractContextManager[object]:
        """The first line is about the workloads."""
        self._teller = teller
        self._out.line(json_text({"event": "started", **status_of(mesh)}))
        return nullcontext()

    def tell(self, event: Event) -> None:
        """One more line."""
        if _is_worth(event, self._verbose):
            self._out.line(json_text(self._teller.to_json(event)))


class TextScreen:
    """Lines for people; on a terminal a display that stays in place."""

    def __init__(self, console: Console, gone: Callable[[], None], *, verbose: bool = False) -> None:
        self._console = console
        self._verbose = verbose
        self._out = _Out(console.file, gone)
        self._repeats = Repeats()
        self._live: LiveView | None = None

    def open(self, mesh: LocalMesh, teller: Teller) -> AbstractContextManager[object]:
        """The table of workloads, and how to call them."""
        self._teller = teller
        if not self._console.is_terminal:
            self._console.width = max(self._console.width, _WIDE)
        try:
            rows = [_row(mesh, mesh.sites[key]) for key in sorted(mesh.sites)]
            self._console.print(workload_table(rows, self._console.width))
        except BrokenPipeError:
            self._out.lost()
        words = example(mesh)
        if words is not None:
            self._out.line(f"\ncall it: {printable(words)}\n")
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            return nullcontext()
        self._live = LiveView(mesh, teller, self._console, verbose=self._verbose)
        return self._live

    def tell(self, event: Event) -> None:
        """One more line, or a change of what is displayed."""
        if self._live is not None:
            self._live.tell(event)
        elif _is_worth(event, self._verbose) and not (isinstance(event, Decided) and self._repeats.is_one(event.seen)):
            self._out.line(composed(self._teller.line(event)))


class _Out:
    """A stream whose reader may leave: then there is nobody to run the mesh for."""

    def __init__(self, out: IO[str], gone: Callable[[], None]) -> None:
        self._out = out
        self._gone = gone

    def line(self, text: str) -> None:
        try:
            self._out.write(text + "\n")
            self._out.flush()
        except (BrokenPipeError, ValueError):
            self.lost()

    def lost(self) -> None:
        self._gone()


def _is_worth(event: Event, verbose: bool) -> bool:
    """Whether to show it: what is merely noted, such as the Envoys' own lines, only to those who want it."""
    return verbose or not isinstance(event, Noted) or event.trouble


def _row(mesh: LocalMesh, site: Site) -> tuple[str, str, str, str, str]:
    ports = [f"{bound}" if bound == port else f"{bound} (for {port})" for port, bound in sorted(site.ports.items())]
    address = ", ".join(f"{site.address}:{port}" if not place else f":{port}" for place, port in enumerate(ports))
    apps = list(dict.fromkeys(application_of(site, port) for port in sorted(site.apps)))
    policies = len(mesh.authority.engine.attached(site.workload))
    identity = identity_of(mesh.authority.world.workloads[site.workload], mesh.settings)
    return site.workload, address or site.address, ", ".join(apps) or "none", identity or "none", str(policies)


def example(mesh: LocalMesh) -> str | None:
    """A call that somebody can make, one that a policy allows if there is such a one soon; None without any port."""
    world, found, tried = mesh.authority.world, None, 0
    accounts = sorted({f"sa:{one.namespace}/{one.service_account}" for one in world.workloads.values() if one.is_pod})
    for key, site in sorted(mesh.sites.items()):
        workload = world.workloads[key]
        for port in sorted(site.ports):
            for account in (one for one in accounts if one != f"sa:{workload.namespace}/{workload.service_account}"):
                question = Question(account, f"pod:{workload.namespace}/{workload.name}", port, "GET", "/", headers={})
                tried += 1
                found = found or question
                if tried > _TRIED:
                    return _words(found, mesh)
                try:
                    decision = mesh.authority.decide(question)
                except QuestionError:
                    continue
                if decision.allowed and decision.policy is not None:
                    return _words(question, mesh)
    return _words(found, mesh) if found is not None else None


def _words(question: Question, mesh: LocalMesh) -> str:
    name = "" if mesh.options.name == DEFAULT_NAME else f" --name {mesh.options.name}"
    return f"eastgate call{name} --from {question.source} --to {question.to} --port {question.port} /"
