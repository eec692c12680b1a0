"""The cost of connection rules for a new connection. Every caller that they name has a filter chain."""

from __future__ import annotations

from random import Random
from statistics import median

from bench.enforcement.envoys import OTHERS, UNDER_TEST, on_cores, until
from bench.enforcement.listeners import NODE, connection_resources
from bench.enforcement.load import Measured, accepts, connections, request
from bench.enforcement.origin import ClientSocket
from bench.enforcement.plane import Plane
from bench.enforcement.rules import identity
from bench.report import Section

__all__ = ["run"]

_FIRST_PORT = 8001


async def run(sizes: tuple[int, ...], rounds: int, seconds: float) -> Section:
    """Measure connections without a policy, and with each number of identities."""
    found: dict[int, list[Measured]] = {rules: [] for rules in (0, *sizes)}
    async with Plane() as plane:
        address = plane.addresses([NODE])[NODE]
        resources = plane.secrets()
        clients = {}
        for number, rules in enumerate(found):
            port = _FIRST_PORT + number
            resources += connection_resources(address, port, rules, plane.app)
            clients[rules] = ClientSocket(
                plane.folder / str(port), address, port, plane.svid(identity(max(rules, 1) - 1))
            )
        plane.store.put(NODE, resources)
        await plane.start([NODE], UNDER_TEST)
        plane.start_origin(clients.values(), OTHERS)
        await plane.listening((address, client.port) for client in clients.values())
        until(lambda: all(accepts(client.socket) for client in clients.values()), "the origin does not listen")
        with on_cores(OTHERS):
            for number in range(rounds):
                for rules in Random(number).sample(sorted(found), len(found)):
                    envoy = plane.envoys[NODE]
                    found[rules].append(connections(clients[rules].socket, request("/"), seconds, envoy))
    section = Section(
        "Enforcement: new connections",
        "New connections with mTLS per second, each with one request to an application, and CPU us of the Envoy under "
        "test for each: one worker on a core of its own. Each rule lets one identity connect; the caller has the "
        "identity of the last. Medians of rounds in turns. The origin does as many handshakes on one core, so "
        "that the CPU says more than the rate. of none: rate and CPU as parts of those without a policy.",
        ("identities", "connections/s", "of none", "us", "of none"),
    )
    for rules, some in found.items():
        rate, cpu = median(one.rate for one in some), median(one.cpu_us for one in some)
        parts = [
            median(one.rate / none.rate for one, none in zip(some, found[0], strict=True)),
            median(one.cpu_us / none.cpu_us for one, none in zip(some, found[0], strict=True)),
        ]
        section.rows.append([rules, rate, parts[0], cpu, parts[1]])
        section.points.append({"connecting": rules, "rate": rate, "part": parts[0], "cpu_us": cpu, "cpu": parts[1]})
    return section
