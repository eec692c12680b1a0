"""`completion`: shell completion scripts."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from eastgate.cli.output import emit


@click.command(epilog='Load the script with: eval "$(eastgate completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    completion_class = get_completion_class(shell)
    assert completion_class is not None  # noqa: S101 - click knows the three shells
    root = context.find_root().command
    script = completion_class(root, {}, "eastgate", "_EASTGATE_COMPLETE")
    emit(script.source_template % script.source_vars() + "\n")
