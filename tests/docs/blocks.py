"""Console blocks of a page: commands with their expected output.

    ```console
    $ eastgate check -f manifests \
        --from sa:shop/web --to pod:shop/cart
    ALLOW  …
    ```

A command begins with `$ `. It continues in the next line after a backslash, and to the end of a here document. The
lines up to the next command are its output. A block that begins with three backquotes and `console up` has no command:
it is the output of the page's running `eastgate up` after the command before it.

In an output, `…` matches any part of a line. Alone in a line, it matches any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Step", "steps", "with_outputs"]

ROOT = Path(__file__).parents[2]
_FOLDERS = ("*.md", "docs/**/*.md", "conformance/*.md", "examples/**/*.md")
_FENCE = "```"
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


@dataclass(frozen=True, slots=True)
class Step:
    """A command and its output: lines `first` to `end` (exclusive) of the page. A `console up` block has no command."""

    command: str | None
    output: str
    line: int
    first: int
    end: int


def steps(text: str) -> Iterator[Step]:
    """Yield every step of a page, in the order of the page."""
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        opening = lines[place].rstrip()
        if opening.startswith(_FENCE):
            end = next(n for n in range(place + 1, len(lines)) if lines[n].rstrip() == _FENCE)
            match opening.removeprefix(_FENCE).split():
                case ["console"]:
                    yield from _commands(lines, place + 1, end)
                case ["console", "up"]:
                    yield Step(None, "\n".join(lines[place + 1 : end]), place + 1, place + 1, end)
            place = end
        place += 1


def _commands(lines: list[str], place: int, end: int) -> Iterator[Step]:
    while place < end:
        assert lines[place].startswith("$ "), f"line {place + 1} of a console block is no command: {lines[place]}"
        line, place = place, _end_of_command(lines, place)
        command = "\n".join(lines[line:place]).removeprefix("$ ")
        first = place
        while place < end and not lines[place].startswith("$ "):
            place += 1
        last = place
        while last > first and not lines[last - 1].strip():  # an empty line before the next command
            last -= 1
        yield Step(command, "\n".join(lines[first:last]), line + 1, first, last)


def _end_of_command(lines: list[str], place: int) -> int:
    document = _HERE_DOCUMENT.search(lines[place])
    while lines[place].endswith("\\"):
        place += 1
        document = document or _HERE_DOCUMENT.search(lines[place])
    if document is None:
        return place + 1
    return next(n for n in range(place + 1, len(lines)) if lines[n] == document[2]) + 1


def with_outputs(text: str, outputs: dict[Step, str]) -> str:
    """Return the page with other outputs for some of its steps."""
    lines = text.split("\n")
    for step in sorted(outputs, key=lambda one: one.first, reverse=True):
        lines[step.first : step.end] = outputs[step].split("\n") if outputs[step] else []
    return "\n".join(lines)


def _pages() -> list[Path]:
    found = (page for pattern in _FOLDERS for page in ROOT.glob(pattern))
    return sorted(page for page in found if any(True for _ in steps(page.read_text(encoding="utf-8"))))


PAGES = _pages()
