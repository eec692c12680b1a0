"""The three listeners of a port, one behind the other.

    inbound/PORT      where callers connect: ends TLS, and notes who is calling
    connections/PORT  decides who may connect: every caller has a filter chain of its own, and without one there is no
                      way in. Taking the chain away closes the caller's connections, and nobody else's
    requests/PORT     decides HTTP requests one by one
    app/PORT          the application

Filter chains of callers who are let in say nothing about policies: they stay the same, and their connections open, for
as long as the caller may connect, whichever rule it is that says so. Callers whom nobody knows share a chain, until a
policy names one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from envoy.config.listener.v3 import listener_components_pb2, listener_pb2
from google.protobuf.wrappers_pb2 import StringValue

from eastgate.policy import Not, Predicate
from eastgate.targets.envoy import ByCaller, Caller, Choice, Node, PortPlan, Verdict
from eastgate.xds.logs import connection_log, denial_log, handshake_log, request_log
from eastgate.xds.matching import ADDRESS_KEY, NOBODY, PEER_KEY, SOURCE_KEY, by_protocol, caller_matcher
from eastgate.xds.packing import packed, serialized
from eastgate.xds.rbac import ATTRIBUTES, AUDIT, CONNECTIONS, REQUESTS, filter_name
from eastgate.xds.server.resources import LISTENER, Resource
from eastgate.xds.tokens import TokenIdentity, token_filter
from eastgate.xds.typed import ADS, Plain, discovered, filter_, message, struct, typed

__all__ = ["TLS_CONTEXT_SECRETS", "Door", "inbound", "port_listeners"]

TLS_CONTEXT_SECRETS = ("svid", "trust")
_DETECTION = "1s"  # how long a silent client is waited for, before it is taken to speak something else than HTTP
_NETWORK = "envoy.extensions.filters.network"
_HTTP = "envoy.extensions.filters.http"
_REPLIES = {0: (403, "forbidden\n"), 400: (400, "bad request\n"), 403: (403, "forbidden\n"), 404: (404, "not found\n")}


@dataclass(frozen=True, slots=True)
class Door:
    """Where a port of a workload is to be reached, and how callers without a certificate may be known.

    A certificate comes first. `by_address` are identities by source address, of callers who come without TLS; `tokens`
    are those of callers of whom neither is known.
    """

    workload: str
    address: str
    port: int
    bound: int
    by_address: tuple[tuple[str, str], ...] = ()
    tokens: TokenIdentity | None = None


def port_listeners(door: Door, plan: PortPlan) -> Iterator[Resource]:
    """The listeners of a port."""
    before, behind = _fixed(door)
    yield before
    yield Resource(LISTENER, f"connections/{door.port}", serialized(_connections(door, plan)), plan.policies)
    if plan.reads_http:
        yield behind


@lru_cache(maxsize=4096)
def _fixed(door: Door) -> tuple[Resource, Resource]:
    """The listeners of a port that no policy changes."""
    return (
        Resource(LISTENER, f"inbound/{door.port}", serialized(inbound(door))),
        Resource(LISTENER, f"requests/{door.port}", serialized(_requests(door))),
    )


# Where callers connect


def inbound(door: Door) -> Any:
    """Ends TLS and notes who is calling. What a client sends in a header is never who it is."""
    socket = {"socket_address": {"address": door.address, "port_value": door.bound}}
    secrets = [{"name": name, "sds_config": ADS} for name in TLS_CONTEXT_SECRETS]
    tls = typed(
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        require_client_certificate=True,
        disable_stateless_session_resumption=True,
        disable_stateful_session_resumption=True,
        common_tls_context={
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "alpn_protocols": ["h2", "http/1.1"],
            "tls_certificate_sds_secret_configs": secrets[:1],
            "validation_context_sds_secret_config": secrets[1],
        },
    )
    known = [
        {
            "name": f"address/{address}",
            "filter_chain_match": {"transport_protocol": "raw_buffer", "source_prefix_ranges": [_host(address)]},
            "filters": _outer(door, identity, tls=False),
        }
        for address, identity in door.by_address
    ]
    plain = {
        "name": f"inbound/{door.port}",
        "address": socket,
        "listener_filters": [filter_("tls", typed("envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"))],
        "listener_filters_timeout": _DETECTION,
        "continue_on_listener_filters_timeout": True,
        "access_log": handshake_log(door.workload, door.port),
        "filter_chains": [
            {
                "name": "tls",
                "filter_chain_match": {"transport_protocol": "tls"},
                "transport_socket": filter_("tls", tls),
                "transport_socket_connect_timeout": "5s",
                "filters": _outer(door, "%DOWNSTREAM_PEER_URI_SAN%", tls=True),
            },
            *known,
            {
                "name": "plain",
                "filter_chain_match": {"transport_protocol": "raw_buffer"},
                "filters": _outer(door, NOBODY, tls=False),
            },
        ],
        "default_filter_chain": {"name": "silent", "filters": _outer(door, NOBODY, tls=False)},
    }
    return message(listener_pb2.Listener, plain)


def _host(address: str) -> Plain:
    return {"address_prefix": address, "prefix_len": 128 if ":" in address else 32}


def _outer(door: Door, identity: str, *, tls: bool) -> list[Plain]:
    when = "on_downstream_tls_handshake" if tls else "on_new_connection"
    note = [
        _note(PEER_KEY, identity),
        _note(ADDRESS_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%"),
        _note(SOURCE_KEY, "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"),
    ]
    late: Plain = {"upstream_connect_mode": "ON_DOWNSTREAM_TLS_HANDSHAKE", "max_early_data_bytes": 8192} if tls else {}
    return [
        filter_("caller", struct(f"{_NETWORK}.set_filter_state.v3.Config", **{when: note})),
        *(discovered(filter_name(door.port, one), f"{_NETWORK}.rbac.v3.RBAC") for one in (CONNECTIONS, AUDIT)),
        filter_(
            "proxy",
            typed(
                f"{_NETWORK}.tcp_proxy.v3.TcpProxy",
                stat_prefix=f"inbound/{door.port}",
                cluster=f"connections/{door.port}",
                access_log=connection_log(door.workload, door.port),
                **late,
            ),
        ),
    ]


def _note(key: str, text: str) -> Plain:
    """A hashable text, or Envoy would share connections behind this listener among callers."""
    return {
        "object_key": key,
        "factory_key": "envoy.hashable_string",
        "shared_with_upstream": "TRANSITIVE",
        "format_string": {"text_format_source": {"inline_string": text}},
    }


# Who may connect


def _connections(door: Door, plan: PortPlan) -> Any:
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
            "listener_filters_timeout": _DETECTION,
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
        found = {caller: self._node(node, caller, leads_to, ()) for caller, node in decided.items()}
        return ByCaller(
            {str(caller): node for caller, node in found.items() if str(caller) in decided.known},
            {caller: found[caller] for caller in decided.accounts},
            (decided.other_account[0], found[decided.other_account[0]]),
            next(node for caller, node in found.items() if str(caller) == "spiffe://*"),
            next(node for caller, node in found.items() if str(caller) == NOBODY),
        )

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
    config = typed(f"{_NETWORK}.tcp_proxy.v3.TcpProxy", stat_prefix=prefix, cluster=cluster, access_log=log)
    return message(listener_components_pb2.Filter, filter_("proxy", config))


# What each request must pass


def _requests(door: Door) -> Any:
    manager = typed(
        f"{_NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=f"requests/{door.port}",
        codec_type="AUTO",
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="KEEP_UNCHANGED",  # policies that look at paths refuse them
        strip_any_host_port=True,
        strip_trailing_host_dot=True,
        server_header_transformation="PASS_THROUGH",
        generate_request_id=False,
        early_header_mutation_extensions=[_without_envoys_words()],
        request_headers_timeout="10s",
        http_protocol_options={"accept_http_10": True},
        upgrade_configs=[{"upgrade_type": "websocket"}],
        access_log=request_log(door.workload, door.port),
        local_reply_config={"mappers": [_reply(named, *told) for named, told in _REPLIES.items()]},
        http_filters=[
            *([token_filter(door.tokens)] if door.tokens is not None else []),
            discovered(filter_name(door.port, ATTRIBUTES), f"{_HTTP}.set_filter_state.v3.Config"),
            discovered(filter_name(door.port, REQUESTS), f"{_HTTP}.rbac.v3.RBAC"),
            filter_("router", typed(f"{_HTTP}.router.v3.Router", suppress_envoy_headers=True)),
        ],
        rds={"config_source": ADS, "route_config_name": f"requests/{door.port}"},
    )
    chains = [{"name": "requests", "filters": [filter_("http", manager)]}]
    plain = {"name": f"requests/{door.port}", "internal_listener": {}, "filter_chains": chains}
    return message(listener_pb2.Listener, plain)


def _without_envoys_words() -> Plain:
    """Takes away what only Envoy may say to itself: by `x-envoy-original-path` a client would choose its own path."""
    kind = "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation"
    return filter_("words", struct(kind, mutations=[{"remove_on_match": {"key_matcher": {"prefix": "x-envoy-"}}}]))


def _reply(named: int, status: int, body: str) -> Plain:
    """Envoy's RBAC knows one refusal, 403; the name of the verdict tells of another. All replies are alike."""
    kind = "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
    expression = f"response.code_details.startsWith('rbac_access_denied_matched_policy[{named}:')"
    chosen = {"extension_filter": filter_("named", typed(kind, expression=expression))}
    return {"filter": chosen, "status_code": status, "body": {"inline_string": body}}
