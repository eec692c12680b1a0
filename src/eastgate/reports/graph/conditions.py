"""Conditions of edges as text that is exact and short.

If rules read MCP messages, the messages are sorted into classes that no rule distinguishes. Each class is named with
its other conditions: "tools answer, list; tool refund if limits.agents:9000 allows".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby

from eastgate.ir import ALWAYS, NEVER, And, Computed, Is, Not, OneOf, Or, Predicate, Present, atoms, conjuncts
from eastgate.ir.attributes import MCP_METHOD, MCP_TOOL, METHOD, header
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.ir.symbolic.simplify import both, either, negation
from eastgate.ir.symbolic.trees import Entry
from eastgate.reach.endings import Branch
from eastgate.reach.requests import EffectiveMessage, messages
from eastgate.reports.conditions import TWO_LINES, USUAL_FACTS, condition_text
from eastgate.reports.effective.words import messages_text

SESSIONS = "MCP sessions"
"""The MCP messages that every client sends before it calls a tool, and those that end its session."""

_LONG_CONDITION_CHARS = 240  # a longer condition is shown as a list if that is shorter
_MAX_STEPS = 2  # steps with the same verdict in a list
_SESSION_METHODS = frozenset({"initialize", "ping", "tools/list", "notifications/*"})
_DISCOVERY = "server/discover"  # the first message of newer clients
_WITHOUT_MESSAGE = Or(
    (
        Is(METHOD, OneOf(frozenset({"GET"}))),
        And((Is(METHOD, OneOf(frozenset({"DELETE"}))), Is(header("mcp-session-id"), Present()))),
    )
)
"""Requests of a session without a message: its stream, and its end."""


def narrow(branches: Sequence[Branch], facts: Facts) -> tuple[Branch, ...]:
    """Return the branches for requests with these facts."""
    narrowed: list[Branch] = []
    for branch in branches:
        when = residual(branch.when, facts)
        if when != NEVER:
            narrowed.append(Entry(when, branch.end))
        if when == ALWAYS:
            break
    return tuple(narrowed)


def within(branches: Sequence[Branch], guard: Predicate) -> tuple[Branch, ...]:
    """Return the branches for requests that meet a guard, without the parts that the guard implies."""
    met = frozenset(conjuncts(guard))
    kept: list[Branch] = []
    for branch in branches:
        if both((guard, branch.when)) != NEVER:
            rest = [part for part in conjuncts(branch.when) if part not in met]
            kept.append(Entry(both(rest), branch.end))
            if not rest:
                break
    return tuple(kept)


def allowed_when(branches: Sequence[Branch], guard: Predicate = ALWAYS) -> Predicate:
    """Return the condition on which requests that meet a guard are allowed; the FIRST branch that holds decides."""
    denied: list[Predicate] = []
    allowed: list[Predicate] = []
    for branch in branches:
        if branch.end.allowed:
            allowed.append(without(both((guard, branch.when)), denied))
        else:
            denied.append(branch.when)
    return either(allowed)


def without(predicate: Predicate, excluded: Iterable[Predicate]) -> Predicate:
    """Return a predicate that also excludes the others."""
    overlapping = [other for other in excluded if both((predicate, other)) != NEVER]
    return both((predicate, *map(negation, overlapping))) if overlapping else predicate


def explain_branches(branches: Sequence[Branch], guard: Predicate = ALWAYS, *, exact: bool = False) -> str | None:
    """Describe the usual requests that meet a guard and are allowed; None if all requests are.

    `exact`: describe all requests, not only usual ones, at any length.
    """
    if exact:
        when = allowed_when(branches, guard)
        return None if when == ALWAYS else condition_text(when, exact=True)
    usual = narrow(branches, USUAL_FACTS)
    branches = usual if any(branch.end.allowed for branch in usual) else branches
    asked = list(dict.fromkeys(atom for branch in branches for atom in atoms(branch.when)))
    if not any(_is_about_messages(atom) for atom in asked):
        when = allowed_when(branches, guard)
        text = None if when == ALWAYS else condition_text(when, most=None)
        if text is None or len(text) <= TWO_LINES:
            return text
        return min(_list(branches, guard), text, key=len) if len(text) > _LONG_CONDITION_CHARS else condition_text(when)
    text = _explain_messages(branches, messages(asked))
    if guard == ALWAYS:
        return text
    return condition_text(guard) if text is None else f"{condition_text(guard)}: {text}"


def _list(branches: Sequence[Branch], guard: Predicate) -> str:
    """List the verdicts in the order of evaluation. This is shorter for conditions with many exceptions."""
    steps: list[str] = []
    for allowed, run in groupby(branches[:-1], lambda branch: branch.end.allowed):
        verdict = "allow" if allowed else "deny"
        texts = [f"{verdict} if {condition_text(branch.when)}" for branch in run]
        more = len(texts) - _MAX_STEPS
        steps += texts if more < 2 else [*texts[:_MAX_STEPS], f"{verdict} in {more} more cases"]
    last = "allow" if branches[-1].end.allowed else "deny"
    if branches[-1].when != ALWAYS:
        last = f"{last} if {condition_text(branches[-1].when)}"
    listed = "; else ".join([*steps, last])
    return listed if guard == ALWAYS else f"{condition_text(guard)}: {listed}"


def explain_predicate(predicate: Predicate) -> str | None:
    """Describe a predicate; None if it always holds."""
    return None if predicate == ALWAYS else condition_text(predicate)


def _is_about_messages(atom: Is | Computed) -> bool:
    looked_at = {atom.attribute} if isinstance(atom, Is) else atom.attributes
    return not looked_at.isdisjoint({MCP_METHOD, MCP_TOOL})


def _explain_messages(branches: Sequence[Branch], kinds: Sequence[EffectiveMessage]) -> str | None:
    groups: dict[Hashable, tuple[Predicate, list[EffectiveMessage]]] = {}
    for kind in kinds:
        when = allowed_when(narrow(branches, kind.facts))
        if when != NEVER:
            groups.setdefault(_form(when), (when, []))[1].append(kind)
    bare = next((form for form, (_, chosen) in groups.items() if any(kind.method is None for kind in chosen)), None)
    has_session = {form: _has_session(*group, bare) for form, group in groups.items()}
    texts = []
    for form, (when, chosen) in groups.items():
        if len(chosen) == len(kinds):
            return explain_predicate(when)
        listed = [kind for kind in chosen if kind.method is not None] if any(has_session.values()) else chosen
        if listed:
            text = _name(listed, kinds, has_session=has_session[form])
            texts.append(text if when == ALWAYS else f"{text} if {condition_text(when)}")
    return "; ".join(texts) or "nothing"


def _has_session(when: Predicate, chosen: Sequence[EffectiveMessage], bare: Hashable) -> bool:
    """Return whether messages include those of sessions, and session requests without a message have the
    same condition.
    """
    methods = {str(kind.method) for kind in chosen}
    return methods >= _SESSION_METHODS and _form(both((when, _WITHOUT_MESSAGE))) == bare


def _name(chosen: Sequence[EffectiveMessage], kinds: Sequence[EffectiveMessage], *, has_session: bool) -> str:
    """Name messages. If most of all messages are chosen, name the others: "anything but ..."."""
    methods = {kind.method for kind in chosen}
    if methods >= {"*", None}:
        return f"anything but {messages_text([kind for kind in kinds if kind not in chosen], alone=False)}"
    if not has_session:
        return messages_text(chosen, alone=False)
    session = _SESSION_METHODS | {_DISCOVERY}
    rest = messages_text([kind for kind in chosen if kind.method not in session], alone=False)
    session_name = SESSIONS if _DISCOVERY in methods else f"{SESSIONS} without {_DISCOVERY}"
    return f"{rest}, {session_name}" if rest else session_name


def _form(predicate: Predicate) -> Hashable:
    """Return a key that is equal for predicates whose parts only differ in order."""
    match predicate:
        case And():
            return "and", frozenset(map(_form, conjuncts(predicate)))
        case Or(parts):
            return "or", frozenset(map(_form, parts))
        case Not(part):
            return "not", _form(part)
        case _:
            return predicate
