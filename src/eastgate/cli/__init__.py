"""The command `eastgate`: one file for each verb, which is imported only when that verb is used."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from eastgate._version import __version__
from eastgate.collection import no_collection
from eastgate.diagnostics import did_you_mean
from eastgate.diagnostics.printable import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["main"]

_MODULES = {"explain": "check"}  # the others have one of their own

_VERBS = {
    "authorizer": "Answer any proxy whether a request may pass: Envoy, Istio, Envoy Gateway, nginx.",
    "bootstrap": "Print the bootstrap of an Envoy that gets everything else from the control plane in the cluster.",
    "call": "Make a real mTLS call through the running mesh; say what the proxy did, and why.",
    "check": "May this source reach that destination?",
    "completion": "Print the completion script of a shell.",
    "controller": "Run in a cluster: watch, decide, enforce, and say in status what is in force.",
    "convert": "Write policies as another API has them.",
    "crds": "CustomResourceDefinitions of the policies, their admission policies, and JSON Schemas for editors.",
    "describe": "What affects a thing, and who may reach it.",
    "diff": "Say which requests change their verdict between OLD and NEW, or prove that none does.",
    "explain": "The same as check, with every layer and stage, and a caret under the YAML that decided.",
    "get": "List policies, workloads, pods, services, gateways, routes, backends, namespaces, or any kind.",
    "graph": "Who can reach whom, on which port, and on what it depends.",
    "inject": "Print manifests with the sidecar in their pods, as the cluster's webhook would make them.",
    "lint": "Find rules without effect, targets that select nothing, workloads that nothing can reach, and the like.",
    "test": "Run decision tables: questions with the answers that they must get.",
    "up": "Run the manifests as a mesh on this machine, and enforce every change that is saved.",
    "version": "The version, and the policies that it reads.",
    "why": "Explain lines of a proxy's log: by the manifests, or by the running mesh without -f.",
}
"""Each verb, and the first sentence of its help, so that listing them imports none."""


class _OneLine(logging.Formatter):
    """The format of what libraries log, which may repeat what a peer sent."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


_TRACEBACK = "EASTGATE_TRACEBACK"
_UNDECIDED = 2
_INTERRUPTED = 130


class _CommandFailure(click.ClickException):
    exit_code = _UNDECIDED


def _report_bug(error: Exception) -> None:
    """Report an unexpected failure: that it is a bug, the object that was read, and how to see the traceback."""
    from eastgate.tasks import describe_failure  # it brings asyncio along

    lines = [f"error: this is a bug in Eastgate: {printable(describe_failure(error))}"]
    if os.environ.get(_TRACEBACK):
        import traceback

        lines += map(printable, "".join(traceback.format_exception(error)).splitlines())
    else:
        lines.append(f"  = help: set {_TRACEBACK}=1 to see the traceback, and report it")
    click.echo("\n".join([*lines, "", "nothing was decided"]), err=True)


@contextmanager
def _errors() -> Iterator[None]:
    """Exit with another status than 1, which means "denied", after any failure. Print messages in `printable` form."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(_INTERRUPTED)
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        raise  # they repeat nothing, and have line breaks of their own
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
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at the end
        sys.exit(_UNDECIDED)
    except Exception as error:
        _report_bug(error)
        sys.exit(_UNDECIDED)


def _imported(name: str) -> ModuleType:
    """Import a module, and keep the garbage collector off what comes with it, also when the process ends."""
    if name not in sys.modules:
        with no_collection():
            import_module(name)
        gc.freeze()
    return sys.modules[name]


def _shortened(verb: str, limit: int = 45) -> str:
    return click.Command(verb, help=_VERBS[verb]).get_short_help_str(limit)


class _Verbs(click.Group):
    def main(self, *args: Any, **extra: Any) -> Any:
        with _errors():  # also for what click does before and after: completion, writing to a closed output
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
        command: click.Command = getattr(_imported(f"eastgate.cli.{_MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        limit = formatter.width - 6 - max(map(len, _VERBS))
        with formatter.section("Commands"):
            formatter.write_dl([(verb, _shortened(verb, limit)) for verb in _VERBS])

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
