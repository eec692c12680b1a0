"""A checker of the English of this repository: docstrings, comments, messages and Markdown.

`python -m tests.prose [PATH...]` lists sentences that are likely to be hard to read, with file and line. The marks
show where to look; they do not judge. `tests/test_prose.py` keeps their number from growing.

| mark | the sentence |
|---|---|
| subject | is about no thing with a name: whoever, nobody, somebody, whom |
| telling | talks about talking instead of saying it: "is told", "has a say", "stands for" |
| clause | begins a docstring or a heading with a clause instead of a noun or a verb: "What is left" |
| long | has more than 35 words |
| wide | is a line of Markdown with more than 160 columns |
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]

MAX_WORDS = 35
MAX_COLUMNS = 160
MIN_MESSAGE_WORDS = 5  # a shorter string is a name, a key or a pattern

_SUBJECT = re.compile(r"\b(who(so)?ever|whom(ever)?|(no|some|any|every)body)\b", re.IGNORECASE)
_TELLING = re.compile(
    r"\b(is|are|was|were|be|been) (said|told|meant)\b|\b(has|have|had) a say\b|\bst(and|ood)s? for\b|\bspeaks? of\b"
    r"|\bis none that\b|\bbe it\b|\bof which\b|\bthat there (is|are)\b|\bas far as\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(what|whose?|where|how|which|when|those|that which)\b(?![^.]*\?)", re.IGNORECASE)
_QUOTED = re.compile(r"``.+?``|`[^`]*`|“[^”]*”")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*|]|\d+\.) |\s\|\s")


@dataclass(frozen=True, slots=True)
class Mark:
    """A sentence to look at."""

    file: str
    line: int
    kind: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.kind}: {self.sentence[:200]}"


@dataclass(frozen=True, slots=True)
class Text:
    """Text for people, and the line where it starts."""

    line: int
    text: str
    has_heading: bool  # whether its first sentence should begin with a noun or a verb


def marked_files() -> list[Path]:
    """Return the files of the repository that hold text for people, without fetched or generated ones."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def marks_in(path: Path) -> Iterator[Mark]:
    """List the marks of a file."""
    content = path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    texts = python_texts(content) if path.suffix == ".py" else markdown_texts(content)
    for text in texts:
        for number, sentence in enumerate(sentences(text.text)):
            kind = kind_of(sentence, begins=text.has_heading and number == 0)
            if kind:
                yield Mark(name, text.line, kind, sentence)
    if path.suffix == ".md":
        for line, row in enumerate(_prose(content).split("\n"), start=1):
            if len(row) > MAX_COLUMNS and not row.lstrip().startswith("|"):
                yield Mark(name, line, "wide", row)


def kind_of(sentence: str, *, begins: bool) -> str:
    """Return the first mark of a sentence, or an empty text; `begins`: it begins a docstring or is a heading."""
    if _SUBJECT.search(sentence):
        return "subject"
    if _TELLING.search(sentence):
        return "telling"
    if begins and _CLAUSE.match(sentence):
        return "clause"
    return "long" if len(sentence.split()) > MAX_WORDS else ""


def sentences(text: str) -> list[str]:
    """Split text into sentences; code and quotations are one word each."""
    plain = _LINK.sub(r"\1", _QUOTED.sub("X", text))
    return [" ".join(part.split()) for part in _SENTENCE_END.split(plain) if part.strip()]


def python_texts(content: str) -> Iterator[Text]:
    """List the docstrings, the comments and the messages of a module."""
    docstrings = set()
    tree = ast.parse(content)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                docstrings.add(id(node.body[0].value))  # type: ignore[attr-defined]
                yield Text(node.body[0].lineno, text, has_heading=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings and _is_message(node.value):
            yield Text(node.lineno, str(node.value), has_heading=False)
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string.lstrip("#: "), has_heading=False)


def _is_message(value: object) -> bool:
    return isinstance(value, str) and len(value.split()) >= MIN_MESSAGE_WORDS and "\n" not in value.strip()


def markdown_texts(content: str) -> Iterator[Text]:
    """List the headings and the paragraphs of a page; code blocks are left out."""
    line = 1
    for block in re.split(r"(\n\s*\n)", _prose(content)):
        if block.strip():
            yield Text(line, block.lstrip("# "), has_heading=block.lstrip().startswith("#"))
        line += block.count("\n")


def _prose(content: str) -> str:
    """Return a page with its code blocks emptied, line by line."""
    return re.sub(r"^( *)(`{3,})[^`\n]*\n.*?^\1\2`* *$", _emptied, content, flags=re.DOTALL | re.MULTILINE)


def _emptied(block: re.Match[str]) -> str:
    return "\n" * block[0].count("\n")


def main(arguments: list[str]) -> None:
    paths = [Path(name).resolve() for name in arguments]
    files = [file for file in marked_files() if not paths or any(file.is_relative_to(path) for path in paths)]
    marks = [mark for file in files for mark in marks_in(file)]
    for mark in marks:
        print(mark)
    print(", ".join(f"{kind} {count}" for kind, count in sorted(Counter(mark.kind for mark in marks).items())))


if __name__ == "__main__":
    main(sys.argv[1:])
