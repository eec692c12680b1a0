"""`eastgate graph` against np-guard's `netpolicy list`, each as a command on manifests of the same connectivity."""

from __future__ import annotations

import csv
import io
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.programs import find

from bench.lanes import MismatchError
from bench.reach.connectivity import PORTS, Connectivity, generate, write
from bench.report import Section

__all__ = ["run", "seconds_of_graph"]

DestinationVerdicts = Mapping[tuple[str, str], frozenset[int]]
_EVERYTHING = "All Connections"


def run(*, quick: bool) -> Section:
    """Run both commands on each size."""
    section = Section(
        "Who reaches whom, beside a peer",
        "CPU seconds of the command in a process of its own, from JSON manifests to JSON that lists all connections. "
        "np-guard's netpol-analyzer reads NetworkPolicies, Eastgate AuthorizationPolicies of the same connectivity; "
        "both lists were compared with the expected connections.",
        ("applications", "policies", "connections", "eastgate s", "netpol-analyzer s", "times"),
    )
    peer = find("netpolicy")
    for apps in (20,) if quick else (50, 100, 200, 400):
        connectivity = generate(apps)
        with TemporaryDirectory() as folder:
            ours, theirs = Path(folder) / "ours", Path(folder) / "theirs"
            write(connectivity, ours, theirs)
            took = seconds_of_graph(connectivity, ours)
            listed = [str(peer), "list", "-q", "-o", "csv", "--dirpath", str(theirs)]
            peer_took = _compare(connectivity, listed, _of_list)
        size = len(connectivity.expected())
        section.rows.append([apps, len(connectivity.grants), size, took, peer_took, peer_took / took])
        section.points.append({"applications": apps, "seconds": took, "peer_seconds": peer_took})
    return section


def seconds_of_graph(connectivity: Connectivity, manifests: Path) -> float:
    """Return the CPU seconds of `eastgate graph`. Raises MismatchError if its list is wrong."""
    graph = [sys.executable, "-m", "eastgate", "graph", "-o", "json", "-f", str(manifests)]
    return _compare(connectivity, graph, _of_graph)


def _compare(connectivity: Connectivity, command: Sequence[str], read: Callable[[str], DestinationVerdicts]) -> float:
    """Run a command, compare its output with the expected connections, and return its CPU seconds."""
    before = _children()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    took = _children() - before
    reached = read(done.stdout)
    expected = connectivity.expected()
    for pair in {*reached, *expected}:
        if reached.get(pair, frozenset()) != expected.get(pair, frozenset()):
            raise MismatchError(f"{command[0]}: {pair}: {reached.get(pair)} instead of {expected.get(pair)}")
    return took


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _of_graph(text: str) -> DestinationVerdicts:
    reached: dict[tuple[str, str], frozenset[int]] = {}
    for edge in json.loads(text)["edges"]:
        caller, to = edge["from"].removeprefix("sa:"), edge["to"].removeprefix("pod:")
        if edge["from"].startswith("sa:") and edge["verdict"] == "allow" and caller != to and edge["port"] in PORTS:
            reached[caller, to] = reached.get((caller, to), frozenset()) | {edge["port"]}
    return reached


def _of_list(text: str) -> DestinationVerdicts:
    rows = csv.DictReader(io.StringIO(text))
    ends = ((_app(row["src"]), _app(row["dst"]), row["conn"]) for row in rows)
    return {(caller, to): _ports(conn) for caller, to, conn in ends if caller and to}


def _app(end: str) -> str | None:
    return end.removesuffix("[Deployment]") if end.endswith("[Deployment]") else None


def _ports(conn: str) -> frozenset[int]:
    """Read ports such as `TCP 80,443,8000-8100`."""
    if conn == _EVERYTHING:
        return frozenset(PORTS)
    ranges = [part.partition("-") for part in conn.removeprefix("TCP ").split(",")]
    return frozenset(port for port in PORTS if any(int(low) <= port <= int(high or low) for low, _, high in ranges))
