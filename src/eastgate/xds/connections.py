"""The listener that decides who may connect: every caller has a filter chain of its own, or there is no way in.

Filter chains of callers who are let in say nothing about policies: they stay the same, and their connections open, for
as long as the caller may connect, whichever rule it is that says so. Callers whom nobody knows share a chain, until a
policy names one of them. Taking a chain away closes the connections on it, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from typing import Any

from envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from google.protobuf.wrappers_pb2 import StringValue

from eastgate.policy import ALWAYS, Predicate
from eastgate.symbolic.callers import CallerCell
from eastgate.symbolic.trees import Entry, choice, flatten
from eastgate.targets.envoy import ByCaller, Node, PortPlan, Verdict
from eastgate.targets.envoy.combining import either
from eastgate.targets.envoy.decisions import NOT_ENFORCED
from eastgate.xds.doors import NETWORK, Door
from eastgate.xds.logs import denial_log, unreachable_log
from eastgate.xds.matching import NO_CALLER, UNFIT, by_protocol, caller_matcher, with_fit_certificate
from eastgate.xds.packing import packed
from eastgate.xds.typed import Plain, filter_, message, typed

__all__ = ["closed_connections", "connections"]


def connections(door: Door, plan: PortPlan) -> Any:
    """The listener that decides who may connect."""
    chains = _Chains(door)
    if plan.raw is None:
        matcher = caller_matcher(chains.named(plan.connect, "app"), _chain)
    else:
        http = caller_matcher(chains.named(plan.connect, "requests"), _chain)
        matcher = by_protocol(http, caller_matcher(chains.named(plan.raw, "app"), _chain))
    plain: Plain = {"name": f"connections/{door.port}", "internal_listener": {}}
    if plan.raw is not None:
        inspector = typed("envoy.extensions.filters.listener.http_inspector.v3.HttpInspector")
        plain |= {
            "listener_filters": [filter_("http", inspector)],
            "listener_filters_timeout": door.detection,
            "continue_on_listener_filters_timeout": True,
        }
    listener: Any = message(listener_pb2.Listener, plain)
    chains.named_closed(NO_CALLER)
    chains.named_closed(UNFIT)
    listener.filter_chains.extend(chains.every())
    listener.filter_chain_matcher.CopyFrom(with_fit_certificate(matcher, _chain))
    return listener


def closed_connections(door: Door) -> Any:
    """Return a listener in place of that of `connections` which lets nobody in. It has as little as can be wrong."""
    chain = _Chains(door)
    chain.named_closed(Verdict(False, 0, NOT_ENFORCED))
    listener: Any = message(listener_pb2.Listener, {"name": f"connections/{door.port}", "internal_listener": {}})
    listener.filter_chains.extend(chain.every())
    return listener


def _chain(to: Any, verdict: Verdict) -> None:
    name = f"closed:{verdict.name}" if verdict in (NO_CALLER, UNFIT) else verdict.who
    to.action.name = "chain"
    to.action.typed_config.CopyFrom(packed(StringValue(value=name)))


def _joined(entries: Iterable[Entry[Verdict]]) -> Iterator[Entry[Verdict]]:
    """Join lines that let in one after the other into one."""
    for allowed, run in groupby(entries, key=lambda entry: entry.end.allowed):
        if allowed:
            lines = list(run)
            yield Entry(either(when for when, _ in lines), lines[-1].end)
        else:
            yield from run


class _Chains:
    """Filter chains: one for each caller that may come in, and one for each reason to be kept out."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._chains: dict[str, Any] = {}
        self._filters: dict[str, Any] = {}  # of those that let in, by where they lead

    def every(self) -> list[Any]:
        """All of them, in the order of their names."""
        return [self._chains[name] for name in sorted(self._chains)]

    def named(self, decided: ByCaller[Node], leads_to: str) -> ByCaller[Node]:
        """Return the same decisions, with the names of filter chains where verdicts were."""
        return decided.map(lambda caller, node: self._node(node, caller, leads_to))

    def _node(self, node: Node, caller: CallerCell, leads_to: str) -> Node:
        """Name the chain of each line. Lines that let in one after the other are one: they lead to the same place.

        A chain is the caller's own. Where the address decides, it is also that of all that was asked about it so far.
        """
        asked = blake2b(digest_size=6)
        tests: list[tuple[Predicate, Node]] = []
        own = self._own(caller, leads_to)
        for when, end in _joined(flatten(node)):
            if when != ALWAYS or tests:
                asked.update(f"{end.allowed} {when}\n".encode())
            suffix = f"?{asked.hexdigest()}" if when != ALWAYS or tests else ""
            name = self._let_in(own + suffix, leads_to) if end.allowed else self.named_closed(end)
            tests.append((when, Verdict(end.allowed, end.status, name)))
        return choice(tests[:-1], tests[-1][1])

    def _own(self, caller: CallerCell, leads_to: str) -> str:
        """Name a caller's chain. Under another name it is another chain: what is on the old one is closed."""
        ended = self._door.ended.get(str(caller)) if leads_to == "requests" else None
        return f"{leads_to}:{caller}" + (f"~{ended}" if ended else "")

    def _let_in(self, name: str, leads_to: str) -> str:
        if name not in self._chains:
            self._chains[name] = self._filter_chain(name, self._open(leads_to))
        return name

    def named_closed(self, verdict: Verdict) -> str:
        """Name the chain that closes at once, and logs why."""
        name = f"closed:{verdict.name}"
        if name not in self._chains:
            door = self._door
            self._chains[name] = self._filter_chain(name, _closing(door.workload, door.port, verdict.name))
        return name

    def _filter_chain(self, name: str, proxy: Any) -> Any:
        return listener_components_pb2.FilterChain(name=name, filters=[proxy])

    def _open(self, leads_to: str) -> Any:
        if leads_to not in self._filters:
            self._filters[leads_to] = _leading(leads_to, self._door.workload, self._door.port)
        return self._filters[leads_to]


@lru_cache(maxsize=4096)
def _leading(leads_to: str, workload: str, port: int) -> Any:
    cluster = f"{leads_to}/{port}"
    return _proxy(cluster, cluster, unreachable_log(workload, port) if leads_to == "app" else [])


@lru_cache(maxsize=4096)
def _closing(workload: str, port: int, name: str) -> Any:
    return _proxy(f"denied/{port}/{name}", "nowhere", denial_log(workload, port, name))


def _proxy(prefix: str, cluster: str, log: list[Plain]) -> Any:
    config = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=prefix, cluster=cluster, access_log=log)
    return message(listener_components_pb2.Filter, filter_("proxy", config))
