"""One process of the authorizer: listeners, health, metrics, reloads, and shutdown.

The event loop answers checks that need no external authorizer. Threads answer the others. A check over a limit is
refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Protocol

from eastgate.authority.authority import Authority
from eastgate.basics.records import dataclass
from eastgate.basics.tasks import BackgroundTask, describe_failure, log_failure
from eastgate.cluster.ends import Destination
from eastgate.control.authorizer.answering import refuse
from eastgate.control.authorizer.checks import ProxyAnswer, ProxyCheck
from eastgate.control.authorizer.deciding import CheckOptions, ExternalServices, LiveAuthorizer, OpenCheck
from eastgate.control.authorizer.grpc_checks import check_of, reply_of
from eastgate.control.authorizer.http_checks import HttpOptions, check_of_http, response_of
from eastgate.control.authorizer.http_server import HttpLimits, HttpServer, ServedRequest, ServedResponse
from eastgate.control.authorizer.locating import ListenAddress, listen
from eastgate.control.authorizer.log import AuthorizerMetrics, DecisionLog
from eastgate.control.authorizer.reloading import PolicyFiles, Reload, follow_files
from eastgate.control.authorizer.tool_lists import TOOLS_PATH, answer_tools
from eastgate.envoy.authz.server import CheckReply, CheckServer, ReceivedCheck, answer_on_thread

_HANDSHAKE_SECONDS = 10.0
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """The certificate of the authorizer, and the CA of proxies if these must have a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def context(self, *, http2: bool = False) -> ssl.SSLContext:
        """Return a TLS context for HTTP, or for gRPC (`http2`). Raises OSError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if self.client_ca is not None:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        if http2:
            context.set_alpn_protocols(["h2"])
        return context


class _Server(Protocol):
    """A server for the connections of a listener."""

    def protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        ...

    async def drain(self, grace: float) -> None:
        """Answer the open requests and close, after at most `grace` seconds."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The addresses of a service, and its limits.

    `grpc` and `http` answer checks. `tools` is the unix socket of Eastgate's gateways. `admin` serves health and
    metrics. At most `open_checks` wait at a time, on `threads`. `drain` is the time for which a process still answers
    after it reports that it ends; `grace` is the time for open checks after that. `processes` share the ports; `number`
    is the number of this one.
    """

    grpc: tuple[ListenAddress, ...] = ()
    http: tuple[ListenAddress, ...] = ()
    tools: ListenAddress | None = None
    admin: ListenAddress | None = None
    tls: TlsFiles | None = None
    checks: CheckOptions = CheckOptions()
    from_http: HttpOptions = HttpOptions()
    threads: int = 16
    open_checks: int = 256
    max_body: int = 1024 * 1024
    drain: float = 0.0
    grace: float = 10.0
    processes: int = 1
    number: int = 0
    inherited: tuple[tuple[str, int], ...] = ()


class AuthorizerService:
    """The service of one process. It answers checks until it is stopped."""

    def __init__(
        self,
        options: ServiceOptions,
        authority: Authority,
        external: ExternalServices,
        log: DecisionLog,
    ) -> None:
        self.options = options
        self.metrics = AuthorizerMetrics()
        self.authorizer = LiveAuthorizer(authority, Lock(), external, options.checks)
        self._log = log
        self._pool = ThreadPoolExecutor(options.threads, "asking")
        self._open = 0
        self._serves = False
        self._following: BackgroundTask | None = None
        self._stopping = asyncio.Event()
        self.metrics.policies.set(len(authority.policies))

    # Running

    async def run(
        self, files: PolicyFiles | None = None, started: Callable[[list[str]], None] = lambda _: None
    ) -> None:
        """Listen, answer checks, follow the files, and end after `stop` or a signal. Raises BadAddress."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.stop)
        async with contextlib.AsyncExitStack() as stack:
            addresses = await self._listen(stack)
            if files is not None:
                stack.push_async_callback(self._follow(files).stop)
            self._serves = True
            started(addresses)
            await self._stopping.wait()
            self._log.event("draining")
            if self.options.drain > 0:
                await asyncio.sleep(self.options.drain)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._log.event("stopped")

    def stop(self) -> None:
        """Begin to shut down: report it in the health check, finish open checks, and close."""
        self._serves = False
        self._stopping.set()

    @property
    def is_ready(self) -> bool:
        """Return whether the service should get checks: it listens, it is not ending, and it follows the files."""
        return self._serves and (self._following is None or self._following.is_working)

    def _follow(self, files: PolicyFiles) -> BackgroundTask:
        """Start the task that loads the policies after each save. After a failure it tries again; the old policies
        stay.
        """

        async def follow() -> None:
            await follow_files(files, self.reloaded, following.works)

        def failed(name: str, error: Exception) -> None:
            self.metrics.task_failures.labels(name).inc()
            kept = "the policies before it"
            self._log.event("following failed", kept=kept, error=describe_failure(error))
            log_failure(name, error)

        following = self._following = BackgroundTask("following the files", follow, failed)
        return following.start()

    def reloaded(self, reload: Reload) -> None:
        """Put a save without errors in force, or log why the old policies stay."""
        if reload.authority is None:
            self.metrics.reload_failures.inc()
            self._log.event("reload failed", kept="the policies before it", problems=list(reload.problems[:20]))
            return
        self.authorizer.replace(reload.authority, self.authorizer.external)
        self.metrics.reloads.inc()
        self.metrics.policies.set(len(reload.authority.policies))
        self._log.event("reloaded", policies=len(reload.authority.policies))

    async def _listen(self, stack: contextlib.AsyncExitStack) -> list[str]:
        options = self.options
        addresses: list[str] = []
        limits = HttpLimits(body=options.max_body)
        if options.grpc:
            checks = self._check_server()
            tls = options.tls.context(http2=True) if options.tls is not None else None
            for address in options.grpc:
                own = address.numbered(options.number) if options.processes > 1 else address
                context = None if own.path else tls
                addresses.append(f"grpc {await stack.enter_async_context(self._serve(checks, own, context))}")
        tls = options.tls.context() if options.tls is not None else None
        for address in options.http:
            http = HttpServer(self.answer_http, limits)
            context = None if address.path else tls
            addresses.append(f"http {await stack.enter_async_context(self._serve(http, address, context))}")
        if options.tools is not None:
            own = options.tools.numbered(options.number) if options.processes > 1 else options.tools
            tools = HttpServer(self._answer_own, limits)
            addresses.append(f"tools {await stack.enter_async_context(self._serve(tools, own))}")
        if options.admin is not None:
            admin = HttpServer(self._answer_admin, limits)
            addresses.append(f"admin {await stack.enter_async_context(self._serve(admin, options.admin))}")
        return addresses

    @contextlib.asynccontextmanager
    async def _serve(
        self, server: _Server, address: ListenAddress, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[str]:
        """Serve during the block, and then until open requests are answered."""
        inherited = dict(self.options.inherited).get(str(address))
        if inherited is not None:
            listening = socket.socket(fileno=inherited)
        else:
            listening = listen(address, shared=self.options.processes > 1)
        shown = str(address) if address.path else f"{address.host}:{listening.getsockname()[1]}"
        patience = _HANDSHAKE_SECONDS if tls is not None else None
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(server.protocol, sock=listening, ssl=tls, ssl_handshake_timeout=patience)
        try:
            yield shown
        finally:
            listener.close()
            await server.drain(self.options.grace)
            if address.path and inherited is None:
                with contextlib.suppress(OSError):
                    Path(address.path).unlink()

    # gRPC

    def _check_server(self) -> CheckServer:
        options = self.options
        return CheckServer(
            self._answer_grpc,
            calls=options.threads + options.open_checks,
            max_bytes=options.max_body + 256 * 1024,
            is_ready=lambda: self.is_ready,
        )

    def _answer_grpc(self, received: ReceivedCheck) -> CheckReply | Awaitable[CheckReply]:
        began = time.perf_counter()
        answer = self._answer("grpc", check_of(received, self.options.checks.proxy), began)
        return reply_of(answer) if isinstance(answer, ProxyAnswer) else self._reply_later(answer)

    async def _reply_later(self, coming: Awaitable[ProxyAnswer]) -> CheckReply:
        return reply_of(await coming)

    # HTTP

    def answer_http(self, request: ServedRequest) -> ServedResponse | Awaitable[ServedResponse]:
        """Answer a check over HTTP: at once if it needs no external authorizer."""
        began = time.perf_counter()
        check = check_of_http(request, self.options.from_http, self.options.checks.proxy)
        if check is None:
            refused = ProxyCheck(method=request.method, path=request.target)
            text = "the check does not name one request"
            return response_of(self._noted("http", refuse(refused, 403, "unreadable", text), began))
        answer = self._answer("http", check, began)
        return response_of(answer) if isinstance(answer, ProxyAnswer) else self._respond_later(answer)

    async def _respond_later(self, coming: Awaitable[ProxyAnswer]) -> ServedResponse:
        return response_of(await coming)

    # Either

    def _answer(self, protocol: str, check: ProxyCheck, began: float) -> ProxyAnswer | Awaitable[ProxyAnswer]:
        """Decide a check, at once if it needs no external authorizer; count and log the answer."""
        waiting = self.authorizer.begin(check)
        answer = waiting if isinstance(waiting, ProxyAnswer) else waiting.finish_at_once()
        if answer is not None:
            return self._noted(protocol, answer, began)
        assert not isinstance(waiting, ProxyAnswer)  # noqa: S101 - it would be the answer
        if self._open >= self.options.open_checks:
            return self._noted(protocol, refuse(check, 503, "overload", "too many checks are open"), began)
        self._open += 1  # counted before another check is read
        coming = answer_on_thread(self._pool, OpenCheck.finish, waiting)
        coming.add_done_callback(self._finished)
        return self._finish(protocol, check, coming, began)

    def _finished(self, _coming: asyncio.Future[ProxyAnswer]) -> None:
        self._open -= 1

    async def _finish(
        self, protocol: str, check: ProxyCheck, coming: asyncio.Future[ProxyAnswer], began: float
    ) -> ProxyAnswer:
        try:
            answer = await asyncio.wait_for(coming, self.options.checks.seconds)
        except TimeoutError:
            answer = refuse(check, 503, "timeout", "an authorizer took too long")
        return self._noted(protocol, answer, began)

    def _noted(self, protocol: str, answer: ProxyAnswer, began: float) -> ProxyAnswer:
        seconds = time.perf_counter() - began
        self.metrics.count(protocol, answer, seconds)
        self._log.decided(answer, protocol, seconds)
        return answer

    # Tool lists, health and metrics

    def _answer_own(self, request: ServedRequest) -> ServedResponse | Awaitable[ServedResponse]:
        if request.target.partition("?")[0] == TOOLS_PATH:
            return answer_tools(request, self.authorizer, self.where_of)
        return self._answer_admin(request)

    where_of: Callable[[str], Destination | None] = staticmethod(lambda _target: None)
    """A function that returns the destination for a target of a gateway of Eastgate, or None."""

    def _answer_admin(self, request: ServedRequest) -> ServedResponse:
        match request.target.partition("?")[0]:
            case "/healthz":
                return ServedResponse(200, body=b"ok\n")
            case "/readyz":
                return (
                    ServedResponse(200, body=b"ready\n") if self.is_ready else ServedResponse(503, body=b"not ready\n")
                )
            case "/metrics" if request.method == "GET":
                return ServedResponse(200, (("content-type", _METRICS_TYPE),), self.metrics.text())
            case _:
                return ServedResponse(404)
