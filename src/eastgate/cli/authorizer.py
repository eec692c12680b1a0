"""`authorizer`: the external authorizer of other people's proxies, over gRPC and HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from eastgate.basics.diagnostics import Diagnostic
from eastgate.cli.options import (
    BAD_OPTION,
    file_options,
    issuer_keys,
    jwks_option,
    pairs,
    settings_from,
    strict_option,
)
from eastgate.cli.output import fail, warn
from eastgate.cli.unconsidered import handling_of, unread_option

if TYPE_CHECKING:
    from eastgate.control.authorizer.addresses import ListenAddress
    from eastgate.control.authorizer.external import AddressOf
    from eastgate.control.authorizer.log import DecisionLog
    from eastgate.control.authorizer.reloading import PolicyFiles
    from eastgate.control.authorizer.service import ServiceOptions
    from eastgate.settings import Settings

_EPILOG = (
    "ADDRESS is HOST:PORT or unix:PATH. SIGTERM and Ctrl-C drain and exit with 0; 2 if it could not be started. "
    "Decisions are lines of JSON on standard output, which `eastgate why` explains."
)
_OUTPUT = "text"
_FIRST = "127.0.0.1:9191"
_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(epilog=_EPILOG)
@file_options
@click.option("--grpc", multiple=True, metavar="ADDRESS", help=f"Answer Envoy's gRPC here; by default {_FIRST}.")
@click.option("--http", multiple=True, metavar="ADDRESS", help="Answer checks over HTTP here; may be repeated.")
@click.option("--admin", metavar="ADDRESS", help="/healthz, /readyz and /metrics.")
@click.option("--tools", metavar="unix:PATH", help="/tools: filters lists of tools for gateways of this machine.")
@click.option("--to", metavar="DST", help="Where requests go that do not say it: pod:, service:, gateway:, route:, ..")
@click.option("--path-prefix", default="", metavar="PATH", help="What the proxy puts before the path (HTTP).")
@click.option(
    "--trust-header",
    metavar="NAME",
    help="The header by which the proxy says who calls: a SPIFFE ID, or x-forwarded-client-cert (HTTP). "
    "Without it every caller is unknown.",
)
@click.option("--to-header", metavar="NAME", help="The header with where a request goes (HTTP).")
@click.option(
    "--address-header", metavar="NAME", help="The header by which the proxy gives the caller's address (HTTP)."
)
@click.option("--original", is_flag=True, help="The request is in X-Original-Method and X-Original-URI, as with nginx.")
@click.option(
    "--all-headers", is_flag=True, help="The proxy sends every header: one that is missing is not there (HTTP)."
)
@click.option(
    "--shown-header",
    multiple=True,
    metavar="NAME",
    help="A header that the proxy shows if a client sends it; may be repeated. Others are unknown. "
    "Needed over gRPC if the proxy hides headers (Envoy: allowed_headers, disallowed_headers).",
)
@click.option(
    "--whole-bodies",
    is_flag=True,
    help="The proxy shows the body of every request and never cuts a body "
    "(Envoy: with_request_body without allow_partial_message). MCP streams need it; never with nginx.",
)
@click.option(
    "--normalized-paths",
    is_flag=True,
    help="The proxy normalises paths as Eastgate does before it hands them on, but shows them as they were sent. "
    "Envoy does not need this; never with nginx. Without it, paths that are not normalised are refused (400).",
)
@click.option("--tls-certificate", type=_file, help="Certificate for TLS on ports, in PEM.")
@click.option("--tls-key", type=_file, help="Its key, in PEM.")
@click.option("--tls-client-ca", type=_file, help="CA of the certificates that proxies must have, in PEM.")
@click.option("--external", multiple=True, metavar="SVC.NS:PORT=HOST:PORT", help="Where an external authorizer is.")
@jwks_option
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of processes.")
@click.option("--threads", type=click.IntRange(1, 1024), default=16, show_default=True, help="Threads of each.")
@click.option(
    "--max-open", type=click.IntRange(1), default=256, show_default=True, help="Checks that may wait in each."
)
@click.option("--max-body", type=click.IntRange(0), default=1024 * 1024, show_default=True, help="Bytes of a body.")
@click.option("--timeout", type=click.FloatRange(0.01), default=5.0, show_default=True, help="Seconds of a decision.")
@click.option("--drain", type=click.FloatRange(0), default=0.0, show_default=True, help="Seconds before it closes.")
@click.option("--plain-denials", is_flag=True, help="No JSON-RPC errors for denied MCP requests.")
@click.option(
    "--log", type=click.Choice(["all", "denied", "none"]), default="all", show_default=True, help="Decisions."
)
@click.option("--process", type=int, hidden=True)
@click.option("--inherit", multiple=True, hidden=True)
@strict_option
@unread_option
def authorizer(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    settings: tuple[str, ...],
    config: str | None,
    follow: bool,
    exclude: tuple[str, ...],
    verbose: bool,  # noqa: ARG001 - decisions are the output
    strict: bool,
    unread: str | None,
    **options: Any,
) -> None:
    """Serve decisions to Envoy, Istio, Envoy Gateway or nginx.

    The authorizer decides by all policies of the files. It reads them again whenever they are saved.
    """
    paths = (*files, *more_files)
    if not paths:
        raise click.UsageError("no manifests: give files or folders with -f")
    from eastgate.authority.sources.files import FileSource
    from eastgate.control.authorizer.addresses import BadAddress
    from eastgate.control.authorizer.log import DecisionLog, Logged
    from eastgate.control.authorizer.reloading import PolicyFiles

    if options["process"] is not None:
        _end_with_parent()
    chosen = settings_from(settings, config, _OUTPUT).enforced()
    log = DecisionLog(sys.stdout.buffer, Logged(options["log"]))
    try:
        service = _service_options(options)
        if options["workers"] > 1 and options["process"] is None:
            sys.exit(_supervise(service, log))
        source = FileSource(
            paths,
            follow=follow,
            exclude=exclude,
            strict=strict,
            unread=handling_of(unread),
            keys=issuer_keys(options["jwks"], _OUTPUT),
        )
        _run(service, PolicyFiles(source, chosen), log, _addresses(options["external"], chosen))
    except BadAddress as error:
        _bad(str(error), "give another address")


def _run(options: ServiceOptions, files: PolicyFiles, log: DecisionLog, addresses: AddressOf) -> None:
    from eastgate.authority.reading import ManifestError
    from eastgate.control.authorizer.external import ExternalAuthorizers
    from eastgate.control.authorizer.service import AuthorizerService
    from eastgate.control.authorizer.workers import note_serving

    try:
        authority = files.load()
    except ManifestError as error:
        fail(error.diagnostics, _OUTPUT)
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


def _service_options(options: Mapping[str, Any]) -> ServiceOptions:
    from eastgate.control.authorizer.addresses import ListenAddress
    from eastgate.control.authorizer.checks import ProxyOptions
    from eastgate.control.authorizer.deciding import CheckOptions
    from eastgate.control.authorizer.http_checks import HttpOptions
    from eastgate.control.authorizer.service import ServiceOptions, TlsFiles

    tls = None
    if options["tls_certificate"] is not None or options["tls_key"] is not None or options["tls_client_ca"] is not None:
        if options["tls_certificate"] is None or options["tls_key"] is None:
            _bad("TLS needs a certificate and its key", "write --tls-certificate FILE --tls-key FILE")
        tls = TlsFiles(options["tls_certificate"], options["tls_key"], options["tls_client_ca"])
    if options["path_prefix"] and not options["path_prefix"].startswith("/"):
        _bad(f"`{options['path_prefix']}` is no prefix of a path", "begin it with a slash")
    grpc = options["grpc"] or (() if options["http"] else (_FIRST,))
    tools = ListenAddress.of(options["tools"]) if options["tools"] else None
    if tools is not None and not tools.path:
        _bad("lists of tools are filtered over a unix socket only", "write --tools unix:PATH")
    addresses = (*map(ListenAddress.of, grpc), *map(ListenAddress.of, options["http"]))
    if options["workers"] > 1 and any(not address.path and address.port == 0 for address in addresses):
        _bad("several processes cannot share a port that is chosen for each", "give the port")
    if options["shown_header"] and options["all_headers"]:
        _bad("--all-headers and --shown-header contradict each other", "give only one of them")
    shown = frozenset(name.lower() for name in options["shown_header"])
    proxy = ProxyOptions(options["normalized_paths"], options["whole_bodies"], shown)
    named = {name: options[name].lower() if options[name] else None for name in _HEADERS}
    return ServiceOptions(
        grpc=tuple(map(ListenAddress.of, grpc)),
        http=tuple(map(ListenAddress.of, options["http"])),
        tools=tools,
        admin=ListenAddress.of(options["admin"]) if options["admin"] else None,
        tls=tls,
        checks=CheckOptions(options["to"], options["timeout"], options["plain_denials"], proxy),
        from_http=HttpOptions(
            options["path_prefix"].rstrip("/"),
            named["trust_header"],
            named["to_header"],
            named["address_header"],
            options["original"],
            options["all_headers"],
        ),
        threads=options["threads"],
        open_checks=options["max_open"],
        max_body=options["max_body"],
        drain=options["drain"],
        processes=options["workers"],
        number=options["process"] or 0,
        inherited=tuple(_inherited(value) for value in options["inherit"]),
    )


_HEADERS = ("trust_header", "to_header", "address_header")


def _end_with_parent() -> None:
    """Have the kernel end this process when the one ends that started it, whatever ends that."""
    from ctypes import CDLL
    from signal import SIGTERM

    if sys.platform == "linux":
        CDLL(None).prctl(1, SIGTERM, 0, 0, 0)


def _inherited(value: str) -> tuple[str, int]:
    """Read a listening socket of the first process: an address, and the number of its file."""
    address, _, number = value.rpartition("=")
    if not number.isascii() or not number.isdigit():
        _bad(f"`{value}` is no socket of another process", "leave --inherit to the processes themselves")
    return address, int(number)


def _addresses(values: Sequence[str], settings: Settings) -> AddressOf:
    """Return where external authorizers are: as given, or by the names that Services have in a cluster."""
    from eastgate.control.authorizer.addresses import ListenAddress
    from eastgate.control.authorizer.external import ServiceAddress
    from eastgate.ir import ExternalAuthorizer

    given: dict[str, ListenAddress] = {}
    for name, value in pairs(values, "--external", _OUTPUT).items():
        given[name] = ListenAddress.of(value)

    def address_of(external: ExternalAuthorizer) -> ServiceAddress | None:
        chosen = given.get(str(external))
        if chosen is not None:
            return ServiceAddress(chosen.host, chosen.port)
        return ServiceAddress(f"{external.service}.{external.namespace}.svc.{settings.cluster_domain}", external.port)

    return address_of


def _bad(message: str, way_out: str) -> NoReturn:
    fail([Diagnostic(BAD_OPTION, message, None, way_out)], _OUTPUT)
