"""The command `eastgate`: one file for each verb, which is imported only when that verb is used."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from eastgate._version import __version__
from eastgate.basics.collection import no_collection
from eastgate.basics.diagnostics import did_you_mean
from eastgate.basics.diagnostics.printable import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["main"]

_MODULES = {"explain": "check"}  # other verbs have a module of their own name

_GROUPS = {
    "Ask": {
        "check": "Check whether a caller may reach a destination.",
        "explain": "Check, and show the rules and YAML lines that decide.",
        "describe": "Show the policies about an object, and its allowed callers.",
        "get": "List policies, workloads, Services, routes and other objects.",
        "graph": "Show which callers can reach which destinations and ports.",
        "why": "Explain lines of a proxy's log.",
    },
    "Review": {
        "lint": "Find mistakes in policies, such as rules without effect.",
        "test": "Run decision tables and invariants.",
        "diff": "Show which requests change their verdict.",
        "convert": "Write policies in the form of another API.",
    },
    "Run": {
        "up": "Run the manifests as a mesh on this machine.",
        "call": "Make a real mTLS call through the running mesh.",
        "authorizer": "Serve decisions to Envoy, Istio, Envoy Gateway or nginx.",
    },
    "Cluster": {
        "controller": "Run the controller in a cluster.",
        "crds": "Print CustomResourceDefinitions, webhooks and schemas.",
        "inject": "Print manifests with the sidecar in their pods.",
        "bootstrap": "Print the bootstrap of an Envoy in the cluster.",
    },
    "Tools": {
        "completion": "Print the completion script of a shell.",
        "version": "Print the version, and the policies that Eastgate reads.",
    },
}
"""Each verb, in groups, with the first sentence of its help, so that listing verbs imports none of them."""

_VERBS = {verb: about for verbs in _GROUPS.values() for verb, about in verbs.items()}


class _OneLine(logging.Formatter):
    """The format of log records of libraries, which may repeat text of a peer."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


_MESH_PACKAGES = frozenset(
    ("envoy", "grpc", "h11", "hpack", "httptools", "opentelemetry", "prometheus_client", "spiffe", "watchfiles", "xds")
)
"""The import names of the packages of the extra `mesh`."""

_TRACEBACK = "EASTGATE_TRACEBACK"
_UNDECIDED = 2
_INTERRUPTED = 130


class _CommandFailure(click.ClickException):
    exit_code = _UNDECIDED


def _report_bug(error: Exception) -> None:
    """Report an unexpected failure as a bug, with the object that was being read and the way to see the traceback."""
    from eastgate.basics.tasks import describe_failure  # it imports asyncio

    lines = [f"error: this is a bug in Eastgate: {printable(describe_failure(error))}"]
    if os.environ.get(_TRACEBACK):
        import traceback

        lines += map(printable, "".join(traceback.format_exception(error)).splitlines())
    else:
        lines.append(f"  = help: set {_TRACEBACK}=1 to see the traceback, and report it")
    click.echo("\n".join([*lines, "", "nothing was decided"]), err=True)


def _report_missing(name: str) -> None:
    """Report that a package of the extra `mesh` is not installed, and how to install it."""
    from eastgate.basics.diagnostics import Diagnostic
    from eastgate.cli.output import fail
    from eastgate.control.codes import MISSING_EXTRA

    message = f"this command needs `{name}`, which is not installed"
    fail([Diagnostic(MISSING_EXTRA, message, None, "install it with `pip install 'eastgate[mesh]'`")])


@contextmanager
def _errors() -> Iterator[None]:
    """Exit with another status than 1, which means "denied", after any failure. Print messages in `printable` form."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(_INTERRUPTED)
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        raise  # they quote no input, and have line breaks of their own
    except click.UsageError as error:
        message = error.format_message()
        if message.isprintable():
            raise
        raise click.UsageError(printable(message), error.ctx) from None
    except click.ClickException as error:
        raise _CommandFailure(printable(error.format_message())) from None
    except click.exceptions.Exit:
        raise
    except BrokenPipeError:  # the reader has closed the output
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python reports it again at the end
        sys.exit(_UNDECIDED)
    except Exception as error:
        if (
            isinstance(error, ModuleNotFoundError)
            and (package := (error.name or "").partition(".")[0]) in _MESH_PACKAGES
        ):
            _report_missing(package)
        _report_bug(error)
        sys.exit(_UNDECIDED)


def _imported(name: str) -> ModuleType:
    """Import a module, and exclude its objects from garbage collection, also at the end of the process."""
    if name not in sys.modules:
        with no_collection():
            import_module(name)
        gc.freeze()
    return sys.modules[name]


def _shortened(verb: str, limit: int = 45) -> str:
    return click.Command(verb, help=_VERBS[verb]).get_short_help_str(limit)


class _Verb(click.Command):
    """A command whose help has examples, and options in groups."""

    def __init__(self, command: click.Command) -> None:
        self.__dict__.update(command.__dict__)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from eastgate.cli.helping import write_examples, write_options  # only for help

        verb = self.name or ""
        program = ctx.find_root().info_name or ""
        write_examples(verb, program if program.startswith("kubectl") else "eastgate", formatter)
        write_options(verb, self.get_params(ctx), ctx, formatter)


@cache
def _verb(name: str) -> _Verb:
    return _Verb(getattr(_imported(f"eastgate.cli.{_MODULES.get(name, name)}"), name))


class _Verbs(click.Group):
    def main(self, *args: Any, **extra: Any) -> Any:
        with _errors():  # also for click's own work before and after: completion, and writing to a closed output
            return super().main(*args, **extra)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        if logging.lastResort is not None:
            logging.lastResort.setFormatter(_OneLine())
        with _errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _VERBS:
            return None
        return _verb(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        indent = max(map(len, _VERBS))
        for group, verbs in _GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(verb.ljust(indent), about) for verb, about in verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(verb, help=_shortened(verb)) for verb in _VERBS if verb.startswith(incomplete)]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _VERBS and not args[0].startswith("-") and (near := did_you_mean(args[0], _VERBS)):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near!r}?")
        return super().resolve_command(ctx, args)


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="eastgate")
def main() -> None:
    """Decide, explain and test authorization policies for Kubernetes traffic."""
