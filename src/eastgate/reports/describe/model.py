"""A description: ordered fields, each as lines for a person and as data for a script.

Both forms are built together, so that they have the same content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate.basics.records import brief, dataclass
from eastgate.cluster.points import Point
from eastgate.reports.columns import Line, lay_out

_BOLD, _RESET = "\033[1m", "\033[0m"
_MAX_LINES = 20


@dataclass(frozen=True, slots=True)
class DescribedField:
    """One field: its JSON key, its title, its data and its lines. A field without lines is left out of text."""

    key: str
    title: str
    data: object
    lines: tuple[Line, ...]
    block: bool = False  # the lines stand below the title, even a single one

    def __repr__(self) -> str:
        return brief(self, self.title)


def value_field(key: str, title: str, data: object, text: str | None = None) -> DescribedField:
    """Make a field of one line. Without a value, the field has data only."""
    line = text if text is not None else "" if data is None else str(data)
    return DescribedField(key, title, data, (line,) if line else ())


def list_field(key: str, title: str, data: object, lines: Iterable[Line], *, none: str = "<none>") -> DescribedField:
    """Make a field of several lines; `none` is shown if there are none."""
    shown = tuple(lines)
    return DescribedField(key, title, data, shown or (none,), block=bool(shown))


@dataclass(frozen=True, slots=True)
class Description:
    """A description in fields. `points` are the points of enforcement whose callers it lists."""

    fields: tuple[DescribedField, ...]
    points: tuple[Point, ...] = ()

    def __repr__(self) -> str:
        return brief(self, " ".join(str(field.data) for field in self.fields[:3]))

    def to_json(self) -> dict[str, object]:
        """Return plain data. The keys are the same for all objects of one kind."""
        return {field.key: field.data for field in self.fields}

    def lines(self, *, color: bool = False, width: int | None = None) -> list[str]:
        """Render the fields at most `width` wide. Short values stand beside their titles, others below."""
        short = [field for field in self.fields if field.lines and not field.block]
        beside = max((len(field.title) for field in short), default=0) + 3
        texts: list[str] = []
        for field in self.fields:
            if not field.lines:
                continue
            indent = 2 if field.block else beside
            lines = lay_out(field.lines, width - indent if width is not None else None, color=color)
            title = f"{_BOLD}{field.title}:{_RESET}" if color else f"{field.title}:"
            if field.block:
                texts += [title, *(f"  {line}".rstrip() for line in lines)]
            else:
                pad = " " * (beside - len(field.title) - 1)
                texts += [f"{title}{pad}{lines[0]}", *(" " * beside + line for line in lines[1:])]
        return texts


def shorten(lines: Sequence[str], most: int = _MAX_LINES) -> list[str]:
    """Return the first lines, and the number of the others."""
    return list(lines) if len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more"]
