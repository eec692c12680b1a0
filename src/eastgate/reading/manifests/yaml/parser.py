"""libyaml, through PyYAML: the one place that touches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, cast

try:
    from yaml import _yaml
except ImportError as missing:  # pragma: no cover - needs an installation without the extension
    message = (
        "Eastgate needs PyYAML with libyaml, and this PyYAML was built without it: "
        "`pip install --force-reinstall pyyaml` fetches one that has it"
    )
    raise ImportError(message) from missing

# What `type(event)` is compared with: the classes that the extension itself makes events of. Those of
# `yaml.events` are others once something (a coverage tool, a reload) has imported that module again.
_OWN: Final = vars(_yaml)
ALIAS: Final[type] = _OWN["AliasEvent"]
SCALAR: Final[type] = _OWN["ScalarEvent"]
MAPPING: Final[type] = _OWN["MappingStartEvent"]
MAPPING_END: Final[type] = _OWN["MappingEndEvent"]
SEQUENCE: Final[type] = _OWN["SequenceStartEvent"]
SEQUENCE_END: Final[type] = _OWN["SequenceEndEvent"]
DOCUMENT_END: Final[type] = _OWN["DocumentEndEvent"]
STREAM_END: Final[type] = _OWN["StreamEndEvent"]
LIBYAML_ERROR: Final[type[Exception]] = _OWN["YAMLError"]
READER_ERROR: Final[type[Exception]] = _OWN["ReaderError"]


class Mark(Protocol):
    """A position in the text that the parser was given, counted in characters from 0."""

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


class LibyamlError(Protocol):
    """The attributes of a syntax error of libyaml."""

    problem: str | None
    problem_mark: Mark | None
    context_mark: Mark | None


def event_source(text: str) -> Callable[[], Event]:
    """Return a function that returns the next event of a YAML text at each call.

    The last line ends with a line feed, as kubectl makes it: it belongs to the value of a block scalar.
    """
    return cast("Callable[[], Event]", _yaml.CParser(text if text.endswith("\n") else text + "\n").get_event)
