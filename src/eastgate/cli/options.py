"""Options that several commands share. A command gets each group of them as one record."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import click

from eastgate.authority.authority import Authority
from eastgate.authority.config import read_config
from eastgate.authority.environments import Deployment
from eastgate.authority.leaving_out import leave_out
from eastgate.authority.reading import DocumentSource, ManifestError, Manifests, read_documents, read_manifests
from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli import complete
from eastgate.cli.output import Decorator, fail, left_out, print_lines
from eastgate.cli.progress import progress
from eastgate.cluster.unread import Handling, describe_unread, list_left_out
from eastgate.reading.manifests import Bounds, Kustomized, ReadResult
from eastgate.settings import BAD_SETTING, Settings, SettingsError, Sidecars

if TYPE_CHECKING:
    from eastgate.authority.sources.files import FileSource
    from eastgate.reading.jwt import KeySource
    from eastgate.reading.repository import Environment, RepositoryOptions

BAD_OPTION = Code("EG0002", "option not understood", "An option of the form key=value has another form.")

SEEN_SIDECARS = f"sidecars={Sidecars.ACTUAL}"
"""With --cluster, the pods themselves show which of them have a proxy."""


def record(parameter: str, make: Callable[..., object], *options: Decorator) -> Decorator:
    """Add options to a command. The command gets the result of `make` for their values, as one parameter."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_record(*arguments: object, **values: Any) -> object:
            own = {name: values.pop(name) for name in names}
            return command(*arguments, **{parameter: make(**own)}, **values)

        parameters: list[click.Parameter] = with_record.__dict__.setdefault("__click_params__", [])
        known = len(parameters)
        for option in reversed(options):
            option(with_record)
        names = [str(each.name) for each in parameters[known:]]
        return with_record

    return decorate


# Manifests, clusters and settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The manifests or the cluster that a command reads, and the way to read them.

    - `named` are paths of options, and `more` paths without an option.
    - `values` are settings in the form of `--set`.
    - `environments` are the names, or patterns of names, of the selected environments.
    - `deployment` is the selected environment, which replaces the paths.
    - `stdin` is the content of standard input, if it was read already.
    """

    named: tuple[str | os.PathLike[str], ...] = ()
    more: tuple[str, ...] = ()
    namespace: str | None = None
    values: tuple[str, ...] = ()
    config: str | None = None
    follow: bool = False
    exclude: tuple[str, ...] = ()
    verbose: bool = False
    strict: bool = False
    unread: Handling = Handling.BY_KIND
    environments: tuple[str, ...] = ()
    helm: str | None = None
    helm_values: tuple[str, ...] = ()
    deployment: Deployment | None = None
    stdin: bytes | None = None

    @classmethod
    def of(
        cls,
        *,
        files: tuple[str, ...],
        kustomize: tuple[str, ...] = (),
        more_files: tuple[str, ...] = (),
        cluster: bool = False,
        kubeconfig: str | None = None,
        context: str | None = None,
        settings: tuple[str, ...] = (),
        namespace: str | None = None,
        unread: str | None = None,
        **others: Any,
    ) -> Sources:
        """Return the sources in the options of a command: `-k` and `--cluster` are paths, `-n` is a setting."""
        live = cluster_path(cluster, kubeconfig, context, namespace)
        return cls(
            named=(*files, *map(Kustomized, kustomize), *(() if live is None else (live,))),
            more=more_files,
            namespace=namespace,
            values=(
                *(() if live is None else (SEEN_SIDECARS,)),
                *settings,
                *(() if namespace is None else (f"namespace={namespace}",)),
            ),
            unread=handling_of(unread),
            **others,
        )

    @property
    def paths(self) -> tuple[str | os.PathLike[str], ...]:
        """Return all paths: those of options, then the others."""
        return (*self.named, *self.more)

    @property
    def required_paths(self) -> tuple[str | os.PathLike[str], ...]:
        """Return all paths. Raises a usage error if there are none."""
        if not self.paths:
            raise click.UsageError("no manifests: give files or folders with -f, or --cluster")
        return self.paths

    @property
    def bounds(self) -> Bounds:
        """Return the bounds that select the files of the paths."""
        return Bounds.of(self.paths, follow=self.follow, exclude=self.exclude)

    def of_paths(self, *paths: str | os.PathLike[str]) -> Sources:
        """Return the same options with other paths."""
        return replace(self, named=paths, more=(), deployment=None)

    @property
    def repository(self) -> RepositoryOptions | None:
        """Return the options for building environments of a repository; None for the defaults."""
        if self.helm is None and not self.helm_values:
            return None
        from eastgate.reading.repository import RepositoryOptions  # files have no environments

        return RepositoryOptions(helm=self.helm, helm_values=self.helm_values)

    @property
    def read_paths(self) -> tuple[str | os.PathLike[str], ...]:
        """Return the paths to read: those of the environment, if one is chosen."""
        return self.paths if self.deployment is None else self.deployment.paths

    @property
    def found(self) -> tuple[Environment, ...]:
        """Return the environments to read."""
        return () if self.deployment is None else self.deployment.environments

    def settings(self) -> Settings:
        """Return the settings: those of the file, overridden by those of the command line."""
        return settings_from(self.values, self.config)

    def manifests(self, settings: Settings) -> Manifests:
        """Read the manifests. The result includes their errors."""
        with progress("reading manifests") as on_file:
            return read_manifests(self.read_paths, settings, stdin=self._stdin, on_file=on_file, bounds=self.bounds)

    def documents(self, settings: Settings) -> ReadResult:
        """Read the documents as they are written. The result includes their errors."""
        with progress("reading manifests") as on_file:
            return read_documents(self.read_paths, settings, stdin=self._stdin, on_file=on_file, bounds=self.bounds)

    @property
    def _stdin(self) -> BinaryIO:
        return sys.stdin.buffer if self.stdin is None else io.BytesIO(self.stdin)

    def file_source(self, jwks: Sequence[str]) -> FileSource:
        """Return a source that reads the files again when they change; `jwks` are the keys of issuers."""
        from eastgate.authority.sources.files import FileSource  # most commands read once

        return FileSource(
            self.paths,
            follow=self.follow,
            exclude=self.exclude,
            strict=self.strict,
            unread=self.unread,
            keys=issuer_keys(jwks),
            environments=self.environments,
            repository=self.repository,
        )

    def authority(self, settings: Settings, keys: KeySource | None = None) -> Authority:
        """Read the manifests. If they have errors that stop all answers, print all of them and exit."""
        _ = self.required_paths
        manifests = self.manifests(settings)
        if self.verbose:
            print_lines(
                f"read {len(manifests.objects)} objects and {len(manifests.policies)} policies; "
                f"left aside {manifests.unused} of unused kinds"
                + (f", and {manifests.skipped} documents that are no manifests" if manifests.skipped else "")
                + left_out(manifests.excluded),
                err=True,
            )
            for line in describe_unread(manifests.unread.objects):
                print_lines(printable(line), err=True)
        return self.authority_on(manifests, keys)

    def authority_on(self, manifests: Manifests, keys: KeySource | None = None) -> Authority:
        """Build an authority on the readable manifests. If an error stops all answers, print it and exit."""
        if not self.strict:
            leave_out(manifests)
        try:
            authority = Authority(manifests, None, keys, strict=self.strict, unread=self.unread)
        except ManifestError as error:
            fail([*(each for each in manifests.reporter if not each.is_error), *error.diagnostics])
        if self.verbose:
            for line in list_left_out(manifests.unread.objects, None):
                print_lines(printable(line), err=True)
        return authority

    def arguments(self, paths: Iterable[object] | None = None) -> tuple[str, ...]:
        """Return the arguments of another command with the same sources, for commands in output that users paste."""
        arguments: list[str] = []
        for path in self.paths if paths is None else paths:
            match path:
                case DocumentSource():
                    arguments += path.arguments
                case Kustomized():
                    arguments += ["-k", os.fspath(path)]
                case _:
                    arguments += ["-f", str(path)]
        for name in self.environments:
            arguments += ["--environment", name]
        arguments += ["--helm", self.helm] if self.helm is not None else []
        for file in self.helm_values:
            arguments += ["--helm-values", file]
        for value in self.values:
            arguments += ["--set", value] if value != SEEN_SIDECARS else []
        arguments += ["--config", self.config] if self.config is not None else []
        arguments += ["--follow"] if self.follow else []
        for pattern in self.exclude:
            arguments += ["--exclude", pattern]
        arguments += ["--unread", self.unread.value] if self.unread is not Handling.BY_KIND else []
        return tuple(arguments)


def cluster_path(
    cluster: bool, kubeconfig: str | None, context: str | None, namespace: str | None
) -> DocumentSource | None:
    """Return the cluster in the options, or None."""
    if not cluster and kubeconfig is None and context is None:
        return None
    from eastgate.authority.sources.listing import ClusterPath  # few commands read a cluster

    return ClusterPath(kubeconfig, context, namespace)


more_files = click.argument("more_files", nargs=-1, metavar="[PATH]...", type=click.Path(allow_dash=True))

cluster_options = (
    click.option("--cluster", is_flag=True, help="Read a cluster instead of manifests."),
    click.option("--kubeconfig", type=click.Path(), metavar="FILE", help="Kubeconfig of the cluster."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: the current one."),
)

helm_options = (
    click.option("--helm", metavar="PATH", type=click.Path(), help="Path of the helm program, which renders charts."),
    click.option(
        "--helm-values",
        multiple=True,
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Values file that overrides the values of charts.",
    ),
)


environment_options = (
    click.option(
        "--environment",
        "environments",
        multiple=True,
        metavar="NAME",
        shell_complete=complete.environments,
        help="Read only this environment of a repository. `*` matches any text.",
    ),
    *helm_options,
)

default_namespace = click.option("-n", "--namespace", metavar="NS", help="Namespace of objects without one.")

settings_options = (
    click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Setting, such as denyOnly=allow."),
    click.option("--config", type=click.Path(dir_okay=False), help="File with settings. Default: eastgate.yaml"),
)

follow_option = click.option("--follow", is_flag=True, help="Follow links and paths out of the folders.")

exclude_option = click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Skip files, by a pattern as in .gitignore.",
)

# One option refuses answers in any case of doubt. For a question, probable misspellings of names and methods become
# errors (otherwise they are warnings).
strict_option = click.option("--strict", is_flag=True, help="Stop at any error, and at probable typos.")

unread_option = click.option(
    "--unread",
    type=click.Choice([each.value for each in Handling if each is not Handling.BY_KIND]),
    help="Treatment of policies that Eastgate cannot read. Default: warn, or error if their targets are unknown.",
)

jwks_option = click.option(
    "--jwks",
    multiple=True,
    metavar="ISSUER=FILE",
    help="Keys of a token issuer (JWKS). Otherwise Eastgate fetches them from the issuer.",
)


def handling_of(unread: str | None) -> Handling:
    """Parse the value of `--unread`."""
    return Handling.BY_KIND if unread is None else Handling(unread)


_READING_OPTIONS = (
    click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        metavar="PATH",
        type=click.Path(allow_dash=True),
        help="File, folder, or - for standard input.",
    ),
    click.option(
        "-k",
        "--kustomize",
        multiple=True,
        metavar="DIR",
        type=click.Path(),
        help="Folder that kustomize or kubectl renders.",
    ),
    *environment_options,
    *settings_options,
    follow_option,
    exclude_option,
    click.option("-v", "--verbose", is_flag=True, help="Also print the numbers of read and skipped objects."),
    unread_option,
)


def source_options(*others: Decorator, namespace: Decorator = default_namespace) -> Decorator:
    """Add the options for manifests and how to read them, and `others`, as the record `sources`."""
    return record("sources", Sources.of, *_READING_OPTIONS, namespace, *others)


def pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """Parse options of the form key=value."""
    parsed = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            bad_option(f"`{text}` is not key=value", f"write {option} key=value")
        parsed[key] = value
    return parsed


def settings_from(settings: Sequence[str], config: str | None) -> Settings:
    """Return the settings: those of the file, overridden by those of the command line."""
    try:
        return Settings.from_mapping(pairs(settings, "--set"), read_config(config))
    except ManifestError as error:
        fail(error.diagnostics)
    except SettingsError as error:
        fail([Diagnostic(BAD_SETTING, str(error))])


def issuer_keys(given: Sequence[str]) -> KeySource:
    """Return the keys of token issuers: those given as ISSUER=FILE, or else those that issuers publish."""
    from eastgate.reading.jwt import DiscoveredKeys, KnownKeys  # few commands need it

    files = pairs(given, "--jwks")
    try:
        return (
            KnownKeys.from_files({issuer: Path(file) for issuer, file in files.items()}) if files else DiscoveredKeys()
        )
    except ValueError as error:
        bad_option(str(error), "write --jwks <issuer URL>=<file with its JWKS>")


def bad_option(message: str, way_out: str | None = None) -> NoReturn:
    """Print the error of an option, and exit."""
    fail([Diagnostic(BAD_OPTION, message, None, way_out)])
