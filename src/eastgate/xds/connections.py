"""The listener that decides who may connect: every caller has a filter chain of its own, or there is no way in.

Filter chains of callers who are let in say nothing about policies: they stay the same, and their connections open, for
as long as the caller may connect, whichever rule it is that says so. Callers whom nobody knows share a chain, until a
policy names one of them. Taking a chain away closes the connections on it, and no others.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any

from envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from google.protobuf.wrappers_pb2 import StringValue

from eastgate.policy import Not, Predicate
from eastgate.targets.envoy import ByCaller, Caller, Choice, Node, PortPlan, Verdict
from eastgate.xds.doors import NETWORK, Door
from eastgate.xds.logs import denial_log
from eastgate.xds.matching import by_protocol, caller_matcher
from eastgate.xds.packing import packed
from eastgate.xds.typed import Plain, filter_, message, typed

__all__ = ["connections"]


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
    chains.named_closed("no-caller", Verdict(False, 0, "no-caller"))
    listener.filter_chains.extend(chains.every())
    listener.filter_chain_matcher.CopyFrom(matcher)
    return listener


def _chain(to: Any, verdict: Verdict) -> None:
    name = verdict.who if ":" in verdict.who else f"closed:{verdict.who}"
    to.action.name = "chain"
    to.action.typed_config.CopyFrom(packed(StringValue(value=name)))


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
        """The same tree, with the names of filter chains where verdicts were."""
        return decided.map(lambda caller, node: self._node(node, caller, leads_to, ()))

    def _node(self, node: Node, caller: Caller, leads_to: str, asked: tuple[Predicate, ...]) -> Node:
        if isinstance(node, Choice):
            tests = []
            for when, inner in node.tests:
                tests.append((when, self._node(inner, caller, leads_to, (*asked, when))))
                asked = (*asked, Not(when))
            return Choice(tuple(tests), self._node(node.otherwise, caller, leads_to, asked))
        name = self._let_in(caller, leads_to, asked) if node.allowed else self.named_closed(node.name, node)
        return Verdict(node.allowed, node.status, name)

    def _let_in(self, caller: Caller, leads_to: str, asked: tuple[Predicate, ...]) -> str:
        """A chain of the caller's own. Where the address decides, also of what was asked about it."""
        name = f"{leads_to}:{caller}"
        if leads_to == "requests" and (ended := self._door.ended.get(str(caller))):
            name += f"~{ended}"  # a chain with another name is another chain: what is on this one is closed
        if asked:
            name += "?" + blake2b("\n".join(map(str, asked)).encode(), digest_size=6).hexdigest()
        if name not in self._chains:
            self._chains[name] = self._filter_chain(name, self._open(leads_to))
        return name

    def named_closed(self, reason: str, verdict: Verdict) -> str:
        """A chain that closes at once, and logs why."""
        name = f"closed:{reason}"
        if name not in self._chains:
            door = self._door
            self._chains[name] = self._filter_chain(name, _closing(door.workload, door.port, reason, verdict.name))
        return name

    def _filter_chain(self, name: str, proxy: Any) -> Any:
        return listener_components_pb2.FilterChain(name=name, filters=[proxy])

    def _open(self, leads_to: str) -> Any:
        if leads_to not in self._filters:
            self._filters[leads_to] = _leading(f"{leads_to}/{self._door.port}")
        return self._filters[leads_to]


@lru_cache(maxsize=4096)
def _leading(cluster: str) -> Any:
    return _proxy(cluster, cluster, [])


@lru_cache(maxsize=4096)
def _closing(workload: str, port: int, reason: str, name: str) -> Any:
    return _proxy(f"denied/{port}/{reason}", "nowhere", denial_log(workload, port, name))


def _proxy(prefix: str, cluster: str, log: list[Plain]) -> Any:
    config = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=prefix, cluster=cluster, access_log=log)
    return message(listener_components_pb2.Filter, filter_("proxy", config))
