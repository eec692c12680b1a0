"""The listener that decides about connections: every allowed caller has a filter chain of its own.

Filter chains of allowed callers do not depend on the deciding rule. They stay the same, and their connections open,
until the caller may no longer connect. Unknown callers share a chain, until a policy names one of them. Removing a
chain closes its connections, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import groupby
from typing import Any

from envoy.config.core.v3.base_pb2 import Metadata
from envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from google.protobuf.wrappers_pb2 import StringValue

from eastgate.envoy.config.inbound_listener import note
from eastgate.envoy.config.inbound_port import NETWORK, InboundPort
from eastgate.envoy.config.logs import denial_log, log_metadata, sent_connection_log, unreachable_log
from eastgate.envoy.config.matching import (
    BESIDE,
    NO_CALLER,
    UNFIT,
    by_protocol,
    caller_matcher,
    only_through,
    with_fit_certificate,
)
from eastgate.envoy.config.packing import pack
from eastgate.envoy.config.predicates import ADDRESS_KEY, CERTIFICATE_KEY, PEER_KEY, SNI_KEY, SOURCE_KEY
from eastgate.envoy.config.typed import Plain, filter_, message, struct, typed
from eastgate.envoy.plan import ByCaller, Node, PortPlan, ProxyVerdict
from eastgate.envoy.plan.combining import either
from eastgate.envoy.plan.decisions import NOT_ENFORCED
from eastgate.ir import ALWAYS, InNetwork, Is, Predicate
from eastgate.ir.attributes import ADDRESS
from eastgate.ir.symbolic.callers import CallerCell
from eastgate.ir.symbolic.trees import Entry, choice, flatten


def connection_listener(inbound: InboundPort, plan: PortPlan) -> Any:
    """Build the listener that decides about connections."""
    chains = _Chains(inbound)
    if plan.raw is None:
        matcher = caller_matcher(chains.name_chains(plan.connect, "app"), _chain)
    else:
        http = caller_matcher(chains.name_chains(plan.connect, "requests"), _chain)
        matcher = by_protocol(http, caller_matcher(chains.name_chains(plan.raw, "app"), _chain))
    plain = _plain_listener(inbound)
    if plan.raw is not None:
        inspector = typed("envoy.extensions.filters.listener.http_inspector.v3.HttpInspector")
        plain |= {
            "listener_filters": [filter_("http", inspector)],
            "listener_filters_timeout": inbound.detection,
            "continue_on_listener_filters_timeout": True,
        }
    listener: Any = message(listener_pb2.Listener, plain)
    chains.name_closing_chain(NO_CALLER)
    chains.name_closing_chain(UNFIT)
    domain = inbound.trust_domain if inbound.handshakes else None
    matcher = with_fit_certificate(matcher, _chain, domain)
    if inbound.waypoint is not None:
        chains.name_closing_chain(BESIDE)
        matcher = only_through(inbound.waypoint, matcher, _chain)
    listener.filter_chains.extend(chains.every())
    listener.filter_chain_matcher.CopyFrom(matcher)
    return listener


def closing_connection_listener(inbound: InboundPort) -> Any:
    """Build a listener in place of `connection_listener` that refuses all callers. It is as simple as possible."""
    chain = _Chains(inbound)
    chain.name_closing_chain(ProxyVerdict(False, 0, NOT_ENFORCED))
    listener: Any = message(listener_pb2.Listener, _plain_listener(inbound))
    listener.filter_chains.extend(chain.every())
    return listener


def _plain_listener(inbound: InboundPort) -> Plain:
    metadata = {"metadata": log_metadata(port=str(inbound.port))} if inbound.sends_logs else {}
    return {"name": f"connections/{inbound.name}", "internal_listener": {}, **metadata}


def _chain(to: Any, verdict: ProxyVerdict) -> None:
    name = f"closed:{verdict.name}" if verdict in (NO_CALLER, UNFIT, BESIDE) else verdict.who
    to.action.name = "chain"
    to.action.typed_config.CopyFrom(pack(StringValue(value=name)))


def _join_allowed(entries: Iterable[Entry[ProxyVerdict]]) -> Iterator[Entry[ProxyVerdict]]:
    """Join consecutive allowing entries into one, except those of a single address."""
    for (allowed, host), run in groupby(entries, key=lambda entry: (entry.end.allowed, _only_host(entry.when))):
        if allowed and host is None:
            lines = list(run)
            yield Entry(either(when for when, _ in lines), lines[-1].end)
        else:
            yield from run


def _only_host(predicate: Predicate) -> str | None:
    """Return the only source address for which a predicate holds; None for none or several."""
    match predicate:
        case Is(attribute, InNetwork((network,))) if attribute == ADDRESS and network.num_addresses == 1:
            return str(network.network_address)
        case _:
            return None


class _Chains:
    """Filter chains: one for each allowed caller, and one for each reason of a refusal."""

    def __init__(self, inbound: InboundPort) -> None:
        self._inbound = inbound
        self._chains: dict[str, Any] = {}
        self._filters: dict[str, Any] = {}  # filters of the allowing chains, by the cluster that they lead to

    def every(self) -> list[Any]:
        """Return all chains, in the order of their names."""
        return [self._chains[name] for name in sorted(self._chains)]

    def name_chains(self, decided: ByCaller[Node], leads_to: str) -> ByCaller[Node]:
        """Return the same decisions, with the names of filter chains as verdicts."""
        refusals: dict[ProxyVerdict, Node] = {}  # most callers are refused for one reason, by one chain

        def named(caller: CallerCell, node: Node) -> Node:
            if not isinstance(node, ProxyVerdict) or node.allowed:
                return self._node(node, caller, leads_to)
            if node not in refusals:
                refusals[node] = self._node(node, caller, leads_to)
            return refusals[node]

        return decided.map(named)

    def _node(self, node: Node, caller: CallerCell, leads_to: str) -> Node:
        """Name the chain of each entry. Consecutive entries that allow are one: they lead to the same cluster.

        A chain belongs to one caller. If the address decides, the chain's name also depends on all tests before it. A
        chain for one address depends on that address alone, so that changes of other entries do not close its
        connections.
        """
        asked = blake2b(digest_size=6)
        tests: list[tuple[Predicate, Node]] = []
        own = self._name_of(caller, leads_to)
        hosts: set[str] | None = set()  # tested addresses; None after any other test
        for when, end in _join_allowed(flatten(node)):
            host = _only_host(when) if hosts is not None else None
            if hosts is not None and host is not None and host not in hosts:
                hosts.add(host)
                asked.update(f"{when}\n".encode())
                suffix = f"@{host}"
            else:
                hosts = None
                if when != ALWAYS or tests:
                    asked.update(f"{end.allowed} {when}\n".encode())
                suffix = f"?{asked.hexdigest()}" if when != ALWAYS or tests else ""
            name = self._name_allowing_chain(own + suffix, leads_to) if end.allowed else self.name_closing_chain(end)
            tests.append((when, ProxyVerdict(end.allowed, end.status, name)))
        return choice(tests[:-1], tests[-1][1])

    def _name_of(self, caller: CallerCell, leads_to: str) -> str:
        """Return the name of a caller's chain. Under a new name, connections on the old chain are closed.

        A workload that gets another waypoint, or loses it, has chains with new names.
        """
        ended = self._inbound.ended.get(str(caller)) if leads_to == "requests" else None
        through = f"{self._inbound.waypoint}>" if self._inbound.waypoint is not None else ""
        return f"{leads_to}:{through}{caller}" + (f"~{ended}" if ended else "")

    def _name_allowing_chain(self, name: str, leads_to: str) -> str:
        if name not in self._chains:
            inbound = self._inbound
            noting = leads_to == "requests" or inbound.at_waypoint
            noted = [_noting_filter(bool(inbound.handshakes), inbound.at_waypoint)] if noting else []
            self._chains[name] = self._filter_chain(name, *noted, self._forwarding_filter(leads_to))
        return name

    def name_closing_chain(self, verdict: ProxyVerdict) -> str:
        """Add the chain that closes a connection at once and logs the reason; return its name."""
        name = f"closed:{verdict.name}"
        if name not in self._chains:
            inbound = self._inbound
            closing = _closing_filter(inbound.workload, inbound.port, verdict.name, sends_logs=inbound.sends_logs)
            chain = self._chains[name] = self._filter_chain(name, closing)
            if inbound.sends_logs:
                chain.metadata.CopyFrom(message(Metadata, log_metadata(decision=verdict.name)))
        return name

    def _filter_chain(self, name: str, *filters: Any) -> Any:
        return listener_components_pb2.FilterChain(name=name, filters=filters)

    def _forwarding_filter(self, leads_to: str) -> Any:
        if leads_to not in self._filters:
            self._filters[leads_to] = _build_forwarding(leads_to, self._inbound)
        return self._filters[leads_to]


@cache
def _noting_filter(of_gateway: bool, at_waypoint: bool) -> Any:
    """Build the filter that notes the caller for the listener that reads HTTP.

    Only the identity is passed further, and at a waypoint the address.

    Connections to the application are distinguished by the notes that are passed further. So callers of one identity
    share connections, and other callers do not.
    """
    further = {PEER_KEY, *((ADDRESS_KEY,) if at_waypoint else ())}
    keys = (ADDRESS_KEY, SOURCE_KEY, *((SNI_KEY, CERTIFICATE_KEY) if of_gateway else ()), PEER_KEY)
    notes = [
        note(key, f"%FILTER_STATE({key}:PLAIN)%") | ({"shared_with_upstream": "TRANSITIVE"} if key in further else {})
        for key in keys
    ]
    config = struct(f"{NETWORK}.set_filter_state.v3.Config", on_new_connection=notes)
    return message(listener_components_pb2.Filter, filter_("caller", config))


@lru_cache(maxsize=4096)
def _build_forwarding(leads_to: str, inbound: InboundPort) -> Any:
    cluster = f"{leads_to}/{inbound.name}"
    log = unreachable_log(inbound.workload, inbound.port) if leads_to == "app" else []
    return _build_tcp_proxy(cluster, cluster, log)


@lru_cache(maxsize=4096)
def _closing_filter(workload: str, port: int, name: str, *, sends_logs: bool) -> Any:
    log = [*denial_log(workload, port, name), *(sent_connection_log() if sends_logs else [])]
    return _build_tcp_proxy(f"denied/{port}/{name}", "nowhere", log)


def _build_tcp_proxy(prefix: str, cluster: str, log: list[Plain]) -> Any:
    config = typed(f"{NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=prefix, cluster=cluster, access_log=log)
    return message(listener_components_pb2.Filter, filter_("proxy", config))
