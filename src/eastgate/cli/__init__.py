"""The command `eastgate`: one file for each verb, which is read only when that verb is used."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from eastgate._version import __version__
from eastgate.diagnostics import did_you_mean
from eastgate.printable import printable

__all__ = ["main"]

_VERBS = {
    "call": "call",
    "check": "check",
    "completion": "completion",
    "convert": "convert",
    "crds": "crds",
    "describe": "describe",
    "explain": "check",
    "get": "get",
    "lint": "lint",
    "test": "test",
    "up": "up",
    "version": "version",
    "why": "why",
}
"""Each verb, and the file that it is in."""


class _OneLine(logging.Formatter):
    """What a library logs, which may repeat what a peer sent."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@contextmanager
def _printable_errors() -> Iterator[None]:
    """Make what is said about a wrong command line `printable`: it repeats words of that line."""
    try:
        yield
    except (click.MissingParameter, click.exceptions.NoArgsIsHelpError):
        raise  # they repeat nothing, and have line breaks of their own
    except click.UsageError as error:
        message = error.format_message()
        if message.isprintable():
            raise
        raise click.UsageError(printable(message), error.ctx) from None
    except click.ClickException as error:
        raise click.ClickException(printable(error.format_message())) from None


class _Verbs(click.Group):
    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _printable_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        if logging.lastResort is not None:
            logging.lastResort.setFormatter(_OneLine())
        with _printable_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _VERBS:
            return None
        command: click.Command = getattr(import_module(f"eastgate.cli.{_VERBS[cmd_name]}"), cmd_name)
        return command

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
