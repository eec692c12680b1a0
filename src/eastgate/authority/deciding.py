"""Deciding: a question becomes requests, each is decided where it arrives, and the answer combines the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from eastgate.authority.connections import Connections, ConnectionVerdict
from eastgate.authority.decisions import Decision
from eastgate.authority.enforcement import Enforcers
from eastgate.authority.point_programs import ArrivalVerdict, PointPrograms, ProgramIndex, leave_out_others, unlabelled
from eastgate.authority.questions import (
    NOT_CONSIDERED,
    POLICY_REJECTED,
    Arrival,
    EntryPoint,
    Question,
    QuestionError,
    Resolver,
    UnknownLabelsError,
    Values,
    callers_of,
    ends,
    request_values,
)
from eastgate.basics.records import brief
from eastgate.cluster import World
from eastgate.cluster.points import NetworkEnd, Point
from eastgate.cluster.unread import (
    Handling,
    Standing,
    Unconsidered,
    UnreadObjects,
    could_change,
    list_unconsidered,
    standing,
)
from eastgate.dialects import Policy
from eastgate.dialects import rejected as rejection
from eastgate.engine.engine import Engine
from eastgate.ir import Predicate, Request, mentions
from eastgate.ir.attributes import SOURCE_LABELS, Attribute, header, query
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.authority.connections import Connections, ConnectionVerdict

_make = tuple.__new__  # half the time of a call of the class, which every question makes
Widen: TypeAlias = Callable[[Arrival, PointPrograms], Request]


class Decider:
    """Answers questions about a world by an engine, and caches resolved questions until something changes."""

    def __init__(
        self, world: World, settings: Settings, engine: Engine[Policy], unread: Handling, enforcers: Enforcers
    ) -> None:
        self._world = world
        self._enforcers = enforcers
        self._settings = settings
        self.engine = engine
        self.unread = unread
        self._unread_objects = UnreadObjects()
        self._forget()

    def _forget(self) -> None:
        """Clear the cache of resolved questions."""
        self._version = self.engine.version
        self._rejections = self.engine.count(rejection.RejectedPolicy)
        if self._rejections:
            policies = (each for each in self.engine.policies if isinstance(each, rejection.RejectedPolicy))
            self._rejections = len(_without_placeholders(policies))
        self._unconsidered = Unconsidered(rejected=self._rejections)
        self._resolver = Resolver(self._world, self._settings, self.engine.is_guarded, self.engine)
        self._programs = ProgramIndex(self.engine, self._world)
        self._connections: Connections | None = None
        if self.engine.has_network_policies:
            from eastgate.authority.connections import Connections  # many manifests have no such policies

            self._connections = Connections(self.engine, self._world, self._settings, self._programs)
        self._routing_fields: frozenset[Attribute] | None = None

    @property
    def version(self) -> int:
        """Return the version of the answers: it grows with every change. Older cached results are cleared first."""
        if self._version != self.engine.version:
            self._forget()
        return self._version

    @property
    def unread_objects(self) -> UnreadObjects:
        """Return the objects of kinds that are not read."""
        return self._unread_objects

    @unread_objects.setter
    def unread_objects(self, objects: UnreadObjects) -> None:
        self._unread_objects = objects
        self.engine.version += 1  # answers may have changed

    def decide(self, question: Question) -> Decision:
        """Answer a question. Raises QuestionError if it cannot be decided.

        The reasons are a policy with errors that could change the answer, or an unread object, as `unread` tells.
        """
        try:
            arrivals = self.arrivals(question, with_network=True)
        except UnknownLabelsError as error:
            return self._deny_any_labels(question, error)
        return self.judge(question, [at.decide(arrival) for arrival, at in arrivals])

    def decide_widened(self, question: Question, widen: Widen) -> Decision:
        """Answer as `decide` does, after `widen` replaced each request that the question means."""
        try:
            arrivals = self.arrivals(question, with_network=True)
        except UnknownLabelsError as error:
            return self._deny_any_labels(question, error, widen)
        return self.judge(question, list(_decide_widened(arrivals, widen)))

    def _deny_any_labels(self, question: Question, error: UnknownLabelsError, widen: Widen | None = None) -> Decision:
        """Return the denial of a layer that denies for all labels of the caller. Raises the error if there is none."""
        decision = self.judge(question, list(_decide_widened(self.arrivals(question), widen)))
        if not decision.allowed:
            return decision
        assert self._connections is not None  # noqa: S101 - network policies ask for the labels
        shared = request_values(question)
        entries = self._resolver.entries(question, shared)
        arrivals = self._connections.arrivals_of_any_pod(question, error.namespace, entries, shared)
        decided = _decide_widened(arrivals, widen)
        denied = [each for each in decided if not each.allowed and not _asks_for_labels(each)]
        if not denied:
            raise error
        return self.judge(question, denied)

    def enforced(self, question: Question, along: tuple[Point, ...] | None = None) -> Decision:
        """Return the enforced decision: proxies close the targets of a policy with errors.

        `along`: only the ways that pass these points count, if there are any. On one machine, the proxies of workloads
        enforce network policies too. Raises QuestionError if labels that decide are unknown.
        """
        is_at_workloads = isinstance(question.destination, ends.Pod | ends.Service)
        with_network = self._world.is_local and is_at_workloads
        decided = [at.decide(each) for each, at in self.arrivals(question, with_network=with_network)]
        for each in decided if with_network else ():
            if each.at.uncertain is not None and isinstance(each.at.uncertain[0], NetworkEnd):
                raise unlabelled(*each.at.uncertain)
        return self.answer(question, [each for each in decided if each.at.points == along] or decided)

    def decide_connection(self, question: Question, *, would: bool = False) -> ConnectionVerdict:
        """Return the verdict of network policies alone about a connection. Raises QuestionError if it is unknown.

        `would`: the verdict with all audited policies in force.
        """
        from eastgate.authority.connections import ConnectionVerdict

        arrivals = self.arrivals(question, with_network=True)
        return ConnectionVerdict() if self._connections is None else self._connections.decide(arrivals, would=would)

    def ways(self, question: Question) -> Iterator[tuple[str, Predicate, bool]]:
        """Yield the ways that a question may take, with the condition of their requests and whether all are allowed."""
        arrivals = self.arrivals(question, with_network=True)
        decided = [at.decide(each) for each, at in arrivals if each.entry.condition is not None]
        denied = {id(each.arrival.entry.condition) for each in decided if not each.allowed}
        entries = {id(each.arrival.entry.condition): each.arrival.entry for each in decided}
        for condition, entry in entries.items():
            if (within := entry.within) is not None:
                yield entry.where, within, condition not in denied

    # Destinations of a question

    def arrivals(self, question: Question, *, with_network: bool = False) -> list[tuple[Arrival, PointPrograms]]:
        """Return the requests that a question means, each with the programs where it arrives.

        `with_network`: also include the two ends of the connection, if the network applies policies.
        """
        if self._version != self.engine.version:
            self._forget()
        shared = request_values(question)
        callers = self._resolver.callers(question)
        routed_by = self.routed_by if self._routing_fields is None else self._routing_fields
        if routed_by:
            leave_out_others(shared, question, routed_by)
        arrivals: list[tuple[Arrival, PointPrograms]] = []
        for entry in self._resolver.entries(question, shared, with_network=with_network):
            if with_network and self._connections is not None:
                arrivals += self._connections.arrivals(question, entry, shared, callers)
                continue
            at = self._programs[entry]
            is_plain = at.is_plain and entry.condition is None and not entry.hides_http
            for caller in callers:
                values = {**shared, **caller, **entry.values}
                if is_plain:
                    arrivals.append((_make(Arrival, (entry, Request(values, question.external_auth))), at))
                elif at.doubtful:
                    arrivals += [(arrival, at) for arrival in at.arrivals(entry, values, question)]
                else:
                    arrivals.append((at.arrival(entry, values, question), at))
        return arrivals

    def callers(self, question: Question) -> tuple[Values, ...]:
        """Return the known attributes of each possible caller of a question."""
        return self._resolver.callers(question)

    def entries(self, question: Question, shared: Values) -> tuple[EntryPoint, ...]:
        """Return every entry that a question may lead to; `shared` are the known attributes of its requests."""
        return self._resolver.entries(question, shared)

    def at(self, points: tuple[Point, ...]) -> PointPrograms:
        """Return the programs that decide at points."""
        return self._programs.at(points)

    @property
    def routed_by(self) -> frozenset[Attribute]:
        """Return the headers and query parameters that routes look at."""
        if self._routing_fields is None:
            routes = self._world.routes.values()
            matches = [match for route in routes for rule in route.rules for match in rule.matches]
            calls = [match for route in routes for rule in route.grpc_rules for match in rule.matches]
            named = [value.name for match in matches for value in match.headers]
            named += [value.name for call in calls for value in call.headers]
            headers = {header(name) for name in named}
            queries = {query(value.name) for match in matches for value in match.query}
            self._routing_fields = frozenset(headers | queries)
        return self._routing_fields

    def rejected_at(self, points: Iterable[Point]) -> list[rejection.RejectedPolicy]:
        """Return the policies with errors that are about some of these points."""
        attached = (each.policy for point in points for each in self.engine.attached(point))
        return list(
            {policy.ref: policy for policy in attached if isinstance(policy, rejection.RejectedPolicy)}.values()
        )

    # The answer

    def judge(self, question: Question, decided: Sequence[ArrivalVerdict]) -> Decision:
        """Answer, unless a policy with errors, or an unread object, could change the answer."""
        sure = self._sure_denial(question, decided) if self._rejections else None
        for each in decided:
            if each.at.uncertain is not None:
                raise unlabelled(*each.at.uncertain)
        decision = self.answer(question, decided, sure)
        if self._unread_objects.objects:
            unconsidered = decision.unconsidered
            if standing(unconsidered, self.unread, allowed=decision.allowed) is Standing.UNDECIDED:
                raise _not_considered(decision)
        return decision

    def _sure_denial(self, question: Question, decided: Sequence[ArrivalVerdict]) -> ArrivalVerdict | None:
        """Return a denial that no policy with errors could change. Raises QuestionError if such a policy decides."""
        if policies := self._doubts_about_caller(question):
            raise _undecidable(policies)
        closed = [(each, _without_placeholders(self.rejected_at(each.at.points))) for each in decided]
        sure = next((each for each, policies in closed if not policies and not each.allowed), None)
        unsure = next((policies for _, policies in closed if policies), None)
        if unsure is not None and sure is None:
            raise _undecidable(unsure)
        return sure

    def _doubts_about_caller(self, question: Question) -> list[rejection.RejectedPolicy]:
        """Return the objects that leave the calling pod unclear: with errors, or written twice."""
        if not isinstance(question.source, ends.Pod):
            return []
        callers = callers_of(question, self._world, self._settings).workloads
        return [
            policy
            for policy in _without_placeholders(self.rejected_at([each.key for each in callers]))
            if not policy.is_policy
        ]

    def answer(
        self, question: Question, every: Sequence[ArrivalVerdict], sure: ArrivalVerdict | None = None
    ) -> Decision:
        """Answer with the sure denial, else with the first denial, else with the first arrival, which is allowed."""
        decided = every[0]
        if len(every) > 1:
            decided = sure or next((each for each in every if not each.verdict & 1), decided)
        unconsidered = self._unconsidered
        if self._unread_objects.objects:
            points = dict.fromkeys(point for each in every for point in each.at.points)
            callers = callers_of(question, self._world, self._settings)
            host = "" if isinstance(question.destination, ends.Route) else question.host  # it names a route
            unconsidered = self._unread_objects.about(
                points, callers, self._world, rejected=self._rejections, host=host
            )
        return Decision(question, decided, every, unconsidered, self._enforcers)


def _decide_widened(arrivals: Iterable[tuple[Arrival, PointPrograms]], widen: Widen | None) -> Iterator[ArrivalVerdict]:
    for arrival, at in arrivals:
        yield at.decide(arrival if widen is None else Arrival(arrival.entry, widen(arrival, at)))


def _asks_for_labels(decided: ArrivalVerdict) -> bool:
    """Return whether a rule that may still match looks at the caller's labels, which are unknown."""
    rules = (rule for layer in decided.at.layers for chain in layer.chains for rule in chain.rules(observed=False))
    facts = Facts(decided.arrival.request.values)
    return any(SOURCE_LABELS in mentions(residual(rule.when, facts)) for rule in rules)


class Prepared:
    """A resolved question, to be decided again and again.

    It follows every change of its authority. After a change it is evaluated again; otherwise the answer is cached. If
    an authorizer is asked, each call evaluates again, since the authorizer may answer differently.
    """

    __slots__ = ("_answered", "_decider", "_engine", "_resolved", "question")

    def __repr__(self) -> str:
        return brief(self, str(self.question))

    def __init__(self, decider: Decider, question: Question) -> None:
        self.question = question
        self._decider = decider
        self._engine = decider.engine
        self._answered: tuple[int, Decision | None] = (-1, None)  # the version and its answer
        self._resolved = (self._engine.version, self._arrivals())

    def _arrivals(self) -> list[tuple[Arrival, PointPrograms]]:
        return self._decider.arrivals(self.question, with_network=True)

    def decide(self) -> Decision:
        """Answer the question as of now. Raises QuestionError if it cannot be decided."""
        version, decision = self._answered
        return decision if version == self._engine.version and decision is not None else self._decide()

    def _decide(self) -> Decision:
        """Evaluate the programs, and cache the answer if only a change can change it."""
        now = self._engine.version
        version, arrivals = self._resolved
        if version != now or any(at.authorizers for _, at in arrivals):
            arrivals = self._arrivals()
            self._resolved = (now, arrivals)
        decision = self._decider.judge(self.question, [at.decide(arrival) for arrival, at in arrivals])
        if not any(at.asks for _, at in arrivals):
            self._answered = (now, decision)
        return decision


def _without_placeholders(policies: Iterable[rejection.RejectedPolicy]) -> list[rejection.RejectedPolicy]:
    """Return the policies with errors that prevent an answer: all but those that only have placeholders."""
    return [policy for policy in policies if not policy.is_unfilled]


def _undecidable(policies: Sequence[rejection.RejectedPolicy]) -> QuestionError:
    policy = policies[0]
    causes = [error for rejected in policies for error in rejected.errors]
    is_about = "its targets" if policy.is_policy else "anything that it may affect"
    message = f"{policy.ref} cannot be read, so that Eastgate cannot decide about {is_about}"
    return QuestionError(POLICY_REJECTED, message, f"fix it ({policy.span.location}), or ask another question", causes)


def _not_considered(decision: Decision) -> QuestionError:
    lines = "; ".join(list_unconsidered(decision.unconsidered))
    first = could_change(decision.unconsidered, allowed=decision.allowed)[0].unread
    message = f"unread objects could change the answer: {lines}"
    way_out = f"--unread warn answers without {first.kind.kind} {first.document.name}"
    return QuestionError(NOT_CONSIDERED, message, way_out)
