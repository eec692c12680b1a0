"""Finds parts of a scheme that another spelling of a path evades, for proxies that do not refuse such a path.

Authorino compares the path from the proxy as a text. An application decodes the path. So `/users/%40me` is `/users/@me`
to an application, but not to Authorino.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.authorization_json import authorization_json_of
from eastgate.dialects.kuadrant.authorino.conditions import evaluate_condition, leaves
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services, sample_request
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    CelPredicate,
    Condition,
    Pattern,
    PatternRules,
    Rego,
    Scheme,
)
from eastgate.dialects.kuadrant.authorino.outcomes import FAILS, HOLDS, Outcomes
from eastgate.ir.paths import DECODED, comparable_path

_METHODS = ("GET", "POST", "DELETE")
_TEXT = regex(r"""'([^'\\\n]{0,200})'|"([^"\\\n]{0,200})\"""")
_SPECIAL = regex("[" + re.escape("".join(sorted(DECODED))) + "]")
_MAX_PATHS = 20  # tried for one part


@dataclass(frozen=True, slots=True)
class Evasion:
    """A part of a scheme, a request that it denies, and another spelling of the path that it does not deny."""

    part: str
    method: str
    path: str
    spelling: str
    span: Span | None


def evasions(scheme: Scheme) -> Iterator[Evasion]:
    """Yield the first evasion of each part that checks a request or leads to a check."""
    yield from filter(None, _each_part(scheme))


def _each_part(scheme: Scheme) -> Iterator[Evasion | None]:
    if scheme.when is not None:
        yield _evaded("`when`", scheme.when, scheme.span, guards=True)
    for identity in scheme.identities:
        if identity.when is not None:
            yield _evaded(f"`when` of authentication `{identity.name}`", identity.when, identity.span)
    for check in scheme.authorizations:
        part = f"authorization `{check.name}`"
        if check.when is not None:
            yield _evaded(f"`when` of {part}", check.when, check.span, guards=True)
        if isinstance(check.rule, PatternRules):
            yield _evaded(part, check.rule.condition, check.span)
        elif isinstance(check.rule, Rego):
            yield _evaded_module(part, check, check.rule)


def _evaded(part: str, condition: Condition, span: Span | None, *, guards: bool = False) -> Evasion | None:
    """Return an evasion of a condition that must hold. `guards`: the condition leads to a check if it holds."""
    for leaf in leaves(condition):
        if not leaf.looks_at_path or not isinstance(leaf, Pattern | CelPredicate):
            continue
        texts = [leaf.value] if isinstance(leaf, Pattern) else _texts(leaf.text)
        for method, path, spelling in _spellings(texts):
            plain, spelled = (_outcomes(condition, _sample(method, each)) for each in (path, spelling))
            if (HOLDS in plain and spelled is FAILS) if guards else (HOLDS not in plain and spelled is HOLDS):
                return Evasion(part, method, path, spelling, leaf.span or span)
    return None


def _evaded_module(part: str, check: Authorization, rule: Rego) -> Evasion | None:
    """Return an evasion of a Rego module, for an anonymous caller."""
    if not rule.looks_at_path or rule.fetched is not None:
        return None
    alone = Scheme("", (), authorizations=(replace(check, when=None, cache=None),))
    for method, path, spelling in _spellings(_texts(rule.module)):
        plain, spelled = (evaluate(alone, _sample(method, each), Services()).allowed for each in (path, spelling))
        if spelled and not plain:
            return Evasion(part, method, path, spelling, check.span)
    return None


def _outcomes(condition: Condition, facts: RequestFacts) -> Outcomes:
    return evaluate_condition(condition, authorization_json_of(facts, ())).outcomes


def _sample(method: str, path: str) -> RequestFacts:
    return sample_request(method, path, "host.example")


# Paths and their spellings


def _texts(expression: str) -> list[str]:
    return [match[1] or match[2] or "" for match in _TEXT.finditer(expression)]


def _spellings(texts: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield paths that texts of an expression match, each with a method and another spelling."""
    for text in texts[:_MAX_PATHS]:
        written = re.sub(r"\\(.)", r"\1", text.removeprefix("^").removesuffix("$"))
        path = comparable_path(written if written.startswith("/") else f"/x{written}")
        special = _SPECIAL.search(path)
        if special is not None:
            spelling = f"{path[: special.start()]}%{ord(special[0]):02X}{path[special.end() :]}"
            yield from ((method, path, spelling) for method in _METHODS)
