"""The plan for all ports that no policy tells apart: one of them stands for the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from eastgate.envoy.plan.callers import ByCaller
from eastgate.envoy.plan.codes import NOT_A_TEST, Inexpressible
from eastgate.envoy.plan.decisions import policy_name
from eastgate.envoy.plan.ports import CLOSED, PortPlan, plan_port
from eastgate.ir import Is, Layer, OneOf, PolicyRef, Present
from eastgate.ir.attributes import PORT
from eastgate.ir.symbolic.caller_cells import CallerCells
from eastgate.settings import Settings


def named_ports(layers: Iterable[Layer]) -> frozenset[int] | None:
    """Return the ports that layers name; None where they tell others apart as well."""
    named: set[int] = set()
    for layer in layers:
        for atom in layer.atoms(observed=True):
            if not isinstance(atom, Is):
                if PORT in atom.attributes:
                    return None
            elif atom.attribute == PORT:
                match atom.matcher:
                    case OneOf(values):
                        named |= {port for port in values if isinstance(port, int)}
                    case Present():
                        pass
                    case _:
                        return None
    return frozenset(named)


def plan_any_port(layers: Sequence[Layer], port: int, settings: Settings, known: Iterable[str] = ()) -> PortPlan:
    """Plan, as `port`, all ports that no layer names. Where layers tell these apart, they are closed."""
    named = named_ports(layers)
    if named is not None:
        some = next(number for number in count(1) if number not in named)
        return replace(plan_port(layers, some, settings, known), port=port)
    refused = Inexpressible(NOT_A_TEST, "it tells ports apart that no manifest declares", _policies(layers))
    cells = CallerCells(settings).cells((), known)
    closed = ByCaller.of(cells, dict.fromkeys(cells, CLOSED))
    return PortPlan(port, closed, None, None, None, frozenset(map(policy_name, refused.policies)), refused)


def _policies(layers: Iterable[Layer]) -> Iterator[PolicyRef]:
    rules = (rule for layer in layers for chain in layer.chains for rule in chain.rules(observed=True))
    return (rule.origin.policy for rule in rules if rule.origin.policy is not None)
