"""Cedar (cedarpy), on its fastest public path: a parsed PolicySet, parsed Entities, and requests as plain dicts.

One rule is one Cedar policy. Identities and ports are compared with `==`, and the namespace of a caller is a parent of
its entity, which was the fastest of several ways in measurements. The labels and the Service of a workload are groups
of its entity. The first group that a policy targets is in the scope of the policy, which is faster than attributes.
Entity ids as {type, id} need no parsing, unlike ids in Cedar's own syntax. The context is JSON text, as cedarpy passes
it to Cedar.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import cedarpy

from bench.peers.base import PlainRule, RuleSet, Traits, space_of
from bench.plans import Ask

__all__ = ["Cedar"]

Question = dict[str, object]


class Cedar:
    """The authorization engine of AWS, compiled, in Rust."""

    name = "cedar"
    package = "cedarpy"

    def load(self, rule_set: RuleSet) -> _Loaded:
        """Parse policies and entities."""
        return _Loaded(rule_set)


class _Loaded:
    def __init__(self, rule_set: RuleSet) -> None:
        self._policies = cedarpy.PolicySet.from_str("\n".join(map(_policy, rule_set.rules)))
        self._entities = cedarpy.Entities.from_json_str(json.dumps(list(_entities(rule_set))))

    def prepare(self, ask: Ask) -> Question:
        """Return a request. Fails if a policy has an error, which would make the comparison worthless."""
        question: Question = {
            "principal": {"type": "Caller", "id": ask.identity or "anonymous"},
            "action": {"type": "Action", "id": "connect"},
            "resource": {"type": "Point", "id": ask.workload},
            "context": json.dumps(_context(ask)),
        }
        errors = cedarpy.is_authorized(question, self._policies, self._entities).diagnostics.errors
        if errors:
            raise AssertionError(errors)
        return question

    def decide(self, question: Question) -> bool:
        return bool(cedarpy.is_authorized(question, self._policies, self._entities).allowed)


def _context(ask: Ask) -> dict[str, object]:
    context: dict[str, object] = {"port": ask.port}
    if ask.method is not None:
        context |= {"method": ask.method, "path": ask.path}
    if ask.tool is not None:
        context |= {"tool": ask.tool, "qualified": ask.qualified}
    return context


def _entities(rule_set: RuleSet) -> Iterable[dict[str, object]]:
    """Yield every caller, with its namespace as the parent, and every point, with its groups."""
    callers = sorted({ask.identity for ask in rule_set.asks if ask.identity is not None})
    yield from (_entity("Namespace", space, []) for space in sorted({space_of(caller) for caller in callers}))
    yield from (_entity("Caller", caller, [("Namespace", space_of(caller))]) for caller in callers)
    points = {ask.workload: _groups(rule_set.traits[ask.workload]) for ask in rule_set.asks} if rule_set.traits else {}
    yield from (_entity("Group", group, []) for group in sorted({one for groups in points.values() for one in groups}))
    yield from (_entity("Point", point, [("Group", one) for one in groups]) for point, groups in points.items())


def _entity(kind: str, name: str, parents: list[tuple[str, str]]) -> dict[str, object]:
    return {"uid": {"type": kind, "id": name}, "attrs": {}, "parents": [{"type": a, "id": b} for a, b in parents]}


def _groups(traits: Traits) -> list[str]:
    """Return a group for each trait within the namespace. The namespace itself is last: it selects least."""
    namespace = traits["namespace"]
    return [f"{namespace}/{key}={value}" for key, value in traits.items() if key != "namespace"] + [namespace]


def _policy(rule: PlainRule) -> str:
    groups = [f"resource in Group::{json.dumps(group)}" for group in _groups(rule.target)] if rule.target else []
    if len(groups) > 1:
        groups.pop()  # a workload in the group of a trait is also in the namespace
    conditions = groups[1:]
    if rule.callers or rule.spaces:
        conditions.append(_any(_callers(rule)))
    if rule.ports:
        conditions.append(_any([f"context.port == {port}" for port in rule.ports]))
    if rule.paths:
        conditions.append(_any([_path(path) for path in rule.paths]))
    if rule.methods:
        conditions.append(_any([f"context.method == {json.dumps(method)}" for method in rule.methods]))
    if rule.tools:
        conditions.append(_any([_tool(tool) for tool in rule.tools]))
    when = f" when {{ {' && '.join(conditions)} }}" if conditions else ""
    return f"{'forbid' if rule.deny else 'permit'}(principal, action, {groups[0] if groups else 'resource'}){when};"


def _callers(rule: PlainRule) -> list[str]:
    return [f"principal == Caller::{json.dumps(caller)}" for caller in rule.callers] + [
        f"principal in Namespace::{json.dumps(space)}" for space in rule.spaces
    ]


def _path(path: str) -> str:
    return f"context.path {'like' if '*' in path else '=='} {json.dumps(path)}"


def _tool(tool: str) -> str:
    return f"context.{'qualified' if '/' in tool else 'tool'} == {json.dumps(tool)}"


def _any(conditions: list[str]) -> str:
    return f"({' || '.join(conditions)})"
