"""The result of the two fast readers."""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.reading.manifests.node import Plain

Extent = tuple[int, int]
"""The offsets in the text where something starts, and one past where it ends."""


@dataclass(frozen=True, slots=True)
class PlainDocument:
    """The value of a document, its position, and those of the entries of its top-level `items`.

    There are no duplicate keys in it, and each extent can be read again alone: nothing in it depends on the text around
    it.
    """

    value: Plain
    extent: Extent
    items: list[Extent]
