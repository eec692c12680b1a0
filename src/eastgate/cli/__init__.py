"""The command `eastgate`: one file for each verb, which is read only when that verb is used."""

from __future__ import annotations

from importlib import import_module

import click

from eastgate._version import __version__

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


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _VERBS:
            return None
        command: click.Command = getattr(import_module(f"eastgate.cli.{_VERBS[cmd_name]}"), cmd_name)
        return command


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="eastgate")
def main() -> None:
    """Decide, explain and test authorization policies for Kubernetes traffic."""
