"""The variables of a dialect's expressions, by their dotted path, and the attribute of each."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.ir.attributes import Attribute


class VariableKind(enum.Enum):
    """The type of a variable, with its name in CEL."""

    TEXT = "string"
    NUMBER = "int"
    TIME = "timestamp"


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """The variables of one dialect.

    Two instances are never equal: a dialect has one, and its CEL environment is cached.

    A map, such as `request.headers`, gives an attribute for each name. The name has the spelling of the request (lower
    case, if letter case is ignored), so that `request.headers["X-User"]` and `request.headers["x-user"]` are one
    header. A map always exists, and may be empty. An expression can only ask for a literal name, because an offline
    question cannot list all entries of a request.
    """

    texts: Mapping[str, Attribute] = field(default_factory=dict)
    numbers: Mapping[str, Attribute] = field(default_factory=dict)
    times: Mapping[str, Attribute] = field(default_factory=dict)  # values are RFC 3339 texts with an offset
    maps: Mapping[str, Callable[[str], Attribute]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        paths = [path for group in (self.texts, self.numbers, self.times, self.maps) for path in group]
        for path in paths:
            if not re.fullmatch(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*", path, re.ASCII):
                raise ValueError(f"{path!r} is not a dotted name")
            if any(other.startswith(f"{path}.") for other in paths):
                raise ValueError(f"{path!r} is a variable and has variables below it")
        if len({presence_of(path) for path in paths}) < len(paths):
            raise ValueError("two variables have one name")

    def __iter__(self) -> Iterator[str]:
        """Yield the dotted paths of all variables."""
        for group in (self.texts, self.numbers, self.times, self.maps):
            yield from group

    def __contains__(self, path: object) -> bool:
        return any(path in group for group in (self.texts, self.numbers, self.times, self.maps))

    def attribute(self, path: str) -> tuple[Attribute, VariableKind] | None:
        """Return the attribute of a variable, and its type; None for a map and for an unknown path."""
        for group, kind in (
            (self.texts, VariableKind.TEXT),
            (self.numbers, VariableKind.NUMBER),
            (self.times, VariableKind.TIME),
        ):
            if path in group:
                return group[path], kind
        return None


def presence_of(path: str) -> str:
    """Return the hidden variable that replaces `has(path)`. It is as long as that text, so that no offset changes."""
    return f"_has_{path.replace('.', '_')}"
