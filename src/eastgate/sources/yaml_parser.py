"""libyaml, through PyYAML: the one place that touches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, cast

from yaml import events

try:
    from yaml._yaml import CParser
except ImportError as missing:  # pragma: no cover - needs an installation without the extension
    message = (
        "Eastgate needs PyYAML with libyaml, and this PyYAML was built without it: "
        "`pip install --force-reinstall pyyaml` fetches one that has it"
    )
    raise ImportError(message) from missing

__all__ = [
    "ALIAS",
    "DOCUMENT_END",
    "MAPPING",
    "MAPPING_END",
    "SCALAR",
    "SEQUENCE",
    "SEQUENCE_END",
    "STREAM_END",
    "Event",
    "Mark",
    "event_source",
]

# What `type(event)` is compared with.
ALIAS: Final[type] = events.AliasEvent
SCALAR: Final[type] = events.ScalarEvent
MAPPING: Final[type] = events.MappingStartEvent
MAPPING_END: Final[type] = events.MappingEndEvent
SEQUENCE: Final[type] = events.SequenceStartEvent
SEQUENCE_END: Final[type] = events.SequenceEndEvent
DOCUMENT_END: Final[type] = events.DocumentEndEvent
STREAM_END: Final[type] = events.StreamEndEvent


class Mark(Protocol):
    """A place in the text that the parser was given, counted in characters from 0."""

    index: int
    line: int
    column: int


class Event(Protocol):
    """Any of libyaml's events; those of other sorts than the caller has made sure of lack some of these."""

    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    flow_style: bool | None
    start_mark: Mark
    end_mark: Mark


def event_source(text: str) -> Callable[[], Event]:
    """A function that returns the next event of a YAML text at each call."""
    return cast("Callable[[], Event]", CParser(text).get_event)
