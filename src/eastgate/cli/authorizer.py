"""`authorizer`: Eastgate as the external authorizer of other proxies, over gRPC and HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eastgate.basics.records import dataclass
from eastgate.cli.options import (
    Sources,
    bad_option,
    jwks_option,
    more_files,
    pairs,
    record,
    source_options,
    strict_option,
)
from eastgate.cli.output import fail, warn
from eastgate.settings import McpDenials, Settings

if TYPE_CHECKING:
    from eastgate.cluster.ends import Destination
    from eastgate.control.authorizer.checks import ProxyOptions
    from eastgate.control.authorizer.external import AddressOf
    from eastgate.control.authorizer.http_checks import HttpOptions
    from eastgate.control.authorizer.locating import ListenAddress
    from eastgate.control.authorizer.log import DecisionLog
    from eastgate.control.authorizer.reloading import PolicyFiles
    from eastgate.control.authorizer.service import ServiceOptions, TlsFiles

_EPILOG = (
    "ADDRESS is HOST:PORT or unix:PATH. Exits with 0 after SIGTERM or Ctrl-C, when open checks are answered; 2 if it "
    "could not be started. Decisions are lines of JSON on standard output, which `eastgate why` explains."
)
_DEFAULT_GRPC_ADDRESS = "127.0.0.1:9191"
_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckPorts:
    """The addresses that the authorizer serves, and its certificates."""

    grpc: tuple[str, ...]
    http: tuple[str, ...]
    admin: str | None
    tools: str | None
    tls_certificate: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None

    def addresses(self) -> tuple[tuple[ListenAddress, ...], tuple[ListenAddress, ...]]:
        """Return the addresses for gRPC and for HTTP. Raises BadAddress."""
        from eastgate.control.authorizer.locating import ListenAddress

        grpc = self.grpc or (() if self.http else (_DEFAULT_GRPC_ADDRESS,))
        return tuple(map(ListenAddress.of, grpc)), tuple(map(ListenAddress.of, self.http))

    def tools_address(self) -> ListenAddress | None:
        """Return the address for lists of tools. Raises BadAddress."""
        from eastgate.control.authorizer.locating import ListenAddress

        address = ListenAddress.of(self.tools) if self.tools else None
        if address is not None and not address.path:
            bad_option("lists of tools are filtered over a unix socket only", "write --tools unix:PATH")
        return address

    def tls(self) -> TlsFiles | None:
        """Return the certificates; None without TLS."""
        from eastgate.control.authorizer.service import TlsFiles

        if self.tls_certificate is None and self.tls_key is None and self.tls_client_ca is None:
            return None
        if self.tls_certificate is None or self.tls_key is None:
            bad_option("TLS needs a certificate and its key", "write --tls-certificate FILE --tls-key FILE")
        return TlsFiles(self.tls_certificate, self.tls_key, self.tls_client_ca)


_listening = record(
    "listening",
    _CheckPorts,
    click.option(
        "--grpc",
        multiple=True,
        metavar="ADDRESS",
        help=f"Answer checks of Envoy over gRPC here. Default: {_DEFAULT_GRPC_ADDRESS}.",
    ),
    click.option("--http", multiple=True, metavar="ADDRESS", help="Answer checks over HTTP here."),
    click.option("--admin", metavar="ADDRESS", help="Serve /healthz, /readyz and /metrics here."),
    click.option(
        "--tools", metavar="unix:PATH", help="Serve /tools here: it filters tool lists for gateways of this machine."
    ),
    click.option("--tls-certificate", type=_file, help="TLS certificate of the ports, in PEM."),
    click.option("--tls-key", type=_file, help="Key of the TLS certificate, in PEM."),
    click.option("--tls-client-ca", type=_file, help="CA of the client certificates that proxies need, in PEM."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proxy:
    """The contents of a check: the parts of a request that the proxy shows, and the headers with them."""

    to: str | None
    path_prefix: str
    trust_header: str | None
    to_header: str | None
    address_header: str | None
    original: bool
    all_headers: bool
    shown_header: tuple[str, ...]
    whole_bodies: bool
    normalized_paths: bool

    def options(self) -> ProxyOptions:
        """Return the contents of every check."""
        from eastgate.control.authorizer.checks import ProxyOptions

        if self.shown_header and self.all_headers:
            bad_option("--all-headers and --shown-header contradict each other", "give only one of them")
        return ProxyOptions(
            self.normalized_paths, self.whole_bodies, frozenset(name.lower() for name in self.shown_header)
        )

    def destination(self, settings: Settings) -> Destination | None:
        """Return the destination of every request; None if each request names its own."""
        from eastgate.cli.questions import destination_from

        return destination_from(self.to, settings) if self.to is not None else None

    def http(self) -> HttpOptions:
        """Return the form in which a check over HTTP shows the request."""
        from eastgate.control.authorizer.http_checks import HttpOptions

        if self.path_prefix and not self.path_prefix.startswith("/"):
            bad_option(f"`{self.path_prefix}` is no prefix of a path", "begin it with a slash")
        trust, to, address = (
            name.lower() if name else None for name in (self.trust_header, self.to_header, self.address_header)
        )
        return HttpOptions(self.path_prefix.rstrip("/"), trust, to, address, self.original, self.all_headers)


_proxy = record(
    "proxy",
    _Proxy,
    click.option(
        "--to", metavar="DST", help="Destination of requests that name none: pod:, service:, gateway:, route:, .."
    ),
    click.option("--path-prefix", default="", metavar="PATH", help="Prefix that the proxy adds to the path (HTTP)."),
    click.option(
        "--trust-header",
        metavar="NAME",
        help="Header with the caller's identity: a SPIFFE ID, or x-forwarded-client-cert (HTTP). "
        "Without this option, every caller is unknown.",
    ),
    click.option("--to-header", metavar="NAME", help="Header with the destination of a request (HTTP)."),
    click.option("--address-header", metavar="NAME", help="Header with the caller's address (HTTP)."),
    click.option(
        "--original", is_flag=True, help="The request is in X-Original-Method and X-Original-URI, as with nginx."
    ),
    click.option(
        "--all-headers",
        is_flag=True,
        help="The proxy shows all headers: a header that it does not show is absent (HTTP).",
    ),
    click.option(
        "--shown-header",
        multiple=True,
        metavar="NAME",
        help="Header that the proxy shows if a client sends it. Other headers are unknown. "
        "Needed over gRPC if the proxy hides headers (Envoy: allowed_headers, disallowed_headers).",
    ),
    click.option(
        "--whole-bodies",
        is_flag=True,
        help="The proxy shows the body of every request and never cuts a body "
        "(Envoy: with_request_body without allow_partial_message). MCP streams need this. Do not use it with nginx.",
    ),
    click.option(
        "--normalized-paths",
        is_flag=True,
        help="The proxy normalises paths as Eastgate does before it forwards them, but shows them as the client sent "
        "them. Without this, other paths are refused (400). Envoy does not need it. Do not use it with nginx.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Processes:
    """The number of processes, and the limits of each. `process` and `inherit` are for child processes."""

    workers: int
    threads: int
    max_open: int
    max_body: int
    timeout: float
    drain: float
    process: int | None
    inherit: tuple[str, ...]


_processes = record(
    "processes",
    _Processes,
    click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of processes."),
    click.option(
        "--threads", type=click.IntRange(1, 1024), default=16, show_default=True, help="Threads of each process."
    ),
    click.option(
        "--max-open",
        type=click.IntRange(1),
        default=256,
        show_default=True,
        help="Limit of waiting checks for each process.",
    ),
    click.option(
        "--max-body", type=click.IntRange(0), default=1 << 20, show_default=True, help="Limit of a body, in bytes."
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0.01),
        default=5.0,
        show_default=True,
        help="Limit of a decision, in seconds.",
    ),
    click.option(
        "--drain",
        type=click.FloatRange(0),
        default=0.0,
        show_default=True,
        help="Seconds that it keeps answering after SIGTERM.",
    ),
    click.option("--process", type=int, hidden=True),
    click.option("--inherit", multiple=True, hidden=True),
)


@click.command(epilog=_EPILOG)
@source_options(more_files, strict_option)
@_listening
@_proxy
@_processes
@click.option("--external", multiple=True, metavar="SVC.NS:PORT=HOST:PORT", help="Address of an external authorizer.")
@jwks_option
@click.option(
    "--log", type=click.Choice(["all", "denied", "none"]), default="all", show_default=True, help="Decisions to log."
)
def authorizer(
    sources: Sources,
    listening: _CheckPorts,
    proxy: _Proxy,
    processes: _Processes,
    external: tuple[str, ...],
    jwks: tuple[str, ...],
    log: str,
) -> None:
    """Serve decisions to Envoy, Istio, Envoy Gateway or nginx.

    The authorizer decides by all policies in the files. It reads a file again after each save.
    """
    if not sources.paths:
        raise click.UsageError("no manifests: give files or folders with -f")
    from eastgate.control.authorizer.locating import BadAddress
    from eastgate.control.authorizer.log import DecisionLog, Logged
    from eastgate.control.authorizer.reloading import PolicyFiles

    if processes.process is not None:
        _end_with_parent()
    settings = sources.settings().enforced()
    decisions = DecisionLog(sys.stdout.buffer, Logged(log))
    try:
        service = _service_options(listening, proxy, processes, settings)
        if processes.workers > 1 and processes.process is None:
            sys.exit(_supervise(service, decisions))
        _run(service, PolicyFiles(sources.file_source(jwks), settings), decisions, _addresses(external, settings))
    except BadAddress as error:
        bad_option(str(error), "give another address")


def _run(options: ServiceOptions, files: PolicyFiles, log: DecisionLog, addresses: AddressOf) -> None:
    from eastgate.authority.reading import ManifestError
    from eastgate.control.authorizer.external import ExternalAuthorizers
    from eastgate.control.authorizer.service import AuthorizerService
    from eastgate.control.authorizer.workers import note_serving

    try:
        authority = files.load()
    except ManifestError as error:
        fail(error.diagnostics)
    warn([*authority.warnings, *(error for rejected in authority.rejected for error in rejected.errors)])
    external = ExternalAuthorizers(addresses, seconds=options.checks.seconds)

    async def serve() -> None:
        service = AuthorizerService(options, authority, external, log)
        policies = len(authority.policies)

        def started(listening: list[str]) -> None:
            if options.processes > 1:
                note_serving(options.number)
            log.event("listening", on=listening, policies=policies)

        await service.run(files, started)

    try:
        asyncio.run(serve())
    finally:
        external.close()


def _supervise(options: ServiceOptions, log: DecisionLog) -> int:
    from eastgate.control.authorizer.workers import run_workers

    shared = [address for address in options.http if address.path]
    return run_workers(options.processes, sys.argv[2:], shared, log, options.drain + options.grace + 5)


def _service_options(
    listening: _CheckPorts, proxy: _Proxy, processes: _Processes, settings: Settings
) -> ServiceOptions:
    from eastgate.control.authorizer.deciding import CheckOptions
    from eastgate.control.authorizer.locating import ListenAddress
    from eastgate.control.authorizer.service import ServiceOptions

    grpc, http = listening.addresses()
    if processes.workers > 1 and any(not address.path and address.port == 0 for address in (*grpc, *http)):
        bad_option("several processes cannot share a free port that the system chooses", "give the port")
    plain_denials = settings.mcp_denials is McpDenials.STATUS
    return ServiceOptions(
        grpc=grpc,
        http=http,
        tools=listening.tools_address(),
        admin=ListenAddress.of(listening.admin) if listening.admin else None,
        tls=listening.tls(),
        checks=CheckOptions(proxy.destination(settings), processes.timeout, plain_denials, proxy.options()),
        from_http=proxy.http(),
        threads=processes.threads,
        open_checks=processes.max_open,
        max_body=processes.max_body,
        drain=processes.drain,
        processes=processes.workers,
        number=processes.process or 0,
        inherited=tuple(_inherited(value) for value in processes.inherit),
    )


def _end_with_parent() -> None:
    """Make the kernel end this process when its parent ends, for any reason."""
    from ctypes import CDLL
    from signal import SIGTERM

    if sys.platform == "linux":
        CDLL(None).prctl(1, SIGTERM, 0, 0, 0)


def _inherited(value: str) -> tuple[str, int]:
    """Parse a listening socket of the first process: an address, and the number of its file."""
    address, _, number = value.rpartition("=")
    if not number.isascii() or not number.isdigit():
        bad_option(
            f"`{value}` is no socket of another process",
            "do not use --inherit: the authorizer sets it for its own processes",
        )
    return address, int(number)


def _addresses(values: Sequence[str], settings: Settings) -> AddressOf:
    """Return the addresses of external authorizers: as given, or by the names of Services in a cluster."""
    from eastgate.control.authorizer.external import ServiceAddress
    from eastgate.control.authorizer.locating import ListenAddress
    from eastgate.ir import ExternalAuthorizer

    given: dict[str, ListenAddress] = {}
    for name, value in pairs(values, "--external").items():
        given[name] = ListenAddress.of(value)

    def address_of(external: ExternalAuthorizer) -> ServiceAddress | None:
        chosen = given.get(str(external))
        if chosen is not None:
            return ServiceAddress(chosen.host, chosen.port)
        return ServiceAddress(f"{external.service}.{external.namespace}.svc.{settings.cluster_domain}", external.port)

    return address_of
