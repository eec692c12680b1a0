"""The tour of a small shop through real Envoys, with real mTLS. Run it with `make demo`.

The tour asks every question twice: a proxy, by a real call, and the engine. Then two policies change while everything
runs. The tour fails if an answer is unexpected, or if proxy and engine differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

import eastgate
from eastgate import Question
from eastgate.authority.sources.files import FileSource
from eastgate.control.events import BrokenChange, Enforced, MeshEvent
from eastgate.local.calls import CallResult, make_calls
from eastgate.local.machine.connection import CallConnection, Target
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.local.reloading import Reloading
from eastgate.reports.explain import explain

HERE = Path(__file__).parent
PARTNER = "spiffe://partner.example/ns/shop/sa/settlement"
WEB = "spiffe://cluster.local/ns/shop/sa/web"

TOUR = [
    ("The web front uses the cart", Question.of("sa:shop/web", "pod:shop/cart", port=8080), "allow"),
    (
        "… also through the Service, whose port 80 is 8080",
        Question.of("sa:shop/web", "service:shop/cart", port=80),
        "allow",
    ),
    ("… but not on its metrics port", Question.of("sa:shop/web", "pod:shop/cart", port=9090), "deny"),
    ("A caller without an identity", Question.of("anonymous", "pod:shop/cart", port=8080), "deny"),
    ("Same account name, another namespace", Question.of("sa:sandbox/web", "pod:shop/cart", port=8080), "deny"),
    ("Another trust domain", Question.of("spiffe://evil.example/ns/shop/sa/web", "pod:shop/cart", port=8080), "deny"),
    (
        "The cart charges a card",
        Question.of("sa:shop/cart", "pod:shop/payments", port=8443, method="POST", path="/v1/charges"),
        "allow",
    ),
    (
        "… and may not delete it",
        Question.of("sa:shop/cart", "pod:shop/payments", port=8443, method="DELETE", path="/v1/charges/7"),
        "deny",
    ),
    ("The web front may not reach payments", Question.of("sa:shop/web", "pod:shop/payments", port=8443), "deny"),
    (
        "A partner looks up a charge",
        Question.of(PARTNER, "pod:shop/payments", port=8443, method="GET", path="/v1/charges/7"),
        "allow",
    ),
    (
        "… and leaves it with dot segments",
        Question.of(PARTNER, "pod:shop/payments", port=8443, method="GET", path="/v1/charges/../admin"),
        "deny",
    ),
    ("Prometheus reads metrics", Question.of("sa:monitoring/prometheus", "pod:shop/cart", port=9090), "allow"),
    ("… but not card data", Question.of("sa:monitoring/prometheus", "pod:shop/payments", port=8443), "deny"),
    ("The sandbox may not use the cart", Question.of("pod:sandbox/experiments", "pod:shop/cart", port=8080), "deny"),
    ("… nor a pod without a policy", Question.of("pod:sandbox/experiments", "pod:shop/web", port=8080), "deny"),
    ("Every other caller may see the web front", Question.of("anonymous", "pod:shop/web", port=8080), "allow"),
]

DELETING = TOUR[7][1]
USING = TOUR[0][1]


class Tour:
    """The steps of the tour, with the count of wrong answers."""

    def __init__(self, console: Console, mesh: LocalMesh, manifests: Path) -> None:
        self.console = console
        self.mesh = mesh
        self.policies = manifests / "policies.yaml"
        self.wrong = 0
        self.seen: asyncio.Queue[MeshEvent] = asyncio.Queue()
        mesh.listen(self.seen.put_nowait)

    async def ask_all(self, questions: list[tuple[str, Question, str]]) -> None:
        """Print a row for each question: the verdicts of proxy and engine, the deciding policy, and its line."""
        table = Table(box=None, pad_edge=False)
        for title in ("a real call", "Envoy", "engine", "decided by", "line"):
            table.add_column(title, overflow="fold")
        for title, question, expected in questions:
            for call in await make_calls(self.mesh, question):
                table.add_row(title, *self._row(call, expected))
        self.console.print(table)

    def _row(self, call: CallResult, expected: str) -> Iterator[str]:
        decision = call.decision
        right = call.agrees and decision.verdict == expected
        self.wrong += not right
        color = "green" if call.allowed else "red"
        verdict = "allow" if call.allowed else "deny"
        yield f"[{color}]{verdict}[/{color}] {call.called.status or 'closed'}" + (
            "" if right else " [bold]WRONG[/bold]"
        )
        yield f"[{color}]{decision.verdict}[/{color}]"
        yield decision.policy.partition("/")[2] if decision.policy else "no rule"
        yield f"{Path(decision.span.file).name}:{decision.span.line}" if decision.span else ""

    async def save(self, old: str, new: str) -> None:
        """Change the policies as an editor would, and wait until every proxy enforces the change."""
        text = self.policies.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise AssertionError(f"the shop has changed: {old!r}")
        while not self.seen.empty():
            self.seen.get_nowait()
        self.policies.write_text(text.replace(old, new), encoding="utf-8")
        async with asyncio.timeout(10):
            while not isinstance(event := await self.seen.get(), Enforced):
                if isinstance(event, BrokenChange):
                    raise AssertionError(f"the change has errors: {event.diagnostics}")
        self.console.print(f"   saved, and enforced after [bold]{event.milliseconds:.0f} ms[/bold]\n")

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[CallConnection]:
        """Yield a connection from the web front to the cart."""
        site = self.mesh.sites["shop/cart"]
        tls = await self.mesh.certificates.context(WEB)
        target = Target(site.address, site.ports[8080])
        async with await CallConnection.open(target, tls=tls, source_address=self.mesh.own_address) as connection:
            yield connection


async def main() -> int:
    """Run the whole tour."""
    console = Console()
    console.width = max(console.width, 104)
    with tempfile.TemporaryDirectory() as folder:
        manifests = Path(shutil.copytree(HERE / "manifests", Path(folder) / "manifests"))
        files = FileSource([manifests])
        began = time.monotonic()
        async with LocalMesh(files.read, options=MeshOptions(name=f"tour-{os.getpid()}")) as mesh:
            console.print(
                f"[bold]eastgate[/bold] {eastgate.__version__}: {len(mesh.sites)} workloads of {HERE.name}/manifests, "
                f"an Envoy beside each, {len(mesh.authority.policies)} policies, "
                f"up after {time.monotonic() - began:.1f} s\n"
            )
            watching = asyncio.create_task(Reloading(mesh, files).run())
            tour = Tour(console, mesh, manifests)
            try:
                await _go(tour)
            finally:
                watching.cancel()
    asked = len(TOUR) + 4
    console.print(f"\n{asked - tour.wrong} of {asked} answers as expected, from Envoy and from the engine")
    return 1 if tour.wrong else 0


async def _go(tour: Tour) -> None:
    say = tour.console.print
    await tour.ask_all(TOUR)
    say("\n[bold]A policy is changed:[/bold] the cart may now delete charges (requests, methods: [GET, DELETE])")
    await tour.save("methods: [GET]", "methods: [GET, DELETE]")
    await tour.ask_all([("The cart deletes a charge", DELETING, "allow")])
    say("\n[bold]And another:[/bold] the cart is for the checkout only, while the web front is connected with it")
    async with tour.connected() as connection:
        await tour.save("serviceAccounts: [web]", "serviceAccounts: [checkout]")
        began = time.monotonic()
        closed = await connection.peer_closed(5)
        tour.wrong += not closed
        after = f"was closed {1000 * (time.monotonic() - began):.0f} ms later" if closed else "[bold]STAYED OPEN[/bold]"
    say(f"   the web front's open connection {after}\n")
    await tour.ask_all(
        [
            ("The web front uses the cart", USING, "deny"),
            ("The checkout does", Question.of("sa:shop/checkout", "pod:shop/cart", port=8080), "allow"),
        ]
    )
    say("\n[bold]Why?[/bold]\n")
    color = tour.console.is_terminal and not tour.console.no_color
    print(explain(tour.mesh.authority.decide(USING), color=color))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
