"""Deciding: a question is resolved to requests, each is decided where it arrives, and the answers become one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from eastgate import dialects
from eastgate.authority.crossings import (
    ConnectionVerdict,
    Crossing,
    LiveQuestion,
    derivations_of,
    leave_out_others,
    looked_at_by,
    repeatable_of,
)
from eastgate.authority.decisions import Decision, Stop
from eastgate.authority.enforcement import Enforcers
from eastgate.authority.questions import (
    LABELS_UNKNOWN,
    NOT_CONSIDERED,
    POLICY_REJECTED,
    EntryPoint,
    Question,
    QuestionError,
    Resolver,
    Values,
    callers_of,
    ends,
    message_values,
    request_values,
)
from eastgate.authority.questions.arrivals import without_http
from eastgate.authority.questions.codes import UnknownLabelsError
from eastgate.authority.questions.derived import derived_among
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
from eastgate.dialects.base import Condition
from eastgate.engine.compiled import Program, compile_layers
from eastgate.engine.engine import Engine
from eastgate.engine.verdicts import PASSED
from eastgate.ir import (
    UNOPPOSED,
    AllowAny,
    AskAll,
    Authorizer,
    Derivation,
    Doubtful,
    Known,
    Layer,
    LiveAnswers,
    Origin,
    Predicate,
    Request,
    authorizers_in,
    in_force,
    mentions,
)
from eastgate.ir.attributes import IDENTITY, PORT, SOURCE_LABELS, Attribute, header, query
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.settings import Settings

_Decided = tuple["Crossing", Request, tuple[Program | None, int]]
_Passed: TypeAlias = (
    "tuple[tuple[Program, ...], tuple[Layer, ...], Mapping[str, Authorizer], bool, tuple[Attribute, ...], "
    "tuple[Point, Policy] | None, frozenset[Attribute], tuple[Attribute, ...], tuple[Derivation, ...], "
    "tuple[Doubtful, ...]]"
)
_Widen: TypeAlias = Callable[["Crossing", Request], Request]
_MOST_POINTS = 65_536  # sequences of points, that are remembered


def _as_it_is(_crossing: Crossing, request: Request) -> Request:
    return request


def _asks_for_labels(crossing: Crossing, request: Request) -> bool:
    """Return whether a rule that may still match looks at the caller's labels, which are unknown."""
    rules = (rule for layer in crossing.layers for chain in layer.chains for rule in chain.rules(observed=False))
    facts = Facts(request.values)
    return any(SOURCE_LABELS in mentions(residual(rule.when, facts)) for rule in rules)


class Decider:
    """Answers questions about a world by an engine, and remembers what questions lead to until something changes."""

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
        """Begin to remember anew what questions lead to."""
        self._version = self.engine.version
        self._has_network_policies = self.engine.has_network_policies
        self._rejections = self.engine.count(rejection.RejectedPolicy)
        self._unconsidered = Unconsidered(rejected=self._rejections)
        self._resolver = Resolver(self._world, self._settings, self._cross, self.engine.is_guarded, self.engine)
        self._routing_fields: frozenset[Attribute] | None = None
        self._passed: dict[tuple[Point, ...], _Passed] = {}
        self._isolated: dict[NetworkEnd, tuple[Policy, ...]] = {}
        self._in_force: dict[NetworkEnd, tuple[Program, tuple[Origin, ...]]] = {}

    def _follow(self) -> None:
        """Forget what questions lead to where something has changed."""
        if self._version != self.engine.version:
            self._forget()

    @property
    def unread_objects(self) -> UnreadObjects:
        """Return the objects of kinds that are not read."""
        return self._unread_objects

    @unread_objects.setter
    def unread_objects(self, objects: UnreadObjects) -> None:
        self._unread_objects = objects
        self.engine.version += 1  # answers may be others now

    def decide(self, question: Question) -> Decision:
        """Answer a question. Raises QuestionError where it cannot be decided.

        It cannot where a policy with errors has a say in it, and where `unread` says so of what is not read.
        """
        try:
            decided = self._decide(question, with_network=True)
        except UnknownLabelsError as error:
            return self._deny_any_labels(question, error)
        return self.judge(question, decided)

    def _deny_any_labels(self, question: Question, error: UnknownLabelsError, widen: _Widen = _as_it_is) -> Decision:
        """Return the denial of a layer that denies whatever labels the caller has. Raises the error where none does."""
        decision = self.judge(question, self._decide_each(self.arrivals(question), widen))
        if not decision.allowed:
            return decision
        from eastgate.authority.questions.network import any_pod, connections_of  # many have no such policies

        shared, sender = request_values(question), any_pod(error.namespace, self._world)
        decided: list[_Decided] = []
        for crossing in self._resolver.entries(question, shared):
            for entry in connections_of(crossing.entry, lambda _: (sender,), question, self._world):
                connection = self._cross(entry)
                request = widen(connection, connection.make_request({**shared, **connection.values}, question))
                decided.append((connection, request, connection.decide(request)))
        denied = [each for each in decided if not each[2][1] & 1 and not _asks_for_labels(*each[:2])]
        if not denied:
            raise error
        return self.judge(question, denied)

    def enforced(self, question: Question, along: tuple[Point, ...] | None = None) -> Decision:
        """Return what proxies do that enforce the policies: what a policy with errors targets is closed.

        `along`: of the ways that it may take, those that pass these points are meant, if there are any. On one machine,
        the proxies of workloads enforce network policies too. Raises QuestionError where deciding labels are unknown.
        """
        is_at_workloads = isinstance(ends.destination_of(question.to, self._settings), ends.Pod | ends.Service)
        with_network = self._world.is_local and is_at_workloads
        decided = self._decide(question, with_network=with_network)
        for crossing, _, _ in decided if with_network else ():
            if crossing.uncertain is not None and isinstance(crossing.uncertain[0], NetworkEnd):
                raise _unlabelled(*crossing.uncertain)
        return self._answer(question, [each for each in decided if each[0].points == along] or decided)

    def decide_connection(self, question: Question, *, would: bool = False) -> ConnectionVerdict:
        """Return what network policies alone decide about a connection. Raises QuestionError where that is unknown.

        `would`: what they would decide with all audited ones in force.
        """
        allowed = ConnectionVerdict(UNOPPOSED)
        for number, (crossing, request) in enumerate(self.arrivals(question, with_network=True)):
            if crossing.uncertain is not None and isinstance(crossing.uncertain[0], NetworkEnd):
                raise _unlabelled(*crossing.uncertain)
            for point, program in zip(crossing.points, crossing.programs, strict=True):
                if not isinstance(point, NetworkEnd):
                    continue
                decider, closing = self._would(point, program) if would else (program, ())
                verdict = decider.finder.find(request)
                if not verdict & 1:
                    return ConnectionVerdict(decider.outcome(verdict), point, self._isolating(point), closing)
                if verdict != PASSED and number == 0:
                    allowed = ConnectionVerdict(decider.outcome(verdict), point)
        return allowed

    def _would(self, end: NetworkEnd, program: Program) -> tuple[Program, tuple[Origin, ...]]:
        """Return what would decide at an end with its audited policies in force, and those of them that would close."""
        if end not in self._in_force:
            audits = [layer.audit for layer in program.layers if layer.audit is not None]
            closing = tuple(origin for audit in audits for origin in audit.closing or audit.policies)
            self._in_force[end] = (compile_layers(in_force(program.layers)) if audits else program, closing)
        return self._in_force[end]

    def _isolating(self, end: NetworkEnd) -> tuple[Policy, ...]:
        """Return the policies that close an end to everything that no rule allows, those with most rules first."""
        if end in self._isolated:
            return self._isolated[end]
        rules: dict[Policy, int] = {}
        for policy in (attachment.policy for attachment in self.engine.attached(end)):
            chains = (chain for layer in self.engine.layers_of(policy, end.direction) for chain in layer.chains)
            for stage in (stage for chain in chains for stage in chain.stages if isinstance(stage, AllowAny)):
                rules[policy] = len(stage.rules)
        found = tuple(sorted(rules, key=lambda policy: (-rules[policy], str(policy.ref))))
        self._isolated[end] = found
        return found

    def arrive(self, live: LiveQuestion) -> LiveArrivals:
        """Find where a request that is waiting arrives. Raises QuestionError where it cannot be told."""
        self._follow()
        return LiveArrivals(self, live, self._version, tuple(self._live_arrivals(live)))

    def _live_arrivals(self, live: LiveQuestion) -> Iterator[tuple[Crossing, dict[Attribute, Known]]]:
        """Yield what is known of each request that a question stands for, with where it arrives."""
        question = live.question
        given_values = {**request_values(question), **live.values}
        shared = {name: value for name, value in given_values.items() if name not in live.unknown}
        live.leave_out_others(shared, self._routed_by)
        callers = self._resolver.callers(question)
        given = None if live.entries is None else tuple(map(self._cross, live.entries))
        for crossing in self._resolver.entries(question, shared) if given is None else given:
            for caller in callers:
                values = {**shared, **caller, **crossing.values}
                live.leave_out_others(values, crossing.repeatable)
                crossing.complete(values, question)
                if PORT not in values and PORT not in crossing.looked_at:
                    values[PORT] = None  # whatever it is, and what is known is decided faster
                yield crossing, values

    def answer(self, question: Question, decided: Sequence[_Decided]) -> Decision:
        """Answer with the first denial, or with the first arrival where all are allowed."""
        return self._answer(question, decided)

    @property
    def _routed_by(self) -> frozenset[Attribute]:
        """Return the headers and parameters of queries that routes look at."""
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
        """Return the policies that cannot be read and that are about some of these points."""
        attached = (each.policy for point in points for each in self.engine.attached(point))
        return list(
            {policy.ref: policy for policy in attached if isinstance(policy, rejection.RejectedPolicy)}.values()
        )

    def _decide(self, question: Question, *, with_network: bool = False) -> list[_Decided]:
        """Decide every request that a question stands for."""
        decided: list[_Decided] = []
        for crossing, request in self.arrivals(question, with_network=with_network):
            decided.append((crossing, request, crossing.decide(request)))
        return decided

    def decide_widened(self, question: Question, widen: _Widen) -> Decision:
        """Answer as `decide` does, about the requests that `widen` makes of those that a question stands for."""
        try:
            arrivals = self.arrivals(question, with_network=True)
        except UnknownLabelsError as error:
            return self._deny_any_labels(question, error, widen)
        return self.judge(question, self._decide_each(arrivals, widen))

    @staticmethod
    def _decide_each(arrivals: Iterable[tuple[Crossing, Request]], widen: _Widen) -> list[_Decided]:
        widened = ((at, widen(at, request)) for at, request in arrivals)
        return [(at, request, at.decide(request)) for at, request in widened]

    def ways(self, question: Question) -> Iterator[tuple[str, Predicate, bool]]:
        """Yield the ways that a question may take, with the condition of their requests and whether all are allowed."""
        decided = [each for each in self._decide(question, with_network=True) if each[0].entry.condition is not None]
        denied = {id(crossing.entry.condition) for crossing, _, verdict in decided if not verdict[1] & 1}
        entries = {id(crossing.entry.condition): crossing.entry for crossing, _, _ in decided}
        for condition, entry in entries.items():
            if (within := entry.within) is not None:
                yield entry.where, within, condition not in denied

    def arrivals(self, question: Question, *, with_network: bool = False) -> list[tuple[Crossing, Request]]:
        """Return the requests that a question stands for, each with where it arrives.

        `with_network`: on a way that passes both ends of the connection, where the network applies policies, too.
        """
        self._follow()
        shared = request_values(question)
        if self._routed_by:
            leave_out_others(shared, question, self._routed_by)
        callers = self._resolver.callers(question)
        arrivals: list[tuple[Crossing, Request]] = []
        for crossing in self._resolver.entries(question, shared, with_network=with_network):
            if with_network and self._has_network_policies:
                arrivals += self._connections(question, crossing, shared, callers)
                continue
            for caller in callers:
                values = {**shared, **caller, **crossing.values}
                if crossing.is_plain:
                    arrivals.append((crossing, Request(values, question.external_auth, within=crossing.within)))
                else:
                    arrivals += ((crossing, request) for request in crossing.make_requests(values, question))
        return arrivals

    def _connections(
        self, question: Question, crossing: Crossing, shared: Values, callers: Iterable[Values]
    ) -> Iterator[tuple[Crossing, Request]]:
        """Yield the request of every connection by which callers may come to a crossing, with both of its ends."""
        from eastgate.authority.questions.network import (  # many have no such policies
            Receiver,
            Sender,
            connections_of,
            name_ports,
            selectors_about,
            senders_of,
        )

        for caller in callers:

            def senders(receiver: Receiver, caller: Values = caller) -> tuple[Sender, ...]:
                telling = partial(selectors_about, self.engine, self._world, receiver)
                return senders_of(question, caller, self._world, self._settings, telling)

            for entry in connections_of(crossing.entry, senders, question, self._world):
                connection = self._cross(entry)
                for ports in name_ports(entry, connection.layers, question, self._world):
                    values = {**shared, **caller, **ports, **connection.values}
                    yield from ((connection, request) for request in connection.make_requests(values, question))

    def _cross(self, entry: EntryPoint) -> Crossing:
        """Find what decides where a question leads."""
        found = self._passed.get(entry.points)
        if found is None:
            if len(self._passed) >= _MOST_POINTS:
                self._passed.clear()
            found = self._passed[entry.points] = self._pass(entry.points)
        programs, layers, authorizers, asks, repeatable, uncertain, looked_at, derived, derivations, doubtful = found
        return Crossing(
            entry.where,
            entry.points,
            programs,
            layers,
            entry.values,
            authorizers,
            asks,
            repeatable,
            uncertain,
            ((entry.where, True),),
            ((entry.where, False),),
            entry.hides_http,
            looked_at,
            derived,
            derivations,
            doubtful,
            not (entry.hides_http or authorizers or repeatable or derived or derivations),
            entry,
            entry.within if any(attribute.needs_http for attribute in looked_at) else None,
        )

    def _pass(self, points: tuple[Point, ...]) -> _Passed:
        """Find what decides at points, whatever is known of a request there."""
        programs = tuple(self.engine.program(point) for point in points)
        layers = tuple(layer for program in programs for layer in program.layers)
        looked_at = looked_at_by(layers)
        uncertain = ((point, self.engine.uncertain(point)) for point in points)
        derivations = derivations_of(layers)
        return (
            programs,
            layers,
            authorizers_in(layers),
            any(isinstance(stage, AskAll) for layer in layers for chain in layer.chains for stage in chain.stages),
            repeatable_of(looked_at),
            next(((point, policies[0]) for point, policies in uncertain if policies), None) or self._unlabelled(points),
            looked_at,
            derived_among(looked_at),
            derivations,
            tuple(each for each in derivations if isinstance(each, Doubtful)),
        )

    def _unlabelled(self, points: tuple[Point, ...]) -> tuple[Point, Policy] | None:
        if not any(isinstance(point, NetworkEnd) for point in points):
            return None
        from eastgate.authority.questions.network import unlabelled_peer  # many have no such policies

        return unlabelled_peer(self.engine, self._world, points)

    def judge(self, question: Question, decided: Sequence[_Decided]) -> Decision:
        """Answer, unless a policy with errors, or what is not read, could change the answer."""
        sure = self._sure_denial(question, decided) if self._rejections else None
        for crossing, _, _ in decided:
            if crossing.uncertain is not None:
                raise _unlabelled(*crossing.uncertain)
        decision = self._answer(question, decided, sure)
        if self._unread_objects.objects:
            unconsidered = decision.unconsidered
            if standing(unconsidered, self.unread, allowed=decision.allowed) is Standing.UNDECIDED:
                raise _not_considered(decision)
        return decision

    def _sure_denial(self, question: Question, decided: Sequence[_Decided]) -> _Decided | None:
        """Return a denial that no policy with errors could change; raise QuestionError where one decides instead."""
        if policies := self._unsure_of_caller(question):
            raise _undecidable(policies)
        closed = [(each, self.rejected_at(each[0].points)) for each in decided]
        sure = next((each for each, policies in closed if not policies and not each[2][1] & 1), None)
        unsure = next((policies for _, policies in closed if policies), None)
        if unsure is not None and sure is None:
            raise _undecidable(unsure)
        return sure

    def _unsure_of_caller(self, question: Question) -> list[rejection.RejectedPolicy]:
        """Return what leaves open who the calling pod is: an object of its namespace with errors, or written twice."""
        if not isinstance(ends.source_of(question.source, self._settings), ends.Pod):
            return []
        callers = callers_of(question, self._world, self._settings).workloads
        return [policy for policy in self.rejected_at([caller.key for caller in callers]) if not policy.is_policy]

    def _answer(self, question: Question, decided: Sequence[_Decided], sure: _Decided | None = None) -> Decision:
        """Answer with the first denial, or with the first arrival where all are allowed."""
        if len(decided) == 1:
            crossing, request, verdict = decided[0]
            ways = crossing.allowed_way if verdict[1] & 1 else crossing.denied_way
        else:
            denied = next((each for each in decided if not each[2][1] & 1), decided[0])
            crossing, request, verdict = sure or denied
            allowed: dict[str, bool] = {}
            for each, _, (_, number) in decided:
                allowed[each.where] = number & 1 == 1 and allowed.get(each.where, True)
            ways = tuple(allowed.items())
        unconsidered = self._unconsidered
        if self._unread_objects.objects:
            points = dict.fromkeys(point for each, _, _ in decided for point in each.entry.points)
            callers = callers_of(question, self._world, self._settings)
            unconsidered = self._unread_objects.about(points, callers, self._world, rejected=self._rejections)
        return Decision(
            question, crossing, request, verdict, ways, unconsidered, self._conditions, self._enforcers, decided
        )

    def _conditions(self, stop: Stop) -> tuple[tuple[str, Condition], ...]:
        """Return what the policies on the way would show in their status."""
        attached = (each.policy for point in stop.points for each in self.engine.attached(point))
        beside = self.engine.policies
        return tuple(
            (str(policy.ref), condition)
            for policy in attached
            for condition in dialects.conditions(policy, beside, self._settings, self._world)
        )


class LiveArrivals:
    """Where a request that is waiting arrives, and what is known of it there.

    It can be decided again and again, with more answers and with other messages, until something changes.
    """

    __slots__ = ("_arrivals", "_decider", "_live", "_version")

    def __init__(
        self,
        decider: Decider,
        live: LiveQuestion,
        version: int,
        arrivals: tuple[tuple[Crossing, dict[Attribute, Known]], ...],
    ) -> None:
        self._decider = decider
        self._live = live
        self._version = version
        self._arrivals = arrivals

    @property
    def is_current(self) -> bool:
        """Tell whether nothing has changed since."""
        return self._version == self._decider.engine.version

    @property
    def looked_at(self) -> frozenset[Attribute]:
        """Return the attributes that can change what is enforced there."""
        return frozenset[Attribute]().union(*(crossing.looked_at for crossing, _ in self._arrivals))

    def decide(self, answers: LiveAnswers, message: Question | None = None) -> Decision:
        """Return what is enforced, with the answers that authorizers gave. Raises Pending where one is missing.

        `message` is the question with one of several messages. Raises QuestionError where it cannot be told which
        policies apply.
        """
        question, more = (self._live.question, {}) if message is None else (message, message_values(message))
        decided: list[_Decided] = []
        for crossing, known in self._arrivals:
            if crossing.uncertain is not None:
                raise _unlabelled(*crossing.uncertain)
            values = {**known, **more} if more else known
            request = without_http(values) if crossing.hides_http else Request(values, question.external_auth)
            asks = crossing.asks and not crossing.hides_http
            joined = answers.joined_to(request, crossing.authorizers) if asks else request
            is_asked = IDENTITY in values or IDENTITY in crossing.looked_at  # else what is known is decided faster
            verdict = crossing.decide(joined if is_asked else joined.with_value(IDENTITY, None))
            decided.append((crossing, answers.settled(joined) if asks else request, verdict))
            if not verdict[1] & 1:
                break  # nobody else is asked
        return self._decider.answer(question, decided)


class Prepared:
    """A question that was resolved, to be decided again and again.

    It follows every change of its authority. What it is decided by is evaluated again after a change, and each time
    where an authorizer is asked, whose answer may be another one by then; else the answer is remembered.
    """

    __slots__ = ("_answered", "_decider", "_engine", "_resolved", "question")

    def __repr__(self) -> str:
        return brief(self, str(self.question))

    def __init__(self, decider: Decider, question: Question) -> None:
        self.question = question
        self._decider = decider
        self._engine = decider.engine
        self._answered: tuple[int, Decision | None] = (-1, None)  # the version that this holds for, and the answer
        self._resolved = (self._engine.version, self._arrivals())

    def _arrivals(self) -> list[tuple[Crossing, Request]]:
        return self._decider.arrivals(self.question, with_network=True)

    def decide(self) -> Decision:
        """Answer the question as things are now. Raises QuestionError where it cannot be decided."""
        version, decision = self._answered
        return decision if version == self._engine.version and decision is not None else self._decide()

    def _decide(self) -> Decision:
        """Evaluate what decides, and remember the answer where only a change can make it another one."""
        now = self._engine.version
        version, arrivals = self._resolved
        if version != now or any(crossing.authorizers for crossing, _ in arrivals):
            arrivals = self._arrivals()
            self._resolved = (now, arrivals)
        decided = [(crossing, request, crossing.decide(request)) for crossing, request in arrivals]
        decision = self._decider.judge(self.question, decided)
        if not any(crossing.asks for crossing, _ in arrivals):
            self._answered = (now, decision)
        return decision


def _undecidable(policies: Sequence[rejection.RejectedPolicy]) -> QuestionError:
    policy = policies[0]
    causes = [error for rejected in policies for error in rejected.errors]
    is_about = "what it targets" if policy.is_policy else "what it may be about"
    message = f"{policy.ref} cannot be read, so that nothing can be said of {is_about}"
    return QuestionError(
        POLICY_REJECTED, message, f"mend it ({policy.span.location}), or ask about something else", causes
    )


def _unlabelled(point: Point, policy: Policy) -> QuestionError:
    message = f"{policy.ref} selects by a label that a cluster adds to pods, and {point} is derived from a template"
    return QuestionError(LABELS_UNKNOWN, message, f"give real Pods, or mend it ({policy.span.location})")


def _not_considered(decision: Decision) -> QuestionError:
    lines = "; ".join(list_unconsidered(decision.unconsidered))
    first = could_change(decision.unconsidered, allowed=decision.allowed)[0].unread
    message = f"what is not read could change the answer: {lines}"
    way_out = f"--unread warn answers without {first.kind.kind} {first.document.name}"
    return QuestionError(NOT_CONSIDERED, message, way_out)
