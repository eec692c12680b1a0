"""Label selectors as `kubectl` takes them on a command line: `app=web,tier in (a, b),!legacy`."""

from __future__ import annotations

from eastgate.basics.regexes import regex
from eastgate.cluster import Operator, Requirement, Selector

_TERMS = regex(r",(?![^()]*\))")
_SET = regex(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = regex(r"([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)")
_KEY = regex(r"(!?)\s*([^\s=!()]+)")


class BadSelector(ValueError):  # noqa: N818 - what a person wrote, not what went wrong
    """A text that is no label selector."""


def parse_selector(text: str) -> Selector:
    """Parse a label selector; an empty one selects everything. Raises BadSelector."""
    terms = [term.strip() for term in _TERMS.split(text)] if text.strip() else []
    return Selector.of({}, [_term(term) for term in terms])


def _term(term: str) -> Requirement:
    if match := _SET.fullmatch(term):
        values = frozenset(value.strip() for value in match[3].split(","))
        return Requirement(match[1], Operator.IN if match[2] == "in" else Operator.NOT_IN, values)
    if match := _EQUAL.fullmatch(term):
        operator = Operator.NOT_IN if match[2] == "!=" else Operator.IN
        return Requirement(match[1], operator, frozenset({match[3]}))
    if match := _KEY.fullmatch(term):
        return Requirement(match[2], Operator.DOES_NOT_EXIST if match[1] else Operator.EXISTS)
    raise BadSelector(
        f"`{term}` is no term of a label selector: write key=value, key!=value, key in (a, b), key or !key"
    )
