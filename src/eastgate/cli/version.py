"""`version`: the installed versions."""

from __future__ import annotations

import platform

import click

from eastgate import dialects
from eastgate._version import __version__
from eastgate.cli.output import emit_json, output_option, print_lines


@click.command()
@output_option("text", "json", about="Format of the answer.")
def version(output: str) -> None:
    """Print the version, and the policies that Eastgate reads."""
    kinds = [f"{kind.group}/{kind.version} {kind.kind}" for dialect in dialects.DIALECTS for kind in dialect.kinds]
    if output == "json":
        emit_json({"version": __version__, "python": platform.python_version(), "reads": kinds})
    else:
        print_lines(f"eastgate {__version__} (Python {platform.python_version()})")
        print_lines("reads " + "\n      ".join(kinds))
