"""The command `eastgate`: one file for each verb."""

from __future__ import annotations

import click

from eastgate._version import __version__
from eastgate.cli.check import check, explain
from eastgate.cli.completion import completion
from eastgate.cli.convert import convert
from eastgate.cli.crds import crds
from eastgate.cli.describe import describe
from eastgate.cli.get import get
from eastgate.cli.lint import lint
from eastgate.cli.test import test
from eastgate.cli.version import version

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="eastgate")
def main() -> None:
    """Decide, explain and test authorization policies for Kubernetes traffic."""


for _command in (check, completion, convert, crds, describe, explain, get, lint, test, version):
    main.add_command(_command)
