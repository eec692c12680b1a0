"""Options that several commands share, and what they mean."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import click

from eastgate.authority.authority import Authority
from eastgate.authority.config import LintIgnore, read_config, read_ignores
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import DocumentSource, ManifestError, read_manifests
from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.cli import complete
from eastgate.cli.output import fail, say
from eastgate.cli.progress import progress
from eastgate.cluster.ends import Destination, Source, parse_destination, parse_source
from eastgate.cluster.unread import Handling, describe_unread
from eastgate.reading.manifests import Bounds, Kustomized
from eastgate.settings import BAD_SETTING, Settings, SettingsError, Sidecars

if TYPE_CHECKING:
    from eastgate.reading.jwt import KeySource

F = TypeVar("F", bound=Callable[..., object])

BAD_OPTION = Code("EG0002", "option not understood", "An option of the form key=value has another form.")


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_MORE_FILES = click.argument("more_files", nargs=-1, metavar="[PATH]...", type=click.Path(allow_dash=True))


def file_options(command: F) -> F:
    """Add the options for manifests in files that are followed as they are saved, also without -f."""
    return _reading_options(_namespace(_kustomizations(_MORE_FILES(command))))


def manifest_options(command: F) -> F:
    """Add the options for manifests, also without -f, and for reading them."""
    return reading_options(_MORE_FILES(command))


follow_option = click.option(
    "--follow", is_flag=True, help="Follow symbolic links, and paths in tables, that lead out of the given folders."
)


exclude_option = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Skip files that match, as in a .gitignore file. May be repeated.",
)


def reading_options(command: F) -> F:
    """Add the options for manifests, and for reading them."""
    return _reading_options(_cluster(_namespace(_kustomizations(command))))


def inspecting_options(command: F) -> F:
    """Return the same without `-n`, which means more to the command."""
    return _reading_options(_cluster(_kustomizations(command)))


def _cluster(command: F) -> F:
    """Read `--cluster` as a path."""

    @functools.wraps(command)
    def with_cluster(
        *arguments: object,
        files: tuple[object, ...],
        cluster: bool,
        kubeconfig: str | None,
        context: str | None,
        namespace: str | None,
        settings: tuple[str, ...],
        **options: object,
    ) -> object:
        path = cluster_path(cluster, kubeconfig, context, namespace)
        if path is not None:
            files, settings = (*files, path), (SEEN_SIDECARS, *settings)
        return command(*arguments, files=files, namespace=namespace, settings=settings, **options)

    return cluster_options(cast("F", with_cluster))


SEEN_SIDECARS = f"sidecars={Sidecars.ACTUAL}"
"""What is known of the pods of a cluster, and of no manifest: which of them have a proxy."""


def cluster_options(command: F) -> F:
    """Add the options that name a cluster."""
    return _all(
        click.option(
            "--cluster",
            is_flag=True,
            help="Read the objects of a cluster instead of manifests; by default of the current context.",
        ),
        click.option("--kubeconfig", type=click.Path(), metavar="FILE", help="Kubeconfig of the cluster."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
    )(command)


def cluster_path(
    cluster: bool, kubeconfig: str | None, context: str | None, namespace: str | None
) -> DocumentSource | None:
    """Return the cluster that options name; None where they name none."""
    if not cluster and kubeconfig is None and context is None:
        return None
    from eastgate.authority.sources.listing import ClusterPath  # few commands ask a cluster

    return ClusterPath(kubeconfig, context, namespace)


def cluster_arguments(paths: Iterable[object]) -> tuple[str, ...]:
    """Return the arguments by which another command reads the cluster among paths; none where there is none."""
    return next((path.arguments for path in paths if isinstance(path, DocumentSource)), ())


def reading_arguments(
    paths: Iterable[object],
    settings: Sequence[str] = (),
    config: str | None = None,
    *,
    follow: bool = False,
    exclude: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the arguments by which another command reads the same, so that a command in output can be pasted."""
    arguments: list[str] = []
    for path in paths:
        match path:
            case DocumentSource():
                arguments += path.arguments
            case Kustomized():
                arguments += ["-k", os.fspath(path)]
            case _:
                arguments += ["-f", str(path)]
    for setting in settings:
        arguments += ["--set", setting] if setting != SEEN_SIDECARS else []
    arguments += ["--config", config] if config is not None else []
    arguments += ["--follow"] if follow else []
    for pattern in exclude:
        arguments += ["--exclude", pattern]
    return tuple(arguments)


def _namespace(command: F) -> F:
    """Read `-n NS` as `--set namespace=NS`."""

    @functools.wraps(command)
    def with_namespace(
        *arguments: object, namespace: str | None, settings: tuple[str, ...], **options: object
    ) -> object:
        return command(*arguments, settings=with_default_namespace(settings, namespace), **options)

    option = click.option(
        "-n", "--namespace", metavar="NS", help="Namespace of objects that do not name one. Default: `default`."
    )
    return cast("F", option(with_namespace))


def with_default_namespace(settings: tuple[str, ...], namespace: str | None) -> tuple[str, ...]:
    """Return the settings of the command line, with the namespace of `-n`."""
    return settings if namespace is None else (*settings, f"namespace={namespace}")


def _kustomizations(command: F) -> F:
    """Read `-k DIR` as a path that is rendered."""

    @functools.wraps(command)
    def with_kustomizations(
        *arguments: object, files: tuple[str, ...], kustomize: tuple[str, ...], **options: object
    ) -> object:
        return command(*arguments, files=(*files, *map(Kustomized, kustomize)), **options)

    option = click.option(
        "-k",
        "--kustomize",
        multiple=True,
        metavar="DIR",
        type=click.Path(),
        help="Folder with a kustomization, which kustomize or kubectl renders. May be repeated.",
    )
    return cast("F", option(with_kustomizations))


def _reading_options(command: F) -> F:
    return _all(
        click.option(
            "-f",
            "--filename",
            "files",
            multiple=True,
            metavar="PATH",
            type=click.Path(allow_dash=True),
            help="File, folder or - (standard input). May be repeated.",
        ),
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Setting, such as denyOnly=allow. May be repeated.",
        ),
        click.option(
            "--config",
            type=click.Path(dir_okay=False),
            help="File with settings. Default: eastgate.yaml in the current folder, if it exists.",
        ),
        follow_option,
        exclude_option,
        click.option("-v", "--verbose", is_flag=True, help="Also print what was read and what was skipped."),
    )(command)


# One option for whoever wants no answer where there is any doubt, whatever the doubt is about. What it means for a
# question: names and methods that are probably misspelt (warnings otherwise) are errors.
strict_option = click.option(
    "--strict",
    is_flag=True,
    help="Stop at every error, also in a policy that is not about the question, and treat probable typos as errors.",
)

jwks_option = click.option(
    "--jwks",
    multiple=True,
    metavar="ISSUER=FILE",
    help="File with the keys of a token issuer, which is then not asked. May be repeated.",
)

output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the answer.",
)


def question_options(command: F) -> F:
    """Add the options of a question: from where, to where, and with what."""
    return _all(
        click.option(
            "--from",
            "source",
            required=True,
            metavar="SRC",
            shell_complete=complete.sources,
            help="sa:NS/NAME, pod:NS/NAME, spiffe://.., id:DNS-NAME, ip:ADDRESS or anonymous.",
        ),
        click.option(
            "--to",
            required=True,
            metavar="DST",
            shell_complete=complete.destinations,
            help="pod:NS/NAME, service:NS/NAME, gateway:NS/NAME, route:NS/NAME, backend:NS/NAME, authconfig:NS/NAME, "
            "host:NAME or ip:ADDRESS.",
        ),
        click.option("--port", metavar="PORT", help="Destination port: its number, or its name."),
        click.option("--method", help="HTTP method."),
        click.option("--path", help="HTTP path."),
        click.option("--host", help="HTTP host."),
        click.option("--sni", help="TLS server name."),
        click.option("--header", "headers", multiple=True, metavar="K=V", help="Header. May be repeated."),
        click.option("--http-protocol", metavar="HTTP/1.1|HTTP/2|..", help="Version of HTTP. Default: HTTP/1.1."),
        click.option("--source-ip", help="Address of the caller."),
        click.option("--protocol", type=click.Choice(["tcp", "udp", "sctp"]), help="Transport protocol. Default: tcp."),
        click.option(
            "--forwarded-for", metavar="ADDRESS", help="Address of the client, as proxies in front report it."
        ),
        click.option("--plaintext", is_flag=True, help="The connection has no mTLS: the caller has no identity."),
        click.option(
            "--claim", "claims", multiple=True, metavar="K=V", help="Claim of the verified token. May be repeated."
        ),
        click.option("--no-token", is_flag=True, help="The request has no token."),
        click.option("--token", metavar="TOKEN|@FILE", help="Token, which the keys of its issuer verify."),
        jwks_option,
        click.option(
            "--client-certificate",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="Certificate of the client, in PEM.",
        ),
        click.option("--mcp-method", help="MCP method."),
        click.option("--tool", help="MCP tool."),
        click.option(
            "--external-auth",
            multiple=True,
            metavar="SVC.NS:PORT=allow|deny|error",
            help="Answer of an external authorizer. May be repeated.",
        ),
    )(command)


def pairs(values: Sequence[str], option: str, output: str) -> dict[str, str]:
    """Read options of the form key=value."""
    parsed = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            fail([Diagnostic(BAD_OPTION, f"`{text}` is not key=value", None, f"write {option} key=value")], output)
        parsed[key] = value
    return parsed


def headers_from(values: Sequence[str], output: str) -> dict[str, list[str]] | None:
    """Return all values of each header that `--header` gives; None where it gives none."""
    headers: dict[str, list[str]] = {}
    for header in values:
        for name, value in pairs([header], "--header", output).items():
            headers.setdefault(name, []).append(value)
    return headers or None


def settings_from(values: Sequence[str], config: str | None, output: str) -> Settings:
    """Return the settings: the file's, and over them those of the command line."""
    path = Path(config) if config else Path("eastgate.yaml")
    try:
        base = read_config(path, explicit=bool(config)) if config or os.path.lexists(path) else Settings()
        return Settings.from_mapping(pairs(values, "--set", output), base)
    except ManifestError as error:
        fail(error.diagnostics, output)
    except SettingsError as error:
        fail([Diagnostic(BAD_SETTING, str(error))], output)


def ignores_from(config: str | None, output: str) -> tuple[LintIgnore, ...]:
    """Return the findings of lint that the project's file ignores."""
    path = Path(config) if config else Path("eastgate.yaml")
    try:
        return read_ignores(path, explicit=bool(config)) if config or os.path.lexists(path) else ()
    except ManifestError as error:
        fail(error.diagnostics, output)


def _claim(value: str) -> object:
    """Read a claim as it is written; lists and objects are JSON."""
    if value.startswith(("[", "{")):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _token(value: str | None, output: str) -> str | None:
    """Read a token, or `@` and a file that holds it, which keeps it out of the list of processes."""
    if value is None or not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8").strip()
    except (OSError, ValueError):
        fail([Diagnostic(BAD_OPTION, f"cannot read the token from `{value[1:]}`")], output)


def _file(path: str | None) -> str | None:
    return Path(path).read_text("utf-8", "replace") if path is not None else None


def keys_from(options: dict[str, object], output: str) -> KeySource | None:
    """Return the keys of token issuers: those given, and where there is a token, those that issuers publish."""
    values = options["jwks"]
    given = tuple(str(value) for value in values) if isinstance(values, tuple) else ()
    return issuer_keys(given, output) if given or options["token"] is not None else None


def issuer_keys(given: Sequence[str], output: str) -> KeySource:
    """Return the keys of token issuers: those given as ISSUER=FILE or, where none are, those that issuers publish."""
    from eastgate.reading.jwt import DiscoveredKeys, KnownKeys  # few commands need it

    files = pairs(list(given), "--jwks", output)
    try:
        return (
            KnownKeys.from_files({issuer: Path(file) for issuer, file in files.items()}) if files else DiscoveredKeys()
        )
    except ValueError as error:
        fail([Diagnostic(BAD_OPTION, str(error), None, "write --jwks <issuer URL>=<file with its JWKS>")], output)


def load_authority(
    files: Sequence[str | os.PathLike[str]],
    settings: Settings,
    output: str,
    *,
    bounds: Bounds,
    verbose: bool = False,
    keys: KeySource | None = None,
    strict: bool = False,
    unread: Handling = Handling.BY_KIND,
) -> Authority:
    """Read the manifests, or say everything that is wrong with them and exit."""
    if not files:
        raise click.UsageError("no manifests: give files or folders with -f, or --cluster")
    with progress("reading manifests") as on_file:
        manifests = read_manifests(files, settings, stdin=sys.stdin.buffer, on_file=on_file, bounds=bounds)
    if verbose:
        say(
            f"read {len(manifests.objects)} objects and {len(manifests.policies)} policies; "
            f"left aside {manifests.unused} of kinds that are not used" + left_out(manifests.excluded),
            err=True,
        )
        for line in describe_unread(manifests.unread.objects):
            say(printable(line), err=True)
    try:
        return Authority(manifests, settings, keys, strict=strict, unread=unread)
    except ManifestError:
        fail(manifests.reporter, output)


def left_out(files: int) -> str:
    """Say how many files patterns left out."""
    return f"; left out {files} file{'' if files == 1 else 's'}" if files else ""


def _port(text: str | None) -> int | None:
    """Return the number of a port; None for a name, which only the destination knows."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _ends(options: dict[str, object], settings: Settings, output: str) -> tuple[Source, Destination]:
    given = options["settings"]
    is_given = isinstance(given, tuple) and any(str(value).startswith("namespace=") for value in given)
    try:
        return (
            parse_source(str(options["source"]), settings.namespace, is_given=is_given),
            parse_destination(str(options["to"]), settings.namespace),
        )
    except QuestionError as error:
        fail(error.diagnostics, output)


def question_from(options: dict[str, object], settings: Settings, output: str) -> Question:
    """Return the question that the options of a command ask, or say what is wrong with its ends and exit."""

    def text(name: str) -> str | None:
        value = options[name]
        return value if isinstance(value, str) else None

    def mapping(name: str, option: str) -> dict[str, str]:
        value = options[name]
        return pairs([str(pair) for pair in value], option, output) if isinstance(value, tuple) else {}

    port = text("port")
    answers = mapping("external_auth", "--external-auth")
    for authorizer, answer in answers.items():
        if answer not in ("allow", "deny", "error"):
            message = f"`{answer}` is not what an authorizer answers"
            way_out = f"write allow, deny or error: --external-auth {authorizer}=allow"
            fail([Diagnostic(BAD_OPTION, message, None, way_out)], output)
    return Question(
        *_ends(options, settings, output),
        port=_port(port),
        method=text("method"),
        path=text("path"),
        host=text("host"),
        sni=text("sni"),
        headers=headers_from(headers, output) if isinstance(headers := options["headers"], tuple) else None,
        mcp_method=text("mcp_method"),
        tool=text("tool"),
        source_ip=text("source_ip"),
        protocol=text("protocol"),
        forwarded_for=text("forwarded_for"),
        plaintext=options["plaintext"] is True,
        http_protocol=text("http_protocol"),
        claims={name: _claim(value) for name, value in mapping("claims", "--claim").items()} or None,
        token=_token(text("token"), output),
        no_token=options["no_token"] is True,
        certificate=_file(text("client_certificate")),
        external_auth=answers,
    )
