"""`kubectl eastgate`: the same command as a plugin of kubectl, which runs `kubectl-eastgate` of the PATH."""

from __future__ import annotations

from eastgate.cli import main as command


def main() -> None:
    """Run the command; its help calls it by the name that people typed."""
    command(prog_name="kubectl eastgate")
