"""Rego (regopy, which is rego-cpp), as a compiled bundle with an entry point. Each rule is a Rego rule.

The alternative, one Rego rule that iterates over rules as data, was measured to be more than twice as slow at nine
rules, and slower still at ninety. Sets of names are objects, so that Rego looks names up. The input is prebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import regopy

from bench.peers.base import PlainRule, RuleSet, space_of
from bench.plans import Ask

__all__ = ["Rego"]

_HEAD = """package authz
import rego.v1
default allow := false
default granted := false
default denied := false
allow if { granted; not denied }
"""
_ENTRY = "authz/allow"


class Rego:
    """OPA's language, in the C++ implementation that has a Python binding."""

    name = "rego"
    package = "regopy"

    def load(self, rule_set: RuleSet) -> _Loaded:
        """Compile a bundle."""
        return _Loaded(rule_set)


class _Loaded:
    def __init__(self, rule_set: RuleSet) -> None:
        self._traits = rule_set.traits
        self._interpreter = regopy.Interpreter()
        self._interpreter.add_module(
            "authz.rego", _HEAD + "\n".join(line for one in rule_set.rules for line in _rule(one))
        )
        self._bundle = self._interpreter.build(None, [_ENTRY])
        if not self._bundle.ok():
            raise AssertionError("Rego does not compile")

    def prepare(self, ask: Ask) -> regopy.Input:
        return regopy.Input(
            {
                "who": ask.identity or "",
                "space": space_of(ask.identity),
                "port": str(ask.port),
                "method": ask.method or "",
                "path": ask.path or "",
                "tool": ask.tool or "",
                "qualified": ask.qualified,
                **{f"to_{key}": value for key, value in self._traits.get(ask.workload, {}).items()},
            }
        )

    def decide(self, question: regopy.Input) -> bool:
        self._interpreter.set_input(question)
        output = self._interpreter.query_bundle_entrypoint(self._bundle, _ENTRY)
        return bool(output.results[0].expressions[0])


def _rule(rule: PlainRule) -> Iterator[str]:
    """Yield a Rego rule for each combination of alternatives, since a body is a conjunction."""
    always = [f"input.to_{key} == {json.dumps(value)}" for key, value in rule.target.items()]
    always += [_among("port", map(str, rule.ports))] if rule.ports else []
    always += [_among("method", rule.methods)] if rule.methods else []
    choices = [
        [_among("who", rule.callers)] * bool(rule.callers) + [_among("space", rule.spaces)] * bool(rule.spaces),
        [_path(path) for path in rule.paths],
        _tools(rule.tools),
    ]
    for chosen in product(*(choice for choice in choices if choice)):
        body = "; ".join((*always, *chosen)) or "true"
        yield f"{'denied' if rule.deny else 'granted'} if {{ {body} }}"


def _among(field: str, values: Iterable[str]) -> str:
    return f"{json.dumps(dict.fromkeys(values, True))}[input.{field}]"


def _tools(tools: Sequence[str]) -> list[str]:
    plain, qualified = [one for one in tools if "/" not in one], [one for one in tools if "/" in one]
    return [_among("tool", plain)] * bool(plain) + [_among("qualified", qualified)] * bool(qualified)


def _path(path: str) -> str:
    if path.endswith("*"):
        return f"startswith(input.path, {json.dumps(path[:-1])})"
    if path.startswith("*"):
        return f"endswith(input.path, {json.dumps(path[1:])})"
    return f"input.path == {json.dumps(path)}"
