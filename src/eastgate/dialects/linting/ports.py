"""Ports of policies that none of their workloads exposes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import Workload
from eastgate.dialects.base import Policy
from eastgate.dialects.linting import codes
from eastgate.dialects.linting.context import Workloads, enumerated
from eastgate.dialects.linting.findings import Finding
from eastgate.dialects.linting.nearest import list_some


def unexposed_ports(
    policy: Policy,
    ports: Sequence[tuple[int | str, Callable[[], Span | None]]],
    workloads: Workloads,
    also: Callable[[Workload], Collection[int | str]] = lambda _workload: (),
) -> Iterator[Finding]:
    """Report each port, by number or name, that no workload of a policy declares.

    Every port comes with a function that finds its text. `also` returns the ports that a workload exposes beside those
    that it declares.
    """
    keys = workloads.workloads_of.get(policy.ref, []) if ports else []
    selected = [workloads.workload(key) for key in keys]
    if not selected or any(not workload.ports for workload in selected):
        return  # a workload that declares no ports may listen on any
    declared = [port for workload in selected for port in (*workload.ports, *workload.init_ports)]
    numbers = {port.number for port in declared}
    names = {port.name for port in declared if port.name}
    exposed = {*numbers, *names, *(port for workload in selected for port in also(workload))}
    for port, find_span in ports:
        if port not in exposed:
            message = f"{policy.ref} is about port {port}, which {_name_with_verb(selected)} not expose"
            suggestions = {str(number) for number in numbers}
            help_ = f"write one of {list_some(suggestions | (names if isinstance(port, str) else set()))}"
            mapped = _service_port(port, selected, workloads)
            if mapped is not None:
                help_ = f"{port} is the port of Service {mapped[0]}; write that of its pods, {mapped[1]}"
            yield Finding(codes.PORT_NOT_EXPOSED, message, find_span(), help_, (str(policy.ref), *keys[:3]))


def _name_with_verb(selected: list[Workload]) -> str:
    return f"{enumerated([workload.key for workload in selected])} {'does' if len(selected) == 1 else 'do'}"


def _service_port(port: int | str, selected: list[Workload], workloads: Workloads) -> tuple[str, int] | None:
    """Find the Service that has this port, where its pods have another."""
    for workload in selected[:20]:
        for key in workloads.world.services_of(workload.key):
            service = workloads.world.services[key]
            targets = workloads.world.target_ports(service, port, workload) if isinstance(port, int) else ()
            if targets:
                return key, targets[0]
    return None
