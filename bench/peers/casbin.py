"""Casbin (pycasbin): one line for each rule, with sets in its fields, so that a matcher uses `in` on one line.

The matcher has only the parts that the rules use, the target first. With a workload's own policies, each workload has
its own enforcer, which needs no filter.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import casbin
from casbin.persist import Adapter

from bench.peers.base import PlainRule, RuleSet, space_of
from bench.plans import Ask

__all__ = ["Casbin"]

_MODEL = """
[request_definition]
r = sub, space, traits, port, method, path, tool, qualified
[policy_definition]
p = target, who, ports, methods, paths, tools, eft
[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))
[matchers]
m = {matcher}
"""

Question = tuple[object, ...]


class Casbin:
    """Access control by models, in Python."""

    name = "casbin"
    package = "pycasbin"

    def load(self, rule_set: RuleSet) -> _Loaded:
        """Return an enforcer for these rules."""
        return _Loaded(rule_set)


class _Loaded:
    def __init__(self, rule_set: RuleSet) -> None:
        model = casbin.Enforcer.new_model(text=_MODEL.format(matcher=_matcher(rule_set.rules)))
        self._traits = {point: frozenset(traits.items()) for point, traits in rule_set.traits.items()}
        self._enforcer = casbin.Enforcer(model, _Lines(rule_set.rules), enable_log=False)
        self._enforcer.add_function("pathMatch", _path_match)

    def prepare(self, ask: Ask) -> Question:
        traits = self._traits.get(ask.workload, frozenset())
        return (
            ask.identity or "", space_of(ask.identity), traits, ask.port,
            ask.method or "", ask.path or "", ask.tool or "", ask.qualified,
        )  # fmt: skip

    def decide(self, question: Question) -> bool:
        return bool(self._enforcer.enforce(*question))


class _Everything:
    """A set that contains everything, for a condition that a rule does not have."""

    def __contains__(self, _: object) -> bool:
        return True


_EVERYTHING = _Everything()


class _Lines(Adapter):  # type: ignore[misc]  # casbin has no types
    def __init__(self, rules: Sequence[PlainRule]) -> None:
        self._rules = rules

    def load_policy(self, model: casbin.Model) -> None:
        model["p"]["p"].policy.extend(map(_line, self._rules))


def _line(rule: PlainRule) -> list[object]:
    return [
        frozenset(rule.target.items()),
        _set((*rule.callers, *rule.spaces)),
        _set(rule.ports),
        _set(rule.methods),
        rule.paths,
        _set(rule.tools),
        "deny" if rule.deny else "allow",
    ]


def _set(values: Sequence[str | int]) -> Container[object]:
    return frozenset(values) if values else _EVERYTHING


def _matcher(rules: Sequence[PlainRule]) -> str:
    parts = []
    if any(rule.target for rule in rules):
        parts.append("p.target <= r.traits")
    if any(rule.spaces for rule in rules):
        parts.append("(r.sub in p.who || r.space in p.who)")
    elif any(rule.callers for rule in rules):
        parts.append("r.sub in p.who")
    if any(rule.ports for rule in rules):
        parts.append("r.port in p.ports")
    if any(rule.methods for rule in rules):
        parts.append("r.method in p.methods")
    if any(rule.paths for rule in rules):
        parts.append("pathMatch(r.path, p.paths)")
    if any(rule.tools for rule in rules):
        parts.append("(r.tool in p.tools || r.qualified in p.tools)")
    return " && ".join(parts) or "1 == 1"


def _path_match(path: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(_matches(path, pattern) for pattern in patterns)


def _matches(path: str, pattern: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path.endswith(pattern[1:]) if pattern.startswith("*") else path == pattern
