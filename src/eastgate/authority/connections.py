"""Connections: the verdicts of network policies at both ends of each connection on which a question arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from eastgate.authority.point_programs import PointPrograms, ProgramIndex, unlabelled
from eastgate.authority.questions import Arrival, EntryPoint, Question, Values
from eastgate.authority.questions.connecting import connections_of, name_ports
from eastgate.authority.questions.labels import selectors_about
from eastgate.authority.questions.senders import Receiver, Sender, any_pod, senders_of
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.cluster.points import NetworkEnd
from eastgate.dialects import Policy
from eastgate.engine.compiled import Program, compile_layers
from eastgate.engine.engine import Engine
from eastgate.engine.verdicts import PASSED
from eastgate.ir import UNOPPOSED, AllowAny, Origin, Outcome, in_force
from eastgate.settings import Settings


@dataclass(frozen=True, slots=True)
class ConnectionVerdict:
    """The verdict of network policies about a connection, and the end that decides. `isolating` policies close that
    end.

    `closing` are the audited policies that would close it, if this is the verdict with audited policies in force.
    """

    outcome: Outcome = UNOPPOSED
    end: NetworkEnd | None = None
    isolating: tuple[Policy, ...] = ()
    closing: tuple[Origin, ...] = ()


class Connections:
    """The connections of questions, and the verdicts of network policies about them until something changes."""

    def __init__(self, engine: Engine[Policy], world: World, settings: Settings, programs: ProgramIndex) -> None:
        self._engine = engine
        self._world = world
        self._settings = settings
        self._programs = programs
        self._isolated: dict[NetworkEnd, tuple[Policy, ...]] = {}
        self._in_force: dict[NetworkEnd, tuple[Program, tuple[Origin, ...]]] = {}

    def arrivals(
        self, question: Question, entry: EntryPoint, shared: Values, callers: Iterable[Values]
    ) -> Iterator[tuple[Arrival, PointPrograms]]:
        """Yield the request of every connection from a caller to an entry, with both ends of the connection."""
        for caller in callers:

            def senders(receiver: Receiver, caller: Values = caller) -> tuple[Sender, ...]:
                telling = partial(selectors_about, self._engine, self._world, receiver)
                return senders_of(question, caller, self._world, self._settings, telling)

            for connection in connections_of(entry, senders, question, self._world):
                at = self._programs.at(connection.points)
                for ports in name_ports(connection, at.layers, question, self._world):
                    values = {**shared, **caller, **ports, **connection.values}
                    yield from ((arrival, at) for arrival in at.arrivals(connection, values, question))

    def arrivals_of_any_pod(
        self, question: Question, namespace: str, entries: Iterable[EntryPoint], shared: Values
    ) -> Iterator[tuple[Arrival, PointPrograms]]:
        """Yield the request of every connection from a pod of a namespace, for every set of labels of the pod."""
        sender = any_pod(namespace, self._world)
        for entry in entries:
            for connection in connections_of(entry, lambda _: (sender,), question, self._world):
                at = self._programs.at(connection.points)
                yield at.arrival(connection, {**shared, **connection.values}, question), at

    def decide(self, arrivals: Sequence[tuple[Arrival, PointPrograms]], *, would: bool) -> ConnectionVerdict:
        """Return the first denial at an end, or the acceptance of the first arrival.

        `would`: with all audited policies in force. Raises QuestionError if labels that decide are unknown.
        """
        allowed = ConnectionVerdict()
        for number, (arrival, at) in enumerate(arrivals):
            if at.uncertain is not None and isinstance(at.uncertain[0], NetworkEnd):
                raise unlabelled(*at.uncertain)
            for point, program in zip(at.points, at.programs, strict=True):
                if not isinstance(point, NetworkEnd):
                    continue
                decider, closing = self._would(point, program) if would else (program, ())
                verdict = decider.finder.find(arrival.request)
                if not verdict & 1:
                    return ConnectionVerdict(decider.outcome(verdict), point, self._isolating(point), closing)
                if verdict != PASSED and number == 0:
                    allowed = ConnectionVerdict(decider.outcome(verdict), point)
        return allowed

    def _would(self, end: NetworkEnd, program: Program) -> tuple[Program, tuple[Origin, ...]]:
        """Return the outcome at an end with its audited policies in force, and those that would close it."""
        if end not in self._in_force:
            audits = [layer.audit for layer in program.layers if layer.audit is not None]
            closing = tuple(origin for audit in audits for origin in audit.closing or audit.policies)
            self._in_force[end] = (compile_layers(in_force(program.layers)) if audits else program, closing)
        return self._in_force[end]

    def _isolating(self, end: NetworkEnd) -> tuple[Policy, ...]:
        """Return the policies that close an end to everything that no rule allows. Most rules come first."""
        if end in self._isolated:
            return self._isolated[end]
        rules: dict[Policy, int] = {}
        for policy in (attachment.policy for attachment in self._engine.attached(end)):
            chains = (chain for layer in self._engine.layers_of(policy, end.direction) for chain in layer.chains)
            for stage in (stage for chain in chains for stage in chain.stages if isinstance(stage, AllowAny)):
                rules[policy] = len(stage.rules)
        found = tuple(sorted(rules, key=lambda policy: (-rules[policy], str(policy.ref))))
        self._isolated[end] = found
        return found
