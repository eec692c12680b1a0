"""The tour of a gateway for agents: real MCP servers behind a real Envoy, and calls of their tools.

Every call goes through Envoy, and the tour also asks the engine. Then an agent gets a tool and loses it again, while
everything runs. The tour fails if an answer is unexpected, or if Envoy and the engine differ. Run it with `make demo`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import eastgate
from eastgate import Question
from eastgate.authority.sources.files import FileSource
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.local.calls import CallResult, McpRequest, make_calls
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.local.reloading import Reloading

HERE = Path(__file__).parent
LIMIT = 100
SERVERS = ("agents/tickets", "agents/ledger", "agents/limits")
Arguments = Mapping[str, str | int]

CALLS: list[tuple[str, str, str, Arguments, str]] = [
    ("Support reads the tickets", "support", "tickets/list", {}, "allow"),
    ("… and answers a ticket", "support", "tickets/answer", {"ticket": 17, "text": "soon"}, "allow"),
    ("… but may not close it, by the tickets' own policy", "support", "tickets/close", {"ticket": 17}, "deny"),
    ("Support refunds 40", "support", "ledger/refund", {"amount": 40}, "allow"),
    ("… but not 4000, which is beyond the limits", "support", "ledger/refund", {"amount": 4000}, "deny"),
    ("`list` of the ledger is another tool", "support", "ledger/list", {}, "deny"),
    ("The analyst may call that tool", "analyst", "ledger/list", {}, "allow"),
    ("… but may not export during the audit", "analyst", "ledger/export", {}, "deny"),
    ("… and may not use tickets", "analyst", "tickets/list", {}, "deny"),
    ("An agent that no rule lists", "stranger", "tickets/list", {}, "deny"),
]
LISTS = [
    ("support", "tickets", ["answer", "list"]),
    ("support", "ledger", ["refund"]),
    ("analyst", "ledger", ["list"]),
]


class Tour:
    """The steps of the tour, with the count of wrong answers."""

    def __init__(self, console: Console, mesh: LocalMesh, manifests: Path, files: FileSource) -> None:
        self.console = console
        self.mesh = mesh
        self.manifests = manifests
        self.reloading = Reloading(mesh, files)
        self.asked = self.wrong = 0

    async def call_all(self, calls: list[tuple[str, str, str, Arguments, str]]) -> None:
        """Print a row for each call: the verdicts of the gateway and the engine, and the answer to the agent."""
        table = Table(box=None, pad_edge=False)
        for title in ("a real call", "tool", "Envoy", "engine", "the agent gets"):
            table.add_column(title, overflow="fold")
        for title, account, tool, arguments, expected in calls:
            server, _, name = tool.partition("/")
            params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
            call = await self._call(account, server, McpRequest("tools/call", params))
            table.add_row(title, tool, *self._row(call, expected))
        self.console.print(table)

    async def _call(self, account: str, server: str, request: McpRequest) -> CallResult:
        question = Question.of(f"sa:agents/{account}", "gateway:agents/tools", host=f"{server}.example", path="/mcp")
        (call,) = await make_calls(self.mesh, question, mcp=request)
        return call

    def _row(self, call: CallResult, expected: str) -> Iterator[str]:
        verdict = "allow" if call.allowed else "deny"
        color = "green" if call.allowed else "red"
        right = self.check(verdict == expected and call.agrees)
        yield f"[{color}]{verdict}[/{color}]" + ("" if right else " [bold]WRONG[/bold]")
        asks = call.allowed != call.decision.allowed
        yield "asks limits" if asks else f"[{color}]{call.decision.verdict}[/{color}]"
        yield _received(call)

    def check(self, right: bool) -> bool:
        """Count an answer, and return whether it is right."""
        self.asked += 1
        self.wrong += not right
        return right

    async def list_all(self) -> None:
        """Print the tools that each agent can list."""
        for account, server, expected in LISTS:
            call = await self._call(account, server, McpRequest("tools/list"))
            result: Any = call.mcp.result if call.mcp is not None and call.mcp.result is not None else {}
            shown = sorted(tool["name"] for tool in result.get("tools", []))
            mark = "" if self.check(shown == expected) else " [bold]WRONG[/bold]"
            self.console.print(f"   {account} sees of {server}: {', '.join(shown)}{mark}")

    async def save(self, old: str, new: str) -> None:
        """Change the policies, and wait until the gateway enforces the change."""
        policies = self.manifests / "policies.yaml"
        text = policies.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise AssertionError(f"the example has changed: {old!r}")
        policies.write_text(text.replace(old, new), encoding="utf-8")
        began = time.monotonic()
        await self.reloading.reload(began)
        self.console.print(f"   enforced after [bold]{1000 * (time.monotonic() - began):.0f} ms[/bold]\n")


def _received(call: CallResult) -> str:
    if call.mcp is None:
        return f"status {call.called.status}"
    if call.mcp.error is not None:
        return f"error {call.mcp.error.code}: {call.mcp.error.message}"
    result: Any = call.mcp.result or {}
    return "".join(block.get("text", "") for block in result.get("content", []))


@contextmanager
def servers() -> Iterator[dict[str, SocketAddress]]:
    """Run the MCP servers, and yield their addresses."""
    ports = [_free_port() for _ in SERVERS]
    command = [sys.executable, str(HERE / "servers.py"), str(LIMIT), *map(str, ports)]
    process = subprocess.Popen(command)  # noqa: S603 - our own
    try:
        while not all(map(_listens, ports)):
            if process.poll() is not None:
                raise AssertionError("the servers ended")
            time.sleep(0.05)
        yield {name: SocketAddress("127.0.0.1", port) for name, port in zip(SERVERS, ports, strict=True)}
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


async def main() -> int:
    """Run the whole tour."""
    console = Console()
    console.width = max(console.width, 104)
    with tempfile.TemporaryDirectory() as folder, servers() as apps:
        manifests = Path(shutil.copytree(HERE / "manifests", Path(folder) / "manifests"))
        options = MeshOptions(name=f"agents-tour-{os.getpid()}", apps=apps)
        began = time.monotonic()
        files = FileSource([manifests])
        async with LocalMesh(files.read, None, options) as mesh:
            console.print(
                f"[bold]eastgate[/bold] {eastgate.__version__}: a gateway for agents, two MCP servers behind it, "
                f"{len(mesh.authority.policies)} policies, up after {time.monotonic() - began:.1f} s\n"
            )
            tour = Tour(console, mesh, manifests, files)
            await _go(tour)
    console.print(f"\n{tour.asked - tour.wrong} of {tour.asked} answers as expected")
    return 1 if tour.wrong else 0


async def _go(tour: Tour) -> None:
    say = tour.console.print
    await tour.call_all(CALLS)
    say("\n[bold]Agents see the tools that they may call, and no others:[/bold]")
    await tour.list_all()
    say("\n[bold]A policy is changed:[/bold] support may now close tickets (tools: \\[list, answer, close])")
    await tour.save("tools: [list, answer]}", "tools: [list, answer, close]}")
    await tour.call_all([("Support closes a ticket", "support", "tickets/close", {"ticket": 17}, "allow")])
    say("\n[bold]And back:[/bold] the tool is taken away again")
    await tour.save("tools: [list, answer, close]}", "tools: [list, answer]}")
    await tour.call_all([("Support closes another", "support", "tickets/close", {"ticket": 18}, "deny")])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
