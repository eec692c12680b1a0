"""Decides checks with the whole engine, and asks external authorizers during the evaluation.

The engine evaluates in microseconds, under a lock. If it needs the answer of an authorizer, it stops. The authorizer is
asked without the lock, and then the engine begins again with the answer. So each authorizer is asked at most once for a
check, and only if the evaluation reaches it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.decisions import Decision
from eastgate.authority.live import LiveArrivals, LiveQuestion
from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.records import dataclass
from eastgate.cluster import dns_label_problem, dns_subdomain_problem
from eastgate.cluster.ends import Destination, Gateway, ServiceAccount, Source, SpiffeId
from eastgate.control.authorizer.answering import Answers
from eastgate.control.authorizer.checks import (
    WITHOUT_BODY,
    MessageReading,
    ProxyAnswer,
    ProxyCheck,
    ProxyOptions,
    read_check,
)
from eastgate.control.authorizer.locating import GatewaysByHost, UnknownDestinationError, destinations_of, port_of
from eastgate.ir import Answer as AuthorizerAnswer
from eastgate.ir import AssumedConsent, GatheredAnswers, Pending, WouldWait
from eastgate.ir.attributes import HANDED_PATH, MCP_METHOD, MCP_TOOL, Attribute, HeaderValues, header, header_values
from eastgate.ir.paths import is_canonical, is_normalized, respelled_path
from eastgate.ir.spiffe import account_of

_LOG = logging.getLogger(__name__)
_MAX_AUTHORIZER_CALLS = 64  # for one check
_MAX_CACHED_CALLERS = 4096


class _AmbiguousPathError(Exception):
    """Normalisation would change the path, and the proxy may forward it unchanged."""


class ExternalServices(Protocol):
    """The external authorizers. A call never raises an error for anything that such a service does."""

    def ask(self, name: str, check: ProxyCheck) -> AuthorizerAnswer:
        """Ask the authorizer of this name about a check."""
        ...


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of the operator.

    `to` is the destination of requests that name none. `seconds` is the time limit of one decision. `plain_denials`: a
    denied MCP request gets a plain refusal, without a JSON-RPC error. `proxy` describes the proxies. `own_proxies`: the
    proxies are those of Eastgate. They remove Eastgate's headers from requests of clients themselves, and a certificate
    with the SPIFFE ID of a service account also has its DNS name.
    """

    to: Destination | None = None
    seconds: float = 5.0
    plain_denials: bool = False
    proxy: ProxyOptions = ProxyOptions()
    own_proxies: bool = False


class LiveAuthorizer:
    """Decides checks by an authority. Hold `lock` to change the authority."""

    def __init__(
        self,
        authority: Authority,
        lock: AbstractContextManager[object],
        external: ExternalServices,
        options: CheckOptions | None = None,
    ) -> None:
        self.lock = lock
        self.options = options or CheckOptions()
        self._authority = authority
        self._external = external
        self._gateways = GatewaysByHost()

    @property
    def authority(self) -> Authority:
        """Return the authority that decides now."""
        return self._authority

    def replace(self, authority: Authority, external: ExternalServices) -> None:
        """Decide by another authority from the next evaluation on."""
        with self.lock:
            self._authority = authority
            self._external = external

    @property
    def external(self) -> ExternalServices:
        """Return the external authorizers."""
        return self._external

    def begin(self, check: ProxyCheck, where: Destination | None = None) -> ProxyAnswer | OpenCheck:
        """Return the answer to a check, or an open check if an authorizer must be asked: call its `finish`.

        `where` is the destination, in place of that in the check. Never raises an error, and never allows because of
        one.
        """
        return OpenCheck(self, check, where).advance()

    def decide(self, check: ProxyCheck, where: Destination | None = None) -> ProxyAnswer:
        """Decide a check, and wait for the authorizers that it needs. Never raises an error, and never allows because
        of one.
        """
        answer = self.begin(check, where)
        return answer.finish() if isinstance(answer, OpenCheck) else answer

    def may_call(self, check: ProxyCheck, tool: str, where: Destination | None = None) -> bool:
        """Return whether the rules allow the caller of a check to call a tool there, if every authorizer allows it."""
        try:
            with self.lock:
                questions = self.questions(check, where)
                call = {MCP_METHOD: "tools/call", MCP_TOOL: tool}
                return all(
                    LiveArrivals(
                        self._authority,
                        replace(live, values={**live.values, **call}, unknown=live.unknown - _MESSAGE),
                    )
                    .decide(AssumedConsent())
                    .allowed
                    for live in questions
                )
        except (_AmbiguousPathError, UnknownDestinationError, QuestionError):
            return False

    def questions(
        self, check: ProxyCheck, where: Destination | None, headers: HeaderValues | None = None
    ) -> list[LiveQuestion]:
        """Return the questions of a check, one for each destination. The caller holds the lock.

        `headers` are those of the check, if they were read before. Raises UnknownDestinationError if the destination is
        unknown, and _AmbiguousPathError if the application may read the path differently.
        """
        if check.path is not None and not self.options.proxy.normalizes_paths and not is_normalized(check.path):
            raise _AmbiguousPathError
        authority, world = self._authority, self._authority.world
        settings = authority.settings
        source = _caller(check.source, settings.trust_domain) if self.options.own_proxies else check.source
        unknown = _headers(check.unclear_headers) if check.unclear_headers else _NOTHING
        headers = header_values(check.headers) if headers is None else headers
        spelling = {HANDED_PATH: check.path} if check.path is not None and not is_canonical(check.path) else {}
        if check.method in WITHOUT_BODY and check.may_hide_message:
            unknown |= _MESSAGE
        if where is not None:
            asked = [(where, check.port)]
        else:
            to, engine = self.options.to, programs_of(authority)
            destinations = destinations_of(check, to, world, self._gateways_for, engine, settings.namespace)
            asked = [(to, port_of(check, to, world)) for to in destinations]
        questions = (_question(check, headers, source, to, port) for to, port in asked)
        return [LiveQuestion(question, spelling, unknown, check.shown_headers) for question in questions]

    def _gateways_for(self, host: str | None) -> tuple[Gateway, ...]:
        authority = self._authority
        return self._gateways.find(host, authority.world, (id(authority), programs_of(authority).version))


class OpenCheck:
    """A check that is being decided, with the answers of authorizers so far."""

    def __init__(self, authorizer: LiveAuthorizer, check: ProxyCheck, where: Destination | None) -> None:
        self._authorizer = authorizer
        self._check = check
        self._where = where
        self._gathered = GatheredAnswers()
        self._pending: Pending | None = None
        self._reading: MessageReading | None = None
        self._arrived: tuple[Authority | None, list[tuple[LiveQuestion, LiveArrivals]]] = (None, [])
        self._began = time.monotonic()
        options = authorizer.options
        self._answers = Answers(check, plain=options.plain_denials, keeps_own=options.own_proxies)

    def advance(self) -> ProxyAnswer | OpenCheck:
        """Evaluate with the answers so far. Return the answer, or the check if another authorizer must be asked."""
        try:
            return self._evaluate()
        except Pending as pending:
            pending.__traceback__ = pending.__context__ = None  # its frames would keep it and its body alive
            self._pending = pending
            return self
        except _AmbiguousPathError:
            return self._answers.refuse(400, "path", "normalisation would change the path")
        except UnknownDestinationError as error:
            return self._answers.refuse(403, "nowhere", str(error))
        except QuestionError as error:
            return self._answers.refuse(403, "undecidable", error.diagnostic.message)
        except Exception as error:  # no error may allow a request
            _LOG.exception("a check could not be decided")
            return self._answers.refuse(500, "error", type(error).__name__)

    def finish_at_once(self) -> ProxyAnswer | None:
        """Return the answer if each authorizer that is needed can answer without waiting; else None: call `finish`."""
        try:
            return self.finish(may_wait=False)
        except WouldWait:
            return None

    def finish(self, *, may_wait: bool = True) -> ProxyAnswer:
        """Ask the authorizers that are needed, one after the other, and return the answer.

        Without `may_wait`, raises WouldWait instead of waiting for an authorizer.
        """
        for _ in range(_MAX_AUTHORIZER_CALLS):
            if self._pending is None:
                break
            if time.monotonic() - self._began > self._authorizer.options.seconds:
                return self._answers.refuse(503, "timeout", "an authorizer took too long")
            self._gathered.add(self._pending, self._ask(self._pending, may_wait=may_wait))
            self._pending = None
            answer = self.advance()
            if not isinstance(answer, OpenCheck):
                return answer
        return self._answers.refuse(503, "error", "it needs too many authorizers")

    def _ask(self, pending: Pending, *, may_wait: bool) -> AuthorizerAnswer:
        try:
            if pending.authorizer is not None:
                return pending.authorizer.answer(pending.request, self._answers.raw(may_wait=may_wait))
            if not may_wait:
                raise WouldWait
            return self._authorizer.external.ask(pending.name, self._check)
        except WouldWait:
            raise
        except Exception:  # an authorizer that fails does not allow
            _LOG.exception("the authorizer %s could not be asked", pending.name)
            return self._answers.after_failure(pending)

    def _evaluate(self) -> ProxyAnswer:
        authorizer = self._authorizer
        if self._reading is None:
            strict = authorizer.options.own_proxies
            self._reading = read_check(self._check, self._looks_at_messages, strict=strict)
            if self._reading.problem is not None:
                self._arrived = (None, [])  # the message is unknown
        with authorizer.lock:
            decisions = self._decide(self._arrive(), self._reading)
            return self._answers.of(decisions, self._reading)

    def _looks_at_messages(self) -> bool:
        with self._authorizer.lock:
            return any(not _MESSAGE.isdisjoint(arrivals.looked_at) for _, arrivals in self._arrive())

    def _arrive(self) -> list[tuple[LiveQuestion, LiveArrivals]]:
        """Return the questions, each with its evaluation, made again after a change. The caller holds the lock."""
        authority = self._authorizer.authority
        authority_then, arrived = self._arrived
        if authority_then is not authority or not all(arrivals.is_current for _, arrivals in arrived):
            questions = self._authorizer.questions(self._check, self._where, self._answers.headers)
            if self._reading is not None and self._reading.problem is not None:  # any message, with any method
                questions = [replace(live, unknown=live.unknown | _MESSAGE) for live in questions]
            arrived = [(live, LiveArrivals(authority, live)) for live in questions]
            self._arrived = (authority, arrived)
        return arrived

    def _decide(self, arrived: Sequence[tuple[LiveQuestion, LiveArrivals]], reading: MessageReading) -> list[Decision]:
        """Decide every message at every destination, up to the first denial. Raises Pending."""
        decisions: list[Decision] = []
        for message in reading.messages:
            for live, arrivals in arrived:
                asked = message.about(live.question) if message is not None else None
                decision = arrivals.decide(self._gathered, asked)
                decisions.append(decision)
                if not decision.allowed:
                    return decisions
        return decisions


_MESSAGE = frozenset({MCP_METHOD, MCP_TOOL})
_NOTHING = frozenset[Attribute]()


@lru_cache(256)
def _headers(names: frozenset[str]) -> frozenset[Attribute]:
    return frozenset(map(header, names))


@lru_cache(_MAX_CACHED_CALLERS)
def _caller(source: Source, trust_domain: str) -> Source:
    """Return a caller in the form that every dialect knows: the SPIFFE ID of a service account becomes the account."""
    domain, namespace, name = (account_of(source.value) if isinstance(source, SpiffeId) else None) or ("", "", "")
    if domain != trust_domain or dns_label_problem(namespace) or dns_subdomain_problem(name):
        return source
    return ServiceAccount(namespace, name)


def _question(check: ProxyCheck, headers: HeaderValues, source: Source, to: Destination, port: int | None) -> Question:
    return Question(
        source,
        to,
        port,
        method=check.method,
        path=respelled_path(check.path) if check.path is not None else None,
        host=check.host,
        sni=check.sni,
        headers=headers,
        source_ip=check.address,
        http_protocol=check.http_protocol,
        certificate=check.certificate,
    )
