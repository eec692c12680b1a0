"""The errors of a mesh on a laptop, in words for the person who started it."""

from __future__ import annotations


class LocalMeshError(Exception):
    """An error of the local mesh. `help` says what the user can do about it, if anything."""

    def __init__(self, message: str, *, help: str = "") -> None:  # noqa: A002 - the word of our diagnostics
        super().__init__(message)
        self.help = help

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}: {self.help}" if self.help else message
