"""The interface of a conversion that a dialect brings: it writes manifests, and reports what gets lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.spans import Span
from eastgate.reading.manifests import Document, Plain
from eastgate.settings import Settings

P = TypeVar("P")


class ConversionJob(Protocol):
    """One run of a conversion."""

    @property
    def settings(self) -> Settings:
        """Return the settings that the policies were read with."""
        ...

    def write(self, document: Document, manifest: dict[str, Plain]) -> None:
        """Add a manifest that a document was converted to."""
        ...

    def keep(self, document: Document, code: Code, message: str, span: Span | None) -> None:
        """Leave a policy as it is, to stay in force."""
        ...

    def lose(self, code: Code, message: str, span: Span | None) -> None:
        """Report that what is converted is narrower."""
        ...


Converter: TypeAlias = Callable[[Sequence[tuple[P, Document]], ConversionJob], None]
"""Converts policies of one dialect, each with its document. What comes out, and is kept, never allows more."""
