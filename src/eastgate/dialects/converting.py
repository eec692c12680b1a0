"""The interface of conversions: a dialect writes manifests, and reports losses."""

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
        """Return the settings with which the policies were read."""
        ...

    def write(self, document: Document, manifest: dict[str, Plain]) -> None:
        """Add a manifest that is the result of converting a document."""
        ...

    def keep(self, document: Document, code: Code, message: str, span: Span | None) -> None:
        """Keep a policy in force as it is."""
        ...

    def lose(self, code: Code, message: str, span: Span | None) -> None:
        """Report that the converted policy is narrower."""
        ...


Converter: TypeAlias = Callable[[Sequence[tuple[P, Document]], ConversionJob], None]
"""Converts policies of one dialect, each with its document. The result and the kept policies never allow more."""
