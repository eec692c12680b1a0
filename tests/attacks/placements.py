"""The placements of enforcement and the attacks on each. A new placement is one more entry of `PLACEMENTS`."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import socket
from collections.abc import Callable, Coroutine, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from eastgate.authority.questions import QuestionError
from eastgate.cluster.ends import Gateway
from eastgate.control.identity import SvidSource
from eastgate.envoy.config.sidecar import OUTBOUND_PORT
from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.local.machine.connection import CallConnection, HttpRequest, Target
from eastgate.local.machine.http1 import Malformed
from eastgate.reading.jwt import KnownKeys
from tests.attacks.application import MARK, Application, Arrived
from tests.attacks.conversing import converse
from tests.attacks.gateway_policies import at_gateway
from tests.attacks.tokens import ISSUER, KEYS
from tests.differential.asking import HTTP_2, Ask, Caller, Http
from tests.differential.bench import Bench
from tests.differential.world import Manifest, pod
from tests.patience import PATIENCE

__all__ = ["HOST", "PLACEMENTS", "Attacked", "Placement", "Trust", "Verdict", "bench", "marked"]

T = TypeVar("T")
HOST = "a"  # the host of the application at every placement; short, since tries have fixed lengths
_TIMEOUT = PATIENCE
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a request: the status (0: none), the arrived request, and the kind of refusal.

    `refused`: not denied by a policy, but refused as a malformed request or without a route.
    """

    status: int
    arrived: Arrived | None
    refused: bool
    log_entry: str = ""


@dataclass(frozen=True, slots=True)
class Trust:
    """The sources of identities: the CA of certificates (a CA of the bench), and the accepted issuer of tokens."""

    source: SvidSource | None = None
    tokens: TokenIdentity | None = None


class Attacked(Protocol):
    """A running placement with one attacker. The application records every request.

    The host of the application is `HOST`. At some placements other hosts have no route.
    """

    application: Application

    def enforce(self, policies: Sequence[Manifest]) -> None:
        """Enforce only these policies, and wait until they are in force."""

    def denial(self, http: Http) -> str | None:
        """Return the reason why the engine denies the attacker's request, or None for an allowed request."""

    def verdicts(self, requests: Sequence[Http]) -> list[Verdict]:
        """Send these requests as the attacker, one after the other, and return their results."""

    def of(self, caller: Caller) -> Attacked:
        """Return the same placement with another attacker, until the policies change."""

    async def open(self, alpn: Sequence[str] = (), *, victim: bool = False) -> CallConnection:
        """Open a connection as the attacker, or as the victim, another client of the same application."""

    def connect(self) -> socket.socket:
        """Connect as the attacker, and send nothing."""

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the event loop of the bench."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A way to run an attacked application. All placements are on one bench.

    `any_host`: the host of a request does not decide its destination. `certificates`, `tokens`: whether the attacker's
    certificate or token gives its identity; otherwise it has a fixed identity, which neither can change. `namespaces`:
    policies there can name all accounts of a namespace at once. `refuses_connections`: policies decide about
    connections, not only requests. `is_gateway`: the placement has routes. `ignored_certificates`: certificates that
    count as none there, if a client certificate is optional.
    """

    name: str
    at: Callable[[Bench], Attacked]
    any_host: bool = True
    certificates: bool = True
    tokens: bool = False
    namespaces: bool = True
    refuses_connections: bool = True
    is_gateway: bool = False
    ignored_certificates: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name


def marked(http: Http) -> tuple[str, Http]:
    """Return a unique mark, and the request with this mark."""
    mark = f"{os.getpid()}-{next(_numbers)}"
    return mark, replace(http, headers=(*http.headers, (MARK, mark)))


def _in_origin_form(http: Http) -> Http:
    """Return a request with an absolute target in the form that servers read: its path, and its host as the Host."""
    whole = re.fullmatch(r"https?://([^/?#]*)(.*)", http.target, re.IGNORECASE | re.DOTALL)
    if whole is None or http.version == HTTP_2:
        return http
    headers = tuple((name, value) for name, value in http.headers if name.lower() != "host")
    return replace(http, target=whole[2], host=whole[1].rpartition("@")[2], headers=headers)


_ACCOUNT = "spiffe://td/ns/a/sa/x"
_VICTIM = Caller("spiffe://td/ns/b/sa/z", "127.0.0.3")
_POD, _PORT, _OTHER = "a/p0", 80, "a/p1"
_GATEWAY, _HTTP, _HTTPS = "gw", 8080, 8443
_API = "gateway.networking.k8s.io/v1"
_WORLD: list[Manifest] = [
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")),
    pod("p0", "a", "server", {"app": "server"}),
    pod("p1", "a", "y", {"app": "client"}),
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": HOST, "namespace": "a"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": _PORT}]},
    },
    {
        "apiVersion": _API,
        "kind": "Gateway",
        "metadata": {"name": _GATEWAY, "namespace": "a"},
        "spec": {
            "gatewayClassName": "eastgate",
            "listeners": [
                {"name": "http", "port": _HTTP, "protocol": "HTTP"},
                {"name": "https", "port": _HTTPS, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "own"}]}},
            ],
        },
    },
    {
        "apiVersion": _API,
        "kind": "HTTPRoute",
        "metadata": {"name": "all", "namespace": "a"},
        "spec": {
            "parentRefs": [{"name": _GATEWAY}],
            "rules": [{"backendRefs": [{"name": HOST, "port": _PORT}]}],
        },
    },
]


class _Sidecar:
    """The sidecar of the application. The attacker connects to it directly."""

    def __init__(self, bench: Bench, attacker: Caller) -> None:
        self.application = bench.application
        self._bench = bench
        self._attacker = attacker
        self.run = bench.run

    def enforce(self, policies: Sequence[Manifest]) -> None:
        self._authority = self._bench.enforce(policies)
        assert not self._bench.rejected, self._bench.rejected[0]

    def of(self, caller: Caller) -> Attacked:
        changed = copy(self)
        changed._attacker = caller
        return changed

    def denial(self, http: Http) -> str | None:
        try:
            decision = self._authority.decide(self._ask(_in_origin_form(http)).question())
        except QuestionError as error:
            return str(error)
        return None if decision.allowed else decision.reason

    def verdicts(self, requests: Sequence[Http]) -> list[Verdict]:
        sent = [marked(http) for http in requests]
        answers = self._bench.ask([self._ask(http) for _, http in sent])
        arrived = {one.mark: one for one in self.application.arrived}
        return [
            Verdict(
                answer.status,
                arrived.get(mark),
                answer.refused_by_proxy or (answer.request is None and not answer.status),
                str(answer.request or answer.connection),
            )
            for (mark, _), answer in zip(sent, answers, strict=True)
        ]

    async def open(self, alpn: Sequence[str] = (), *, victim: bool = False) -> CallConnection:
        caller = _VICTIM if victim else self._attacker
        tls = await self._bench.context(caller, alpn)
        return await CallConnection.open(self._inbound, tls=tls, source_address=caller.address, timeout=_TIMEOUT)

    def connect(self) -> socket.socket:
        entrance, source = self._entrance, (self._attacker.address, 0)
        return socket.create_connection((entrance.address, entrance.port), _TIMEOUT, source)

    @property
    def _inbound(self) -> Target:
        return self._bench.target(self._ask(Http()))

    @property
    def _entrance(self) -> Target:
        """Return the address to which the attacker connects."""
        return self._inbound

    def _ask(self, http: Http) -> Ask:
        return Ask(self._attacker, _POD, _PORT, http)


class _Outbound(_Sidecar):
    """The same sidecar. The attacker is the application of another workload, behind that workload's own sidecar."""

    def __init__(self, bench: Bench, attacker: Caller) -> None:
        self._bench = bench
        super().__init__(bench, self._locate(attacker))

    def _locate(self, attacker: Caller) -> Caller:
        return replace(attacker, address=self._bench.mesh.sites[_OTHER].address)

    def verdicts(self, requests: Sequence[Http]) -> list[Verdict]:
        return self.run(self._verdicts([marked(http) for http in requests]))

    async def _verdicts(self, requests: Sequence[tuple[str, Http]]) -> list[Verdict]:
        slots = asyncio.Semaphore(64)

        async def limited(http: Http) -> tuple[int, bool]:
            async with slots:
                return await self._answer(http)

        answers = await asyncio.gather(*(limited(http) for _, http in requests))
        arrived = {one.mark: one for one in self.application.arrived}
        return [
            Verdict(status, arrived.get(mark), not decided)
            for (mark, _), (status, decided) in zip(requests, answers, strict=True)
        ]

    async def _answer(self, http: Http) -> tuple[int, bool]:
        """Return the status, and whether a policy decided. Other refusals of a proxy have another body."""
        async with await self.open() as connection:
            try:
                if http.version == HTTP_2:  # a malformed request gets no answer
                    status = await converse(connection, http, _TIMEOUT)
                    return status, status in (200, 401, 403)
                connection.prepare(HttpRequest(http.method))
                await connection.send(http.to_bytes())
                called = await connection.response(_TIMEOUT)
                return called.status, called.status in (200, 401) or called.body == b"forbidden\n"
            except (OSError, EOFError, Malformed):
                return 0, False

    async def open(self, alpn: Sequence[str] = (), *, victim: bool = False) -> CallConnection:
        if victim:
            return await super().open(alpn, victim=True)
        return await CallConnection.open(self._entrance, source_address=self._attacker.address, timeout=_TIMEOUT)

    @property
    def _entrance(self) -> Target:
        return Target(self._attacker.address, OUTBOUND_PORT)


class _Gateway(_Outbound):
    """A gateway before the sidecar of the application. For the sidecar, the gateway is the caller."""

    def __init__(self, bench: Bench, attacker: Caller, port: int) -> None:
        self._site = bench.mesh.gateways[f"gateway:a/{_GATEWAY}"]
        self._port = port
        super().__init__(bench, attacker)

    def _locate(self, attacker: Caller) -> Caller:
        return attacker

    def enforce(self, policies: Sequence[Manifest]) -> None:
        super().enforce(list(at_gateway(policies, _GATEWAY)))

    def denial(self, http: Http) -> str | None:
        http = _in_origin_form(http)
        asked = self._ask(http).question()
        behind = Ask(Caller("spiffe://td/ns/a/sa/gw", self._site.address), _POD, _PORT, http).question()
        for question in (replace(asked, destination=Gateway("a", _GATEWAY), port=self._port), behind):
            try:
                decision = self._authority.decide(question)
            except QuestionError as error:
                return str(error)
            if not decision.allowed:
                return decision.reason
        return None

    async def open(self, alpn: Sequence[str] = (), *, victim: bool = False) -> CallConnection:
        return await _Sidecar.open(self, alpn, victim=victim)

    @property
    def _inbound(self) -> Target:
        return Target(self._site.address, self._site.ports[self._port])

    @property
    def _entrance(self) -> Target:
        return self._inbound


def bench(trust: Trust | None = None) -> Bench:
    """Return a bench for every placement."""
    chosen = trust or Trust()
    name = f"attacks-{os.getpid()}-{next(_numbers)}"
    return Bench(name, _WORLD, source=chosen.source, tokens=chosen.tokens, keys=KnownKeys({ISSUER: KEYS}))


def _gateway(name: str, attacker: Caller, port: int, *, tokens: bool = False) -> Placement:
    """Return the placement at a gateway. AccessPolicies name single accounts, and decide requests, not connections."""
    return Placement(
        name,
        lambda running: _Gateway(running, attacker, port),
        tokens=tokens,
        namespaces=False,
        refuses_connections=False,
        is_gateway=True,
    )


PLACEMENTS = [
    Placement("sidecar over mTLS", lambda running: _Sidecar(running, Caller(_ACCOUNT, "127.0.0.2"))),
    Placement("sidecar in plaintext", lambda running: _Sidecar(running, Caller(None, "127.0.0.2")), tokens=True),
    Placement(
        "sidecar by the way out of another workload",
        lambda running: _Outbound(running, Caller("spiffe://td/ns/a/sa/y", "")),
        any_host=False,
        certificates=False,
    ),
    _gateway("gateway over mTLS", Caller(_ACCOUNT, "127.0.0.2"), _HTTP),
    _gateway("gateway in plaintext", Caller(None, "127.0.0.2"), _HTTP, tokens=True),
    replace(
        _gateway("gateway over HTTPS", Caller(_ACCOUNT, "127.0.0.2"), _HTTPS),
        ignored_certificates=frozenset({"a name in the subject", "without a URI"}),
    ),
]
