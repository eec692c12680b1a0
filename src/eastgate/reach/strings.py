"""The texts in a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping


def strings_in(value: object) -> Iterator[str]:
    """Yield every text in a record, and in what it holds that counts for its equality."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from strings_in(part)
    elif isinstance(value, tuple | list | frozenset):
        for part in value:
            yield from strings_in(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.compare:
                yield from strings_in(getattr(value, field.name))
