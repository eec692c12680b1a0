"""Selectors of Calico: expressions such as `app == "web" && has(tier)`.

Only conjunctions of simple terms are read. Other terms, and terms about Calico's own labels, are left out, which widens
the selector. An expression with `||` or parentheses is left out completely.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.regexes import regex
from eastgate.cluster import Operator, Requirement, Selector, is_added_label
from eastgate.cluster.objects import NAME_LABEL

_KEY = r"[A-Za-z0-9_./-]+"
_TEXT = r"""(?:"[^"]*"|'[^']*')"""
_IS = regex(rf"({_KEY})\s*(==|!=)\s*({_TEXT})")
_IN = regex(rf"({_KEY})\s+(not\s+in|in)\s*\{{\s*((?:{_TEXT}\s*,?\s*)*)\}}")
_HAS = regex(rf"(!?)\s*has\(\s*({_KEY})\s*\)")
_QUOTED = regex(_TEXT)
_NAMESPACE_NAME_LABEL = "projectcalico.org/name"  # of a namespace
_CALICO_LABELS = (
    "pcns.",
    "pcsa.",
    "projectcalico.org/",
)  # labels that Calico adds, also those of namespaces and accounts


def calico_selector(expression: str, *, of_namespaces: bool = False) -> Selector:
    """Return a selector of at least the objects of the expression, and of exactly those if all terms are simple."""
    if of_namespaces:
        expression = expression.replace(_NAMESPACE_NAME_LABEL, NAME_LABEL)
    plain = _QUOTED.sub(lambda match: match[0].replace("|", "").replace("(", ""), expression)
    if "||" in plain or "(" in plain.replace("all()", "").replace("has(", ""):
        return Selector.of()
    return Selector.of(None, _requirements(expression))


def _requirements(expression: str) -> Iterator[Requirement]:
    for term in map(str.strip, expression.split("&&")):
        requirement = _requirement(term)
        if (
            requirement is not None
            and not requirement.key.startswith(_CALICO_LABELS)
            and not is_added_label(requirement.key)
        ):
            yield requirement


def _requirement(term: str) -> Requirement | None:
    if match := _IS.fullmatch(term):
        operator = Operator.IN if match[2] == "==" else Operator.NOT_IN
        return Requirement(match[1], operator, frozenset({match[3][1:-1]}))
    if match := _IN.fullmatch(term):
        values = frozenset(text[1:-1] for text in _QUOTED.findall(match[3]))
        operator = Operator.IN if match[2] == "in" else Operator.NOT_IN
        return Requirement(match[1], operator, values) if values else None
    if match := _HAS.fullmatch(term):
        return Requirement(match[2], Operator.DOES_NOT_EXIST if match[1] else Operator.EXISTS, frozenset())
    return None
