"""What the dialects tell lint, looked up by policy and by layer. A policy that no dialect knows is an error."""

from __future__ import annotations

from typing import Any

from eastgate import dialects
from eastgate.diagnostics import Code
from eastgate.dialects import Policy
from eastgate.dialects.base import Scene
from eastgate.dialects.linting import Linting, Statements, codes
from eastgate.dialects.rejected import DIALECT as REJECTED
from eastgate.lint.ground import Ground, Group

__all__ = ["lint_codes", "linting_of", "lintings", "lintings_by_layer", "statements_of"]


def lintings() -> list[Linting[Any]]:
    """Return what each dialect tells lint."""
    return [dialect.lint() for dialect in (REJECTED, *dialects.DIALECTS)]


def linting_of(policy: Policy) -> Linting[Any]:
    """Return what the dialect of a policy tells lint."""
    for linting in lintings():
        if isinstance(policy, linting.model):
            return linting
    raise TypeError(f"{policy.ref} is a policy of no dialect")


def statements_of(policy: Policy) -> Statements:
    """Return what a policy states."""
    return linting_of(policy).statements(policy)


def lintings_by_layer(group: Group, ground: Ground) -> list[Linting[Any]]:
    """Return for each layer of a group what its dialect tells lint."""
    stances = dict(ground.stances(group, group.attached, ground.settings))
    return [
        dialect.lint()
        for dialect in (REJECTED, *dialects.DIALECTS)
        for _ in dialect.assemble(group.attached, Scene(ground.settings, ground.world, stances.get(dialect.name)))
    ]


def lint_codes() -> dict[str, Code]:
    """Return every code of lint by its number, those of the dialects too."""
    modules = [codes, *(module for linting in lintings() for module in linting.codes)]
    return {value.id: value for module in modules for value in vars(module).values() if isinstance(value, Code)}
