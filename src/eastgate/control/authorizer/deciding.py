"""Decides checks live: the whole engine, with the answers of authorizers as it gets to each of them.

The engine evaluates in microseconds, under a lock. Where it needs the answer of an authorizer, it stops; that one is
asked without the lock, however long it takes, and the engine begins again with the answer. So each authorizer is asked
at most once for a check, and only where the engine gets to it.
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
from eastgate.control.authorizer.locating import GatewaysByHost, Nowhere, destinations_of, port_of
from eastgate.ir import Answer as AuthorizerAnswer
from eastgate.ir import AssumedConsent, GatheredAnswers, Pending, WouldWait
from eastgate.ir.attributes import HANDED_PATH, MCP_METHOD, MCP_TOOL, Attribute, HeaderValues, header, header_values
from eastgate.ir.paths import is_canonical, is_normalized, respelled_path
from eastgate.ir.spiffe import account_of

_LOG = logging.getLogger(__name__)
_MOST_ASKED = 64  # authorizers that one check may need
_MOST_CALLERS = 4096  # that are remembered


class _BadPath(Exception):  # noqa: N818 - says what is known
    """Normalisation would change the path, and the proxy may hand it on as it is."""


class ExternalServices(Protocol):
    """Asks authorizers that run elsewhere. It never raises for anything that such a service does."""

    def ask(self, name: str, check: ProxyCheck) -> AuthorizerAnswer:
        """Ask the service of that name about a check."""
        ...


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """What the operator chose. `to` is where requests go that do not say it; `seconds` is the time for one decision.

    `plain_denials`: a denied MCP request gets a plain refusal, and no JSON-RPC error. `proxy` is what the proxies do.
    `own_proxies`: the proxies are ours. They remove our headers from requests of clients themselves, and a certificate
    with the SPIFFE ID of a service account has its DNS name too.
    """

    to: Destination | None = None
    seconds: float = 5.0
    plain_denials: bool = False
    proxy: ProxyOptions = ProxyOptions()
    own_proxies: bool = False


class LiveAuthorizer:
    """Decides checks by an authority. Whoever changes the authority holds `lock`."""

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
        """Return what decides now."""
        return self._authority

    def replace(self, authority: Authority, external: ExternalServices) -> None:
        """Decide by another authority from the next evaluation on."""
        with self.lock:
            self._authority = authority
            self._external = external

    @property
    def external(self) -> ExternalServices:
        """Return what asks the authorizers elsewhere."""
        return self._external

    def begin(self, check: ProxyCheck, where: Destination | None = None) -> ProxyAnswer | OpenCheck:
        """Decide a check as far as that needs nobody else; else return what is open, which `finish` decides.

        `where` says where the request goes, instead of the check. Never raises, and never allows by an error.
        """
        return OpenCheck(self, check, where).advance()

    def decide(self, check: ProxyCheck, where: Destination | None = None) -> ProxyAnswer:
        """Decide a check, and wait for the authorizers that it needs. Never raises, and never allows by an error."""
        answer = self.begin(check, where)
        return answer.finish() if isinstance(answer, OpenCheck) else answer

    def may_call(self, check: ProxyCheck, tool: str, where: Destination | None = None) -> bool:
        """Return whether the rules let the caller of a check call a tool there. Authorizers are taken to consent."""
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
        except (_BadPath, Nowhere, QuestionError):
            return False

    def questions(
        self, check: ProxyCheck, where: Destination | None, headers: HeaderValues | None = None
    ) -> list[LiveQuestion]:
        """Return the questions that a check asks, each about one destination. The caller holds the lock.

        `headers` are those of the check, if they were read before. Raises Nowhere if the destination is unknown, and
        _BadPath if the application may read the path differently.
        """
        if check.path is not None and not self.options.proxy.normalizes_paths and not is_normalized(check.path):
            raise _BadPath
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
    """A check that is being decided, with the answers that authorizers gave so far."""

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
        """Evaluate with the answers so far: return the answer, or itself where one more authorizer must be asked."""
        try:
            return self._evaluate()
        except Pending as pending:
            pending.__traceback__ = pending.__context__ = None  # else it would be kept by its own frames, with its body
            self._pending = pending
            return self
        except _BadPath:
            return self._answers.refuse(400, "path", "normalisation would change the path")
        except Nowhere as nowhere:
            return self._answers.refuse(403, "nowhere", str(nowhere))
        except QuestionError as error:
            return self._answers.refuse(403, "undecidable", error.diagnostic.message)
        except Exception as error:  # whatever it is, nothing passes by it
            _LOG.exception("a check could not be decided")
            return self._answers.refuse(500, "error", type(error).__name__)

    def finish_at_once(self) -> ProxyAnswer | None:
        """Ask the authorizers that are needed if each can answer at once; else `finish` has to go on."""
        try:
            return self.finish(may_wait=False)
        except WouldWait:
            return None

    def finish(self, *, may_wait: bool = True) -> ProxyAnswer:
        """Ask the authorizers that are needed, one after the other, and return the answer.

        Without `may_wait`, WouldWait is raised where one would have to be waited for, which was not asked yet.
        """
        for _ in range(_MOST_ASKED):
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
        except Exception:  # an authorizer that breaks does not consent
            _LOG.exception("the authorizer %s could not be asked", pending.name)
            return self._answers.broken(pending)

    def _evaluate(self) -> ProxyAnswer:
        authorizer = self._authorizer
        if self._reading is None:
            strict = authorizer.options.own_proxies
            self._reading = read_check(self._check, self._looks_at_messages, strict=strict)
            if self._reading.problem is not None:
                self._arrived = (None, [])  # nothing is known of the message
        with authorizer.lock:
            decisions = self._decide(self._arrive(), self._reading)
            return self._answers.of(decisions, self._reading)

    def _looks_at_messages(self) -> bool:
        with self._authorizer.lock:
            return any(not _MESSAGE.isdisjoint(arrivals.looked_at) for _, arrivals in self._arrive())

    def _arrive(self) -> list[tuple[LiveQuestion, LiveArrivals]]:
        """Find where the request arrives, once more only after a change. Whoever calls holds the lock."""
        authority = self._authorizer.authority
        authority_then, arrived = self._arrived
        if authority_then is not authority or not all(arrivals.is_current for _, arrivals in arrived):
            questions = self._authorizer.questions(self._check, self._where, self._answers.headers)
            if self._reading is not None and self._reading.problem is not None:  # it may be any, whatever the method
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


@lru_cache(_MOST_CALLERS)
def _caller(source: Source, trust_domain: str) -> Source:
    """Return a caller by the names that every dialect has for it: the identity of a service account is its account."""
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
