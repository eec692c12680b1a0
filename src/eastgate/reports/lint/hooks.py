"""What the dialects bring for lint, looked up by policy and by layer. A policy of no dialect is an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eastgate.basics.diagnostics import Code
from eastgate.dialects import Policy, dialect_of, registered
from eastgate.dialects.base import Dialect, Scene
from eastgate.dialects.linting import Check, Linting, ReadingChoice, Statements, codes
from eastgate.ir import Attachment
from eastgate.reports.lint.inventory import Group, PolicyInventory


def linting_of(policy: Policy) -> Linting[Any]:
    """Return what the dialect of a policy tells lint."""
    return dialect_of(policy).lint()


def statements_of(policy: Policy) -> Statements:
    """Return what a policy states."""
    return linting_of(policy).statements(policy)


def own_checks() -> Iterator[Check]:
    """Return the checks that each dialect has for itself."""
    for dialect in registered().dialects:
        yield from dialect.lint().checks


def lint_codes() -> dict[str, Code]:
    """Return every code of lint by its number, those of the dialects too."""
    modules = [codes, *(module for dialect in registered().dialects for module in dialect.lint().codes)]
    return {value.id: value for module in modules for value in vars(module).values() if isinstance(value, Code)}


# At a point


def dialects_by_layer(group: Group, inventory: PolicyInventory) -> list[Dialect[Any]]:
    """Return the dialect of each layer of a group."""
    by_layer = inventory.dialects_by_layer.get(group.first)
    if by_layer is None:
        by_layer = inventory.dialects_by_layer[group.first] = _dialects_by_layer(group, inventory)
    return by_layer


def _dialects_by_layer(group: Group, inventory: PolicyInventory) -> list[Dialect[Any]]:
    stances = dict(inventory.stances(group, group.attached, inventory.settings))
    present = [dialect for dialect in registered().dialects if dialect.name in stances or _own(dialect, group.attached)]
    if len(present) == 1:
        return present * len(group.layers)
    scenes = {
        dialect.name: Scene(inventory.settings, inventory.world, stances.get(dialect.name)) for dialect in present
    }
    return [dialect for dialect in present for _ in dialect.assemble(group.attached, scenes[dialect.name])]


def policies_to_blame(group: Group, index: int, inventory: PolicyInventory) -> list[Policy]:
    """Return the policies in force because of which a layer allows nothing, those that allow first."""
    blames, layer = dialects_by_layer(group, inventory)[index].lint().blames, group.layers[index]
    enforced = dict.fromkeys(attachment.policy for attachment in group.attached if not attachment.policy.audit)
    policies = [policy for policy in enforced if blames(policy, layer)]
    return sorted(policies, key=lambda policy: (not statements_of(policy).allows, str(policy.ref)))


def readings_at(group: Group) -> Iterator[tuple[ReadingChoice[Any], list[Policy]]]:
    """Return the readings that matter at a group, each with the policies in force that it concerns."""
    for dialect in registered().dialects:
        own = _own(dialect, group.attached)
        enforced = [attachment for attachment in own if not attachment.policy.audit]
        for reading in dialect.lint().readings:
            if reading.shapes(group.layers, own):
                yield reading, [attachment.policy for attachment in enforced if reading.concerns(attachment)]


def _own(dialect: Dialect[Any], attached: Iterable[Attachment[Policy]]) -> list[Attachment[Policy]]:
    return [attachment for attachment in attached if isinstance(attachment.policy, dialect.model)]
