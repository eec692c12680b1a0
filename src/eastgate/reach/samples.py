"""Concrete values for tests that no matcher can express: texts that a pattern matches, and values in comparisons.

A witness only has the results of such tests. The engine decides each request that is made here, so a wrong guess costs
only time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice, product
from re import _constants, _parser  # type: ignore[attr-defined] # there is no other reader of patterns

from eastgate.basics.regexes import regex
from eastgate.ir import Computed, Known, Request
from eastgate.ir.attributes import ADDRESSES, PATHS, SENT_PATH, Attribute
from eastgate.ir.symbolic.cells import OTHER

_MAX_REQUESTS = 60
_MAX_VALUES = 8  # values of one attribute
_LITERAL = regex(r"""'([^'\\]{0,200})'|"([^"\\]{0,200})\"""")
_PATTERN = regex(r"[\\^$\[(*+?|]")
_MAX_CHARACTERS = 1_000  # characters
_MAX_ALTERNATIVES = 3  # tries for one pattern


def concrete_requests(request: Request) -> Iterator[Request]:
    """Yield concrete requests for a witness: the tests with an assumed result have this result."""
    assumed = {test: held for test, held in request.assumed.items() if isinstance(test, Computed) and held is not None}
    if not assumed:
        yield request
        return
    attributes = sorted(frozenset().union(*(test.attributes for test in assumed)))
    choices = [_values(attribute, request, assumed) for attribute in attributes]
    yielded = 0
    for values in islice(product(*choices), 20_000):
        candidate = {**request.values, **dict(zip(attributes, values, strict=True))}
        if all(test.holds(candidate) == held for test, held in assumed.items()):
            yield Request(candidate)
            yielded += 1
            if yielded == _MAX_REQUESTS:
                return
    if not yielded:
        yield request


def _values(attribute: Attribute, request: Request, assumed: Mapping[Computed, bool]) -> list[Known]:
    """Return values of an attribute that some test may compare it with."""
    values: dict[Known, None] = {}
    if attribute in request.values:
        values[request.values[attribute]] = None
    for test in assumed:
        if attribute in test.attributes:
            if test.pattern is not None:
                values.update(dict.fromkeys(texts_matching(test.pattern[1])))
            else:
                values.update(dict.fromkeys(_literals(test.text)))
    if attribute in PATHS or attribute is SENT_PATH:
        values = dict.fromkeys(text for text in values if isinstance(text, str) and text.startswith("/"))
        values["/any-other"] = None
    elif attribute in ADDRESSES:
        values["203.0.113.7"] = None
    else:
        values |= {OTHER: None, None: None}
    return list(values)[: _MAX_VALUES + 2]


def _literals(text: str) -> Iterator[str]:
    """Yield the quoted texts of an expression, alone and with a suffix, or texts that they match as patterns."""
    for match in islice(_LITERAL.finditer(text), _MAX_VALUES):
        literal = match[1] if match[1] is not None else match[2]
        yield literal
        if _PATTERN.search(literal):
            yield from texts_matching(literal)
        else:
            yield f"{literal}{OTHER}"


def texts_matching(pattern: str) -> Iterator[str]:
    """Yield texts that a regular expression matches, or none if none could be made."""
    try:
        parsed = _parser.parse(pattern)
        texts = dict.fromkeys(_sequence(parsed, choice) for choice in range(_MAX_ALTERNATIVES))
        yield from (text for text in texts if re.fullmatch(pattern, text))
    except (re.error, ValueError, OverflowError, NotImplementedError, RecursionError):
        return


def _sequence(parsed: object, choice: int) -> str:
    return "".join(_piece(operator, argument, choice) for operator, argument in parsed)  # type: ignore[attr-defined]


def _piece(operator: object, argument: object, choice: int) -> str:
    match str(operator), argument:
        case "LITERAL", int(code):
            return chr(code)
        case "NOT_LITERAL", int(code):
            return "x" if chr(code) != "x" else "y"
        case "ANY", _:
            return "x"
        case "IN", list(members):
            return _member(members)
        case "BRANCH", (_, list(branches)):
            return _sequence(branches[min(choice, len(branches) - 1)], choice)
        case "SUBPATTERN", (_, _, _, inner):
            return _sequence(inner, choice)
        case "MAX_REPEAT" | "MIN_REPEAT", (int(least), most, inner):
            times = min(max(least, choice), 1_000 if most is _constants.MAXREPEAT else int(str(most)))
            piece = _sequence(inner, choice)
            if len(piece) * times > _MAX_CHARACTERS:
                raise NotImplementedError
            return piece * times
        case "AT", _:
            return ""
        case _:
            raise NotImplementedError


def _member(members: list[tuple[object, object]]) -> str:
    """Return a character of a class. If the class is negated, the character is in none of its parts."""
    pattern = [(str(operator), argument) for operator, argument in members]
    negated = bool(pattern) and pattern[0][0] == "NEGATE"
    for code in (*b"xa0-_./", *range(33, 127), 32):
        if any(_contains(operator, argument, code) for operator, argument in pattern) != negated:
            return chr(code)
    raise NotImplementedError


def _contains(operator: str, argument: object, code: int) -> bool:
    match operator, argument:
        case "LITERAL", int(literal):
            return code == literal
        case "RANGE", (int(first), int(last)):
            return first <= code <= last
        case "CATEGORY", category:
            name = str(category).rpartition("CATEGORY_")[2]
            return _in_category(name.removeprefix("NOT_"), chr(code)) != name.startswith("NOT_")
        case _:
            return False


def _in_category(name: str, character: str) -> bool:
    match name:
        case "DIGIT":
            return character.isdigit()
        case "SPACE":
            return character.isspace()
        case "WORD":
            return character.isalnum() or character == "_"
        case _:
            raise NotImplementedError
