"""Tests whether a regular expression matches the identities of all service accounts of some namespaces, or of none.

Identities are `spiffe://<trust domain>/ns/<namespace>/sa/<name>`. The namespace or the name may be any name with some
exceptions. The expression becomes an automaton that reads all these identities at once.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined] # there is no other reader of patterns
from typing import Final, TypeAlias

from eastgate.basics.regexes import regex

AnyBut: TypeAlias = frozenset[str]
"""Any name except these."""

_NAME_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
_CHARACTERS: Final = _NAME_CHARACTERS | {"/", ":"}
_NAME: Final = r"(?:[A-Za-z0-9_-]|\\[.-])+"
_NAMES = regex(rf"/ns/({_NAME})/(?:\(\.\+/\|\))?(?:sa/({_NAME}))?")
_MAX_STATES: Final = 400

_States: TypeAlias = frozenset[int]


@lru_cache(maxsize=16_384)
def names_in(pattern: str) -> tuple[tuple[str, str | None], ...]:
    """Return the namespaces in an expression, each with the account that the expression names in it, if any."""
    names = ((match[1], match[2]) for match in _NAMES.finditer(pattern))
    return tuple((_unescaped(namespace), _unescaped(name) if name is not None else None) for namespace, name in names)


def _unescaped(text: str) -> str:
    return text.replace("\\", "")


@lru_cache(maxsize=16_384)
def matches_all(pattern: str, pieces: tuple[str | AnyBut, ...]) -> bool | None:
    """Return whether an expression matches ALL identities that consist of these pieces; False: NONE, None: some."""
    try:
        automaton = _Automaton(pattern)
        reached = {automaton.start}
        for piece in pieces:
            if isinstance(piece, str):
                reached = {automaton.read(states, piece) for states in reached}
            else:
                reached = set(automaton.read_names(reached, piece))
    except (re.error, NotImplementedError, RecursionError):
        return None
    outcomes = {automaton.accepts(states) for states in reached}
    return outcomes.pop() if len(outcomes) == 1 else None


class _Automaton:
    """A nondeterministic automaton for an expression. After each character of a text it is in a set of states."""

    def __init__(self, pattern: str) -> None:
        self._moves: list[list[tuple[frozenset[str], int]]] = []
        self._silent: list[list[int]] = []
        self._named: set[str] = set()
        parsed = _parser.parse(pattern)
        if parsed.state.flags & re.IGNORECASE:
            raise NotImplementedError
        first = self._state()
        self._end = self._add(parsed, first)
        self.start = self._closed([first])

    def accepts(self, states: _States) -> bool:
        """Return whether the expression matches a text that leads to these states."""
        return self._end in states

    def read(self, states: _States, text: str) -> _States:
        """Return the states after some more text."""
        for character in text:
            states = self._closed(
                after for state in states for characters, after in self._moves[state] if character in characters
            )
        return states

    def read_names(self, before: Iterable[_States], but: AnyBut) -> Iterator[_States]:
        """Yield all sets of states after any name except these."""
        told_apart = (self._named | set("".join(but))) & _NAME_CHARACTERS
        others = sorted(_NAME_CHARACTERS - told_apart)[:1]
        alphabet = [*sorted(told_apart), *others]
        # In addition to the states: the name so far, if it may still become one of the exceptions.
        ahead: list[tuple[_States, str | None]] = [(states, "") for states in before]
        seen: set[tuple[_States, str | None]] = set()
        while ahead:
            states, name = ahead.pop()
            for character in alphabet:
                longer = f"{name}{character}" if name is not None else None
                kept = longer if longer is not None and any(each.startswith(longer) for each in but) else None
                step = self.read(states, character), kept
                if step in seen:
                    continue
                seen.add(step)
                if len(seen) > _MAX_STATES:
                    raise NotImplementedError
                ahead.append(step)
                if kept not in but:
                    yield step[0]

    # Construction of the automaton

    def _state(self) -> int:
        self._moves.append([])
        self._silent.append([])
        return len(self._moves) - 1

    def _closed(self, states: Iterable[int]) -> _States:
        ahead, closed = list(states), set[int]()
        while ahead:
            state = ahead.pop()
            if state not in closed:
                closed.add(state)
                ahead += self._silent[state]
        return frozenset(closed)

    def _add(self, parsed: object, state: int) -> int:
        """Add the parsed part after a state, and return the last state of the part."""
        for operator, argument in parsed:  # type: ignore[attr-defined] # the parser has no types
            state = self._add_piece(str(operator), argument, state)
        return state

    def _add_piece(self, operator: str, argument: object, state: int) -> int:
        match operator, argument:
            case "SUBPATTERN", (_, 0, 0, inner):
                return self._add(inner, state)
            case "BRANCH", (_, list(branches)):
                after = self._state()
                for branch in branches:
                    self._silent[self._add(branch, state)].append(after)
                return after
            case "MAX_REPEAT" | "MIN_REPEAT", (int(least), most, inner):
                return self._add_repeated(least, most, inner, state)
            case _:
                after = self._state()
                self._moves[state].append((self._characters(operator, argument), after))
                return after

    def _add_repeated(self, least: int, most: object, inner: object, state: int) -> int:
        for _ in range(least):
            state = self._add(inner, state)
        if most is _constants.MAXREPEAT:
            loop = self._state()
            self._silent[state].append(loop)
            self._silent[self._add(inner, loop)].append(loop)
            return loop
        after = self._state()
        self._silent[state].append(after)
        for _ in range(int(str(most)) - least):
            state = self._add(inner, state)
            self._silent[state].append(after)
        return after

    def _characters(self, operator: str, argument: object) -> frozenset[str]:
        match operator, argument:
            case "LITERAL", int(code):
                self._named.add(chr(code))
                return frozenset({chr(code)})
            case "NOT_LITERAL", int(code):
                self._named.add(chr(code))
                return _CHARACTERS - {chr(code)}
            case "ANY", _:
                return _CHARACTERS
            case "IN", list(members):
                negated = bool(members) and str(members[0][0]) == "NEGATE"
                listed = members[1:] if negated else members
                chosen = frozenset[str]().union(*(self._characters(str(op), value) for op, value in listed))
                return _CHARACTERS - chosen if negated else chosen
            case "RANGE", (int(first), int(last)):
                characters = frozenset(map(chr, range(first, last + 1)))
                self._named |= characters
                return characters
            case _:
                raise NotImplementedError
