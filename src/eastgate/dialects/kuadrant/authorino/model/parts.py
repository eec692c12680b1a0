"""Parts of a scheme, and whether they look at the path of a request."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.dialects.kuadrant.authorino.paths import PATH_OF_REQUEST, Path, touched


class Part:
    """A part of a scheme. One that does not say whether it looks at the path counts as one that does."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:
        """Return whether an expression in it may look at the path of the request."""
        return True


class Constant(Part):
    """A part without expressions."""

    __slots__ = ()

    @property
    def looks_at_path(self) -> bool:
        return False


def reach_path(mentions: Iterable[Path]) -> bool:
    return touched(mentions, PATH_OF_REQUEST) is not None


def look_at_path(*parts: Part | None) -> bool:
    return any(part.looks_at_path for part in parts if part is not None)
