"""What the dialects tell lint, looked up by policy and by layer. A policy that no dialect knows is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eastgate import dialects
from eastgate.diagnostics import Code
from eastgate.dialects import Policy
from eastgate.dialects.base import Dialect, Scene
from eastgate.dialects.linting import Check, Linting, Reading, Statements, codes
from eastgate.dialects.rejected import DIALECT as REJECTED
from eastgate.lint.ground import Ground, Group
from eastgate.policy import Attachment

__all__ = ["dialects_by_layer", "governing", "lint_codes", "linting_of", "own_checks", "readings_at", "statements_of"]


def _dialects() -> tuple[Dialect[Any], ...]:
    return (REJECTED, *dialects.DIALECTS)


def linting_of(policy: Policy) -> Linting[Any]:
    """Return what the dialect of a policy tells lint."""
    for dialect in _dialects():
        if isinstance(policy, dialect.model):
            return dialect.lint()
    raise TypeError(f"{policy.ref} is a policy of no dialect")


def statements_of(policy: Policy) -> Statements:
    """Return what a policy states."""
    return linting_of(policy).statements(policy)


def own_checks() -> Iterator[Check]:
    """Return the checks that each dialect has for itself."""
    for dialect in _dialects():
        yield from dialect.lint().checks


def lint_codes() -> dict[str, Code]:
    """Return every code of lint by its number, those of the dialects too."""
    modules = [codes, *(module for dialect in _dialects() for module in dialect.lint().codes)]
    return {value.id: value for module in modules for value in vars(module).values() if isinstance(value, Code)}


# At a point


def dialects_by_layer(group: Group, ground: Ground) -> list[Dialect[Any]]:
    """Return the dialect of each layer of a group."""
    stances = dict(ground.stances(group, group.attached, ground.settings))
    return [
        dialect
        for dialect in _dialects()
        for _ in dialect.assemble(group.attached, Scene(ground.settings, ground.world, stances.get(dialect.name)))
    ]


def governing(group: Group, index: int, ground: Ground) -> list[Policy]:
    """Return the policies in force that have a say in a layer of a group, those that allow first."""
    dialect = dialects_by_layer(group, ground)[index]
    linting, layer = dialect.lint(), group.layers[index]
    policies = [one.policy for one in _own(dialect, group.attached) if not one.policy.audit]
    chosen = dict.fromkeys(policy for policy in policies if linting.governs(policy, layer))
    return sorted(chosen, key=lambda policy: (not linting.statements(policy).allows, str(policy.ref)))


def readings_at(group: Group) -> Iterator[tuple[Reading[Any], list[Policy]]]:
    """Return the readings that matter at a group, each with the policies in force that it concerns."""
    for dialect in _dialects():
        own = _own(dialect, group.attached)
        enforced = [one for one in own if not one.policy.audit]
        for reading in dialect.lint().readings:
            if reading.shapes(group.layers, own):
                yield reading, [one.policy for one in enforced if reading.concerns(one)]


def _own(dialect: Dialect[Any], attached: Iterable[Attachment[Policy]]) -> list[Attachment[Policy]]:
    return [attachment for attachment in attached if isinstance(attachment.policy, dialect.model)]
