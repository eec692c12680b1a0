"""The authorizer of a mesh's gateways: it decides checks of their Envoys, and filters lists of tools.

Only gateways can reach it. Locally it listens on two sockets in the folder of the run, which only this user can open.
In a cluster it listens on two ports that accept only the certificates of gateways. So it trusts the headers of
Eastgate: the gateway sets them, and removes those of clients.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Final

from eastgate.authority.questions import EntryPoint
from eastgate.basics.regexes import regex
from eastgate.control.access_log import AUTHORIZER
from eastgate.control.authorizer.checks import OWN_HEADERS, Body, ProxyAnswer, ProxyCheck, ProxyOptions
from eastgate.control.authorizer.deciding import CheckOptions, ExternalServices, LiveAuthorizer
from eastgate.control.authorizer.grpc_checks import check_of, reply_of, source_of_principal
from eastgate.control.authorizer.http_server import HttpServer, ServedRequest, ServedResponse
from eastgate.control.authorizer.tool_lists import TOOLS_PATH, answer_tools
from eastgate.control.enforcement import Enforcement
from eastgate.control.sites import AuthorizerEndpoint
from eastgate.envoy.authz.server import CheckReply, CheckServer, ReceivedCheck, answer_on_thread
from eastgate.envoy.config.gateway_filters import LARGEST_MESSAGE
from eastgate.envoy.config.tokens import CARRIER
from eastgate.ir.addresses import comparable_sni
from eastgate.ir.attributes import BACKEND, PORT, SNI

# Answers the checks of gateways on a separate event loop, so that checks and the control plane do not delay each other.


_THREADS: Final = 16
_MAX_OPEN_CHECKS: Final = 1040  # including those that are being decided
_OVERLOAD: Final = CheckReply(allowed=False, status=503)


class CheckThread:
    """A server for checks at an endpoint. Several threads answer them; checks over the limit are refused."""

    def __init__(self, answer: Callable[[ReceivedCheck], CheckReply], max_bytes: int) -> None:
        self._decide = answer
        self._server = CheckServer(self._answer, calls=_MAX_OPEN_CHECKS, max_bytes=max_bytes)
        self._pool = ThreadPoolExecutor(_THREADS, "check")
        self._open = 0
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None
        self._listener: asyncio.Server | None = None

    def start(self, endpoint: AuthorizerEndpoint) -> None:
        """Listen, and begin to answer. Raises OSError."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="checks", daemon=True)
        thread.start()
        self._running = loop, thread
        try:
            asyncio.run_coroutine_threadsafe(self._listen(endpoint), loop).result()
        except OSError:
            self.stop(0.0)
            raise

    def stop(self, grace: float) -> None:
        """Stop listening, and wait at most `grace` seconds for open checks."""
        if self._running is None:
            return
        (loop, thread), self._running = self._running, None
        asyncio.run_coroutine_threadsafe(self._close(grace), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _listen(self, endpoint: AuthorizerEndpoint) -> None:
        self._listener = await endpoint.listen(self._server.protocol)

    async def _close(self, grace: float) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._server.drain(grace)
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _answer(self, received: ReceivedCheck) -> CheckReply | Awaitable[CheckReply]:
        if self._open >= _MAX_OPEN_CHECKS:
            return _OVERLOAD
        self._open += 1
        coming = answer_on_thread(self._pool, self._decide, received)
        coming.add_done_callback(self._finished)
        return coming

    def _finished(self, _coming: asyncio.Future[CheckReply]) -> None:
        self._open -= 1


_GRACE_SECONDS = 1.0
_FORWARDED_CERTIFICATE = "x-forwarded-client-cert"
_TARGET = regex(r"(gateway:[^: ]+):([0-9]+) ([^ ]+)")
_GATEWAYS = ProxyOptions(normalizes_paths=True, whole_bodies=True)
_UNKNOWN = CheckReply(allowed=False, status=403)


class MeshAuthorizer:
    """The authorizer beside a control plane. It decides by the enforced authority. Hold `lock` to change the authority.

    `on_decided` is called with each answer and its duration in seconds, in the thread of the check.
    """

    def __init__(
        self,
        enforcement: Enforcement,
        external: ExternalServices,
        checks: AuthorizerEndpoint,
        tools: AuthorizerEndpoint,
        lock: threading.RLock,
        on_decided: Callable[[ProxyAnswer, float], None] = lambda _answer, _seconds: None,
    ) -> None:
        self._lock = lock
        self._enforcement = enforcement
        self._on_decided = on_decided
        self._endpoints = checks, tools
        options = CheckOptions(seconds=30.0, plain_denials=True, proxy=_GATEWAYS, own_proxies=True)
        self.live = LiveAuthorizer(enforcement.authority, lock, external, options)
        self._checks = CheckThread(self._answer, LARGEST_MESSAGE + 256 * 1024)
        self._http = HttpServer(self._filter)
        self._listening: asyncio.Server | None = None

    async def __aenter__(self) -> MeshAuthorizer:
        checks, tools = self._endpoints
        self._checks.start(checks)
        self._listening = await tools.listen(self._http.protocol)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listening is not None:
            self._listening.close()
        await self._http.drain(_GRACE_SECONDS)
        await asyncio.to_thread(self._checks.stop, _GRACE_SECONDS)

    # Checks

    def _answer(self, received: ReceivedCheck) -> CheckReply:
        noted = {name: values[0] for name, values in received.headers.items() if name.startswith(OWN_HEADERS)}
        where = self._where(noted)
        if where is None:
            return _UNKNOWN
        began = time.monotonic()
        answer = self.live.decide(_with_notes(check_of(received, _GATEWAYS), noted), where)
        self._on_decided(answer, time.monotonic() - began)
        return _named(reply_of(answer), answer)

    def _where(self, noted: Mapping[str, str]) -> EntryPoint | None:
        """Return the destination that the gateway noted: the gateway, its port, the destination in its routes, and the
        SNI.
        """
        named = _TARGET.fullmatch(noted.get("x-eastgate-target", ""))
        if named is None:
            return None
        node, port = named[1], int(named[2])
        with self._lock:
            destination = self._enforcement.plans.find_destination(node, port, named[3])
        if destination is None:
            return None
        sni = comparable_sni(noted.get("x-eastgate-sni", "")) or None
        return EntryPoint(node, destination.points, {PORT: port, BACKEND: destination.backend_key, SNI: sni})

    # Lists of tools

    def _filter(self, request: ServedRequest) -> ServedResponse:
        if request.target != TOOLS_PATH:
            return ServedResponse(404)
        noted = dict(request.headers)
        return answer_tools(request, self.live, lambda _target: self._where(noted))


def _with_notes(check: ProxyCheck, noted: dict[str, str]) -> ProxyCheck:
    """Return a check with the caller that the gateway noted, without the headers of these notes.

    The certificate of the connection is also in the header by which gateways forward it to authorizers. Envoy removes
    that header from requests of clients.
    """
    certificate = noted.get("x-eastgate-certificate") or None
    headers = {name: values for name, values in check.headers.items() if not name.startswith(OWN_HEADERS)}
    if CARRIER in noted:
        headers["authorization"] = noted[CARRIER]
    if certificate is not None:
        headers[_FORWARDED_CERTIFICATE] = f'Cert="{certificate}"'
    return replace(
        check,
        source=source_of_principal(noted.get("x-eastgate-source", "")),
        address=noted.get("x-eastgate-address") or None,
        certificate=certificate,
        sni=noted.get("x-eastgate-sni", ""),
        scheme="https" if "x-eastgate-sni" in noted else "http",
        headers=headers,
        body=_limited(check.body),
    )


def _limited(body: Body | None) -> Body | None:
    """Return a body, marked as incomplete if it exceeds the largest message of a gateway."""
    return replace(body, complete=False) if body is not None and len(body.content) > LARGEST_MESSAGE else body


def _named(reply: CheckReply, answer: ProxyAnswer) -> CheckReply:
    """Return a reply with the decision as a proxy's log writes it."""
    who = answer.why or answer.record.get("decider") or AUTHORIZER
    return replace(reply, decision=f"{answer.status}:{who}")
