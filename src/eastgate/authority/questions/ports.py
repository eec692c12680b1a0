"""Ports that a question gives by name: of a Service, of a container, of a listener."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.authority.questions.callers import workloads_of
from eastgate.cluster import World, ends
from eastgate.cluster.question_errors import BAD_ATTRIBUTE, QuestionError


def port_named(name: str, to: ends.Destination, world: World) -> int:
    """Return the port of a destination that has a name. Raises QuestionError where none has it, or several have."""
    named = sorted(set(_named_ports(to, world)))
    numbers = {port for other, port in named if other == name}
    if len(numbers) == 1:
        return numbers.pop()
    listed = ", ".join(f"{other} ({port})" for other, port in named)
    if numbers:
        raise QuestionError(BAD_ATTRIBUTE, f"{to} has several ports with the name `{name}`", f"write one of {listed}")
    help_ = f"it has {listed}" if listed else "give its number"
    raise QuestionError(BAD_ATTRIBUTE, f"{to} has no port with the name `{name}`", help_)


def _named_ports(to: ends.Destination, world: World) -> Iterator[tuple[str, int]]:
    """Yield the names of ports with their numbers. A pod has those of its containers and of the Services before it."""
    match to:
        case ends.Service() if to.key in world.services:
            yield from ((port.name, port.port) for port in world.services[to.key].ports if port.name)
        case ends.Gateway() if to.key in world.gateways:
            yield from ((listener.name, listener.port) for listener in world.gateways[to.key].listeners)
        case ends.Pod():
            for workload in workloads_of(to, world):
                own = [(port.name, port.number) for port in workload.ports if port.name]
                yield from own
                for service in (world.services[key] for key in world.services_of(workload.key)):
                    for port in service.ports:
                        if port.name and all(port.name != name for name, _ in own):
                            yield from ((port.name, n) for n in world.target_ports(service, port.port, workload))
