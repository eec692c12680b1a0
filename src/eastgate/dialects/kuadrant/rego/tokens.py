"""The tokens of Rego."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.rego.syntax import (
    Array,
    Collect,
    ObjectOf,
    Scalar,
    SetOf,
    Term,
    UnsupportedModule,
)

MAX_DEPTH: Final = 64
MAX_EXPONENT: Final = 400
_TOKEN: Final = regex(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)|(?P<newline>\n)|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<raw>`[^`]*`)
    |(?P<number>(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)
    |(?P<sign>:=|==|!=|<=|>=|[-=<>+*/%&|.,;:(){}\[\]])""",
    re.VERBOSE | re.ASCII,
)
RESERVED: Final = frozenset(
    ("as", "default", "else", "false", "import", "not", "null", "package", "some", "true", "with", "every", "if", "in")
)
LATER: Final = frozenset(("contains", "every", "if", "in"))  # keywords only if the module imports them
_COMPARISONS: Final = {"==": "equal", "!=": "neq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
LEVELS: Final = (  # loosest first
    _COMPARISONS,
    {"|": "or"},
    {"&": "and"},
    {"+": "plus", "-": "minus"},
    {"*": "mul", "/": "div", "%": "rem"},
)
OPENING: Final = ("(", "[", "{")


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int
    spaced: bool  # it follows white space
    fresh: bool  # it is the first of its line


def tokens_of(module: str) -> Iterator[Token]:
    at, line, spaced, fresh = 0, 1, True, True
    while at < len(module):
        match = _TOKEN.match(module, at)
        if match is None:
            raise UnsupportedModule(f"line {line}: {module[at]!r} is not allowed in a module")
        at = match.end()
        kind, text = str(match.lastgroup), match[0]
        if kind == "newline":
            line, spaced, fresh = line + 1, True, True
        elif kind == "space":
            spaced = True
        else:
            yield Token(kind, text, line, spaced, fresh)
            line += text.count("\n")
            spaced = fresh = False
    yield Token("end", "", line, True, True)


def is_constant(term: Term) -> bool:
    match term:
        case Scalar() | Collect():
            return True
        case Array(items) | SetOf(items):
            return all(map(is_constant, items))
        case ObjectOf(pairs):
            return all(is_constant(part) for pair in pairs for part in pair)
    return False


class TokenReader:
    """Reads the tokens of a module one by one. `version`: of the language, 0 or 1."""

    def __init__(self, tokens: tuple[Token, ...], version: int) -> None:
        self._tokens = tokens
        self._version = version
        self._keywords = LATER if version else frozenset[str]()
        self._at = 0

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _is(self, *texts: str) -> bool:
        return self._now.text in texts and self._now.kind in ("sign", "name")

    def _take(self) -> Token:
        token = self._now
        self._at += 1
        return token

    def _skip(self, *texts: str) -> bool:
        if self._is(*texts):
            self._at += 1
            return True
        return False

    def _skip_later(self, keyword: str) -> bool:
        """Skip a keyword of version 1. Raises UnsupportedModule if it is no keyword of this module."""
        if self._is(keyword) and keyword not in self._keywords:
            raise self._problem(f"`{keyword}` needs `import future.keywords.{keyword}`, or version v1")
        return self._skip(keyword)

    def _expect(self, text: str) -> Token:
        if not self._is(text):
            raise self._problem(f"expected {text!r}, not {self._now.text!r}")
        return self._take()

    def _problem(self, message: str) -> UnsupportedModule:
        return UnsupportedModule(f"line {self._now.line}: {message}")

    def _name(self) -> str:
        if self._now.kind != "name" or self._now.text in RESERVED:
            raise self._problem(f"expected a name, not {self._now.text!r}")
        return self._take().text
