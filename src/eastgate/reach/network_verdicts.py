"""Verdicts of network policies on connections between pods. Both ends must allow a connection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import product
from math import prod

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.questions.connecting import share_family, vicinity_of
from eastgate.authority.questions.labels import unlabelled_peer
from eastgate.authority.questions.senders import Receiver, Sender
from eastgate.basics.records import dataclass
from eastgate.cluster import is_added_label
from eastgate.cluster.ends import Values
from eastgate.cluster.points import Direction, NetworkEnd
from eastgate.engine.compiled import Program
from eastgate.ir import (
    ALWAYS,
    NEVER,
    Is,
    Known,
    Labelled,
    Layer,
    Not,
    OneOf,
    Origin,
    Predicate,
    Present,
    Request,
    all_of,
    any_of,
    values_of,
)
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    PORT,
    SOURCE_LABELS,
    TRANSPORT,
    UNKNOWN,
    VICINITY,
    Attribute,
)
from eastgate.ir.symbolic.cells import cells_of_attributes
from eastgate.ir.symbolic.partial import Facts, residual

_MAX_CELLS = 256  # of unknown attributes, which are decided one by one


@dataclass(frozen=True, slots=True)
class NetworkVerdict:
    """Whether every completion of a connection is allowed, and the rule that decides, if one does.

    `when`: the condition under which it is allowed.
    """

    passes: bool
    origin: Origin | None
    when: Predicate

    @property
    def may_pass(self) -> bool:
        """Return whether some completion of the connection is allowed."""
        return self.when != NEVER


@dataclass(frozen=True, slots=True, eq=False)
class _AskedOfNetwork:
    """The atoms of network policies by attribute, and their results for values."""

    atoms: Mapping[Attribute, tuple[Is, ...]]
    truths: dict[tuple[Attribute, Known], tuple[bool, ...]]

    @property
    def has_added_labels(self) -> bool:
        """Return whether an atom reads labels that a cluster adds to pods."""
        matchers = (atom.matcher for asked in self.atoms.values() for atom in asked)
        return any(isinstance(each, Labelled) and any(map(is_added_label, each.selector.keys)) for each in matchers)

    @classmethod
    def of(cls, layers: Iterable[Layer]) -> _AskedOfNetwork:
        """Return the atoms of layers."""
        atoms: dict[Attribute, dict[Is, None]] = defaultdict(dict)
        for atom in (atom for layer in layers for atom in layer.atoms(observed=False) if isinstance(atom, Is)):
            atoms[atom.attribute][atom] = None
        return cls({attribute: tuple(asked) for attribute, asked in atoms.items()}, {})


@dataclass(frozen=True, slots=True, eq=False)
class _Departure:
    """The end of a sender: its program, and the number of its kind."""

    program: Program | None
    kind: int


@dataclass(frozen=True, slots=True, eq=False)
class ReceiverEnd:
    """The end of a receiver at a port: its program, and the number of its kind."""

    receiver: Receiver
    values: Values
    program: Program | None
    kind: int
    from_far: dict[int, NetworkVerdict] = field(default_factory=dict)
    """Verdicts on connections from other places than this workload and its node, by the kind of sender."""


_FAR: Values = {VICINITY: None}
_DEPENDS = NetworkVerdict(False, None, Is(SOURCE_LABELS, Present()))


class NetworkVerdicts:
    """The network verdicts of one version of an authority. `egress` are the egress layers of its policies."""

    def __init__(self, authority: Authority) -> None:
        self._world = authority.world
        self._engine = programs_of(authority)
        self._verdicts: dict[Hashable, NetworkVerdict] = {}
        self._outcomes: dict[Hashable, NetworkVerdict] = {}
        self._answered: dict[tuple[int, int], Hashable] = {}
        self._asked_by: dict[int, _AskedOfNetwork] = {}
        self._kinds: dict[Hashable, int] = {}
        self._departures: dict[Sender, _Departure] = {}
        # All policies, because some may select only pods that are in no manifest
        policies = self._engine.network_policies
        self.egress = [layer for each in policies for layer in self._engine.layers_of(each, Direction.EGRESS)]
        arriving = (layer for each in policies for layer in self._engine.layers_of(each, Direction.INGRESS))
        self._asked = _AskedOfNetwork.of([*self.egress, *arriving])
        self._has_added_labels = self._asked.has_added_labels or any(
            self._engine.uncertain(NetworkEnd(key, Direction.INGRESS)) for key in self._world.workloads
        )

    def arrivals(self, receivers: Iterable[Receiver], port: int, transport: str = "TCP") -> list[ReceiverEnd]:
        return [
            self._arrival(receiver, {**receiver.values, PORT: port, TRANSPORT: transport}) for receiver in receivers
        ]

    def _arrival(self, receiver: Receiver, values: Values) -> ReceiverEnd:
        program = self._engine.program(receiver.end) if isinstance(receiver.end, NetworkEnd) else None
        return ReceiverEnd(receiver, values, program, self._kind(program, values))

    def _departure(self, sender: Sender) -> _Departure:
        departure = self._departures.get(sender)
        if departure is None:
            program = self._engine.program(sender.end) if sender.end is not None else None
            departure = _Departure(program, self._kind(program, sender.values))
            self._departures[sender] = departure
        return departure

    def _kind(self, program: Program | None, values: Values) -> int:
        """Return a number for an end. Ends with one program that no policy distinguishes have the same number."""
        truths = (self._truths(self._asked, attribute, value) for attribute, value in sorted(values.items()))
        return self._kinds.setdefault((id(program), *values.keys(), *truths), len(self._kinds))

    def _truths(self, asked: _AskedOfNetwork, attribute: Attribute, value: Known) -> tuple[bool, ...]:
        """Return which of the atoms on an attribute hold for a value."""
        truths = asked.truths.get((attribute, value))
        if truths is None:
            truths = tuple(atom.accepts(value) for atom in asked.atoms.get(attribute, ()))
            asked.truths[attribute, value] = truths
        return truths

    def verdict(self, sender: Sender, arrivals: Sequence[ReceiverEnd]) -> NetworkVerdict:
        """Return the verdict on a connection to all addresses of the receiver."""
        if len(arrivals) > 1:
            arrivals = [each for each in arrivals if share_family(sender, each.receiver)] or arrivals
        if len(arrivals) == 1:
            return self._verdict_at(sender, arrivals[0])
        verdicts = [self._verdict_at(sender, each) for each in arrivals]
        denied = next((verdict for verdict in verdicts if not verdict.passes), None)
        if denied is None:
            return verdicts[0]
        cases = [
            all_of([equal(DESTINATION_ADDRESS, each.values.get(DESTINATION_ADDRESS)), verdict.when])
            for each, verdict in zip(arrivals, verdicts, strict=True)
            if verdict.may_pass
        ]
        return NetworkVerdict(False, denied.origin, any_of(cases))

    def _verdict_at(self, sender: Sender, arrival: ReceiverEnd) -> NetworkVerdict:
        if self._has_added_labels and self._is_unlabelled(sender, arrival.receiver):
            return _DEPENDS
        departure = self._departure(sender)
        receiving = arrival.receiver.workload
        is_far = sender.workload is None and (receiving is None or receiving.host_ip is None)
        known = arrival.from_far.get(departure.kind) if is_far else None
        if known is not None:
            return known
        vicinity = _FAR if is_far else vicinity_of(sender, arrival.receiver, is_direct=True)
        key = departure.kind, arrival.kind, vicinity.get(VICINITY, UNKNOWN)
        verdict = self._verdicts.get(key)
        if verdict is None:
            programs = [program for program in (departure.program, arrival.program) if program is not None]
            verdicts = [self._outcome(program, sender, departure, arrival, vicinity) for program in programs]
            denied = next((each for each in verdicts if not each.passes), None)
            origins = [each.origin for each in verdicts if each.origin is not None]
            if denied is None:
                verdict = NetworkVerdict(True, origins[-1] if origins else None, ALWAYS)
            else:
                may_pass = all(each.may_pass for each in verdicts)
                when = all_of([each.when for each in verdicts]) if may_pass else NEVER
                verdict = NetworkVerdict(False, denied.origin, when)
            self._verdicts[key] = verdict
        if is_far:
            arrival.from_far[departure.kind] = verdict
        return verdict

    def _is_unlabelled(self, sender: Sender, receiver: Receiver) -> bool:
        """Return whether policies read labels that a cluster adds to the pods of templates at these ends."""
        ends = [end for end in (sender.end, receiver.end) if isinstance(end, NetworkEnd)]
        if any(map(self._engine.uncertain, ends)):
            return True
        return unlabelled_peer(self._engine, self._world, ends) is not None

    def _outcome(
        self, program: Program, sender: Sender, departure: _Departure, arrival: ReceiverEnd, vicinity: Values
    ) -> NetworkVerdict:
        """Return the verdict of one end. It is computed once for all values that the rules do not distinguish."""
        asked = self._asked_by.get(id(program))
        if asked is None:
            asked = self._asked_by[id(program)] = _AskedOfNetwork.of(program.layers)
        near = vicinity.get(VICINITY, UNKNOWN) if VICINITY in asked.atoms else None
        leaving = self._answers(program, asked, departure.kind, sender.values)
        key = id(program), leaving, self._answers(program, asked, arrival.kind, arrival.values), near
        outcome = self._outcomes.get(key)
        if outcome is None:
            values = {**arrival.values, **sender.values, **vicinity}
            decided = program.outcome(program.finder.find(Request(values)))
            when = ALWAYS if decided.allowed else _passing(program, asked, values)
            outcome = NetworkVerdict(decided.allowed, decided.rule.origin if decided.rule is not None else None, when)
            self._outcomes[key] = outcome
        return outcome

    def _answers(self, program: Program, asked: _AskedOfNetwork, kind: int, values: Values) -> Hashable:
        """Return the results of a program's atoms for an end of some kind."""
        key = id(program), kind
        answers = self._answered.get(key)
        if answers is None:
            answers = self._answered[key] = tuple(
                self._truths(asked, attribute, values[attribute]) if attribute in values else None
                for attribute in asked.atoms
            )
        return answers


def _passing(program: Program, asked: _AskedOfNetwork, values: Values) -> Predicate:
    """Return the unknown values that allow a connection, if it is denied because they are unknown."""
    unknown = [attribute for attribute in asked.atoms if attribute not in values]
    rules = (rule for layer in program.layers for chain in layer.chains for rule in chain.rules(observed=False))
    if not unknown or all(residual(rule.when, Facts(values)) == NEVER for rule in rules):
        return NEVER
    atoms = [atom for atoms in asked.atoms.values() for atom in atoms]
    cells, is_all = cells_of_attributes(atoms, unknown)
    if not is_all or prod(len(cells[attribute]) for attribute in unknown) > _MAX_CELLS:
        return Is(unknown[0], Present())  # it depends on this attribute
    return any_of(
        all_of([_in_cell(asked, attribute, value) for attribute, value in zip(unknown, chosen, strict=True)])
        for chosen in product(*(cells[attribute] for attribute in unknown))
        if program.outcome(program.finder.find(Request({**values, **dict(zip(unknown, chosen, strict=True))}))).allowed
    )


def _in_cell(asked: _AskedOfNetwork, attribute: Attribute, value: Known) -> Predicate:
    """Match the values of an attribute that no rule distinguishes from this one."""
    return all_of([atom if atom.accepts(value) else Not(atom) for atom in asked.atoms[attribute]])


def equal(attribute: Attribute, value: Known) -> Predicate:
    return Is(attribute, OneOf(frozenset(values_of(value)))) if value is not None else Not(Is(attribute, Present()))
