"""`kubectl eastgate`: the same command as a plugin of kubectl, which runs `kubectl-eastgate` of the PATH."""

from __future__ import annotations

from eastgate.cli import main as command


def main() -> None:
    """Run the command. Its help has the name that the user typed."""
    command(prog_name="kubectl eastgate")
