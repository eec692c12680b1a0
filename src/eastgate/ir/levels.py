"""Levels of layers at a port: connection-level layers, and layers that need HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eastgate.ir.attributes import PORT
from eastgate.ir.predicates import ALWAYS, NEVER, Computed, Is, Predicate, mentions, rewrite
from eastgate.ir.rules import Deny, Layer, Observe, Refusal, Rule, SelectorCase, rules_of


def at_port(layer: Layer, port: int) -> Layer:
    """Return the layer with only the chains that a request to this port can meet."""
    cases: list[SelectorCase] = []
    audit = layer.audit and replace(layer.audit, layer=at_port(layer.audit.layer, port))
    for case in layer.cases:
        when = rewrite(case.when, lambda atom: _at(atom, port))
        if when == ALWAYS:
            return Layer(layer.at, case.chain, tuple(cases), layer.derivations, audit)
        if when != NEVER:
            cases.append(SelectorCase(when, case.chain, case.synthetic))
    return Layer(layer.at, layer.otherwise, tuple(cases), layer.derivations, audit)


def rules_at(layer: Layer, port: int) -> Iterator[Rule]:
    """Yield the rules that can decide requests to a port. A rule that denies counts only if it can match them."""
    for chain in at_port(layer, port).chains:
        for stage in chain.stages:
            denies = isinstance(stage, Deny)
            for rule in rules_of(stage):
                if not denies or rewrite(rule.when, lambda atom: _at(atom, port)) != NEVER:
                    yield rule


def _at(atom: Is | Computed, port: int) -> Predicate:
    if isinstance(atom, Is) and atom.attribute == PORT:
        return ALWAYS if atom.matcher.contains(port) else NEVER
    return atom


def is_network(layer: Layer) -> bool:
    """Return whether a layer decides when a connection is opened: it needs no HTTP, and denies by closing."""
    stages = [stage for chain in layer.chains for stage in chain.stages]
    closes = all(isinstance(stage, Observe) or stage.refusal is Refusal.CLOSED for stage in stages)
    return closes and not any(map(needs_http, layer.atoms(observed=True)))


def needs_http(predicate: Predicate) -> bool:
    """Return whether a predicate reads an attribute that only HTTP has."""
    return any(attribute.needs_http for attribute in mentions(predicate))
