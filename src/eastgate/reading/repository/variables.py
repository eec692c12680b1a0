"""Fills in the variables of Flux: `${VAR}`, `${VAR:=default}` and the other expressions of its envsubst.

Flux substitutes in the text of its build. To Flux, a name without a value is the empty string. Here it stays unchanged
and is *open*: its value may be in a Secret, or in a ConfigMap that only the cluster has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.reading.manifests.node import NoNumberError, Plain, resolve

DISABLED: Final = "kustomize.toolkit.fluxcd.io/substitute"
_STEP: Final = regex(r"\$(?:\$|\{)")
_NAME: Final = regex(r"\w+")
_OPERATOR: Final = regex(r":[=?+-]|=|\^\^?|,,?|//|/#|/%|/|##?|%%?|:")
_NUMBER: Final = regex(r"[+-]?[0-9]{1,9}")
_MAX_DEPTH = 20  # expressions inside each other's defaults
_MAX_GROWTH_BYTES = 1 << 20  # bytes that substitution may add to one text

_DEFAULTS: Final = (":=", ":-", ":?", ":+", "=")  # Flux treats all of them as defaults


@dataclass(frozen=True, slots=True)
class FluxVariables:
    """The known variables of a Flux Kustomization. See `KustomizeBuild` for `hidden`."""

    values: Mapping[str, str]
    hidden: tuple[str, ...] | None = ()
    is_used: bool = False
    """Whether there is a `postBuild`. Without it, `${VAR}` is plain text."""

    def fill(self, value: Plain) -> Plain:
        """Fill in the variables of an object that is not built."""
        if not self.is_used or (isinstance(value, dict) and not may_substitute(value)):
            return value
        return _filled(value, self)


NO_VARIABLES: Final = FluxVariables({})


def may_substitute(data: Mapping[str, Plain]) -> bool:
    """Return whether Flux fills in variables in an object. A label or an annotation can disable it."""
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        return True
    places = (metadata.get("labels"), metadata.get("annotations"))
    return not any(isinstance(place, dict) and place.get(DISABLED) == "disabled" for place in places)


def _filled(value: Plain, variables: FluxVariables) -> Plain:
    if isinstance(value, str):
        if "$" not in value:
            return value
        text, _ = substitute(value, variables.values, variables.hidden)
        try:
            return resolve(text) if text != value and value.startswith("${") and "\n" not in text else text
        except NoNumberError:
            return text
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    return value


def substitute(
    text: str, variables: Mapping[str, str], hidden: Collection[str] | None = ()
) -> tuple[str, tuple[str, ...]]:
    """Return a text with its variables filled in, and the open names, each once.

    An expression with an open name, or one that Flux cannot parse, stays unchanged. `hidden` names have an unknown
    value; None means every name without a value here.
    """
    if "$" not in text:
        return text, ()
    return _Substitution(text, variables, hidden).run()


class _BadExpressionError(Exception):
    pass


class _Substitution:
    """Substitutes in one text, from left to right, like the parser of Flux's envsubst."""

    def __init__(self, text: str, variables: Mapping[str, str], hidden: Collection[str] | None) -> None:
        self._text = text
        self._at = 0
        self._variables = variables
        self._hidden = hidden
        self._open: dict[str, None] = {}

    def run(self) -> tuple[str, tuple[str, ...]]:
        """Return the result."""
        done: list[str] = []
        growth, written = 0, 0
        while (match := _STEP.search(self._text, self._at)) is not None and growth < _MAX_GROWTH_BYTES:
            done.append(self._text[written : match.start()])
            self._at = match.end()
            if match.group() == "$$":
                done.append("$")
            else:
                done.append(self._expression(match.start()))
                growth += len(done[-1])
            written = self._at
        if growth >= _MAX_GROWTH_BYTES:
            self._open.setdefault("...")
        return "".join(done) + self._text[written:], tuple(self._open)

    def _expression(self, start: int) -> str:
        try:
            value, names = self._evaluate(0)
        except _BadExpressionError:
            end = self._text.find("}", start, start + 200)
            self._at = start + 2
            self._open.setdefault(self._text[start + 2 : end] if end > 0 else self._text[start + 2 : start + 20])
            return "${"
        if value is None:
            self._open.update(dict.fromkeys(names))
            return self._text[start : self._at]
        return value

    def _evaluate(self, depth: int) -> tuple[str | None, list[str]]:
        """Read an expression after its `${`. Return its value, or None and the open names."""
        if depth > _MAX_DEPTH:
            raise _BadExpressionError
        if self._peek() == "#":
            self._at += 1
            name = self._take(_NAME)
            self._expect("}")
            value = self._variables.get(name)
            return (None, [name]) if value is None else (str(len(value.encode())), [])
        name = self._take(_NAME)
        if self._peek() == "}":
            self._at += 1
            return self._variables.get(name), [name]
        operator = self._take(_OPERATOR)
        arguments, names = self._arguments(operator, depth)
        return self._apply(name, operator, arguments, names)

    def _apply(
        self, name: str, operator: str, arguments: list[str | None], names: list[str]
    ) -> tuple[str | None, list[str]]:
        value = self._variables.get(name)
        if operator in _DEFAULTS:
            if value:
                return value, []
            if value is None and (self._hidden is None or name in self._hidden):
                return None, [name]
            parts = [argument for argument in arguments if argument is not None]
            return ("".join(parts), []) if len(parts) == len(arguments) else (None, names)
        given = [argument for argument in arguments if argument is not None]
        if value is None or len(given) < len(arguments):
            return None, ([name] if value is None else []) + names
        return _FUNCTIONS[operator](value, given), []

    def _arguments(self, operator: str, depth: int) -> tuple[list[str | None], list[str]]:
        """Read the arguments of an operator and the closing bracket, with the open names of each."""
        names: list[str] = []
        if operator in _DEFAULTS:
            arguments = []
            while self._peek() != "}":
                arguments.append(self._argument("}", depth, names))
            self._at += 1
            return arguments, names
        if operator[0] in "^,":
            self._expect("}")
            return [], names
        if operator == ":":
            stops, separator = ":}", ":"
        else:
            stops, separator = ("/", "/") if operator[0] == "/" else ("}", "")
        escapes = operator[0] == "/"
        arguments = [self._argument(stops, depth, names, escapes=escapes)]
        if escapes and self._peek() != separator:
            raise _BadExpressionError
        if separator and self._peek() == separator:
            self._at += 1
            if not (escapes and self._peek() == "}"):
                arguments.append(self._argument("}", depth, names, escapes=escapes))
        self._expect("}")
        return arguments, names

    def _argument(self, stops: str, depth: int, names: list[str], *, escapes: bool = False) -> str | None:
        """Read one argument: an expression, or a text up to one of `stops` or an expression."""
        if self._text.startswith("${", self._at):
            self._at += 2
            value, open_names = self._evaluate(depth + 1)
            names += open_names if value is None else []
            return value
        letters: list[str] = []
        while True:
            letter = self._peek()
            if not letter:
                raise _BadExpressionError
            if letter in stops:
                break
            two = self._text[self._at : self._at + 2]
            if two == "${":
                break
            if escapes and two in ("$$", "\\/", "\\\\"):
                letter = two[1]
                self._at += 1
            letters.append(letter)
            self._at += 1
        if not letters:
            raise _BadExpressionError
        return "".join(letters)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _BadExpressionError
        self._at = match.end()
        return match.group()

    def _expect(self, letter: str) -> None:
        if self._peek() != letter:
            raise _BadExpressionError
        self._at += 1


def _substring(value: str, arguments: list[str]) -> str:
    raw = value.encode()
    if not all(_NUMBER.fullmatch(argument) for argument in arguments):
        return value
    position, *rest = (int(argument) for argument in arguments)
    if position < 0:
        position = max(len(raw) + position, 0)
    end = position + rest[0] if rest else len(raw)
    return raw[position : max(end, position)].decode("utf-8", "replace")


def _replace_all(value: str, arguments: list[str]) -> str:
    return value.replace(arguments[0], arguments[1] if len(arguments) > 1 else "")


def _replace_first(value: str, arguments: list[str]) -> str:
    return value.replace(arguments[0], arguments[1] if len(arguments) > 1 else "", 1)


def _replace_prefix(value: str, arguments: list[str]) -> str:
    return _replace_first(value, arguments) if len(arguments) > 1 and value.startswith(arguments[0]) else value


def _replace_suffix(value: str, arguments: list[str]) -> str:
    if len(arguments) < 2 or not value.endswith(arguments[0]):
        return value
    return value[: len(value) - len(arguments[0])] + arguments[1]


def _trimmed(*, shortest: bool, at_end: bool) -> Callable[[str, list[str]], str]:
    def trim(value: str, arguments: list[str]) -> str:
        import re2  # imported here because few expressions trim

        text, glob = (value[::-1], arguments[0][::-1]) if at_end else (value, arguments[0])
        pattern = "".join(_GLOBS.get(letter) or re.escape(letter) for letter in glob)
        lengths = range(1, len(text) + 1) if shortest else range(len(text), 0, -1)
        if len(text) > _MAX_TRIMMED_CHARS or len(glob) > _MAX_TRIMMED_CHARS:
            return value
        fits = re2.compile(f"(?s){pattern}").fullmatch
        length = next((length for length in lengths if fits(text[:length])), 0)
        return text[length:][::-1] if at_end else text[length:]

    return trim


_GLOBS: Final = {"*": ".*", "?": "."}
_MAX_TRIMMED_CHARS = 1000
_FUNCTIONS: Final[Mapping[str, Callable[[str, list[str]], str]]] = {
    "^": lambda value, _: value[:1].upper() + value[1:],
    "^^": lambda value, _: value.upper(),
    ",": lambda value, _: value[:1].lower() + value[1:],
    ",,": lambda value, _: value.lower(),
    ":": _substring,
    "/": _replace_first,
    "//": _replace_all,
    "/#": _replace_prefix,
    "/%": _replace_suffix,
    "#": _trimmed(shortest=True, at_end=False),
    "##": _trimmed(shortest=False, at_end=False),
    "%": _trimmed(shortest=True, at_end=True),
    "%%": _trimmed(shortest=False, at_end=True),
}
