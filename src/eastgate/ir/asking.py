"""Answers of authorizers. Each authorizer is asked at most once for a request, and only if a rule selects the request.

Offline, an authorizer answers while the request is evaluated (`ask_authorizers`). Live, an answer may need a network.
The evaluation then stops, the caller of this module asks, and the evaluation starts again (`GatheredAnswers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from eastgate.ir.authorizers import Answer, Authorizer, AuthorizerName, ExternalAuthorizer, RawRequest, Reply, Ruling
from eastgate.ir.requests import Request
from eastgate.ir.rules import Layer


def authorizers_in(layers: Iterable[Layer]) -> dict[str, Authorizer]:
    """Return the authorizers that layers may ask and that Eastgate runs itself, by name."""
    return {ask.authorizer: ask.evaluator for layer in layers for ask in layer.asks if ask.evaluator is not None}


def ask_authorizers(request: Request, raw: RawRequest, authorizers: Mapping[str, Authorizer]) -> Request:
    """Return the request with the answers of authorizers. Each answer is computed when an engine first reads it."""
    if not authorizers:
        return request
    return Request(request.values, _Answers(request, raw, authorizers), request.assumed, request.within)


class _Answers(Mapping[str, Answer]):
    """The answers that the request already has, and those of authorizers. Each authorizer is asked once."""

    def __init__(self, request: Request, raw: RawRequest, authorizers: Mapping[str, Authorizer]) -> None:
        self._known = dict(request.answers)
        self._request = request
        self._raw = raw
        self._authorizers = authorizers

    def __getitem__(self, name: str) -> Answer:
        if name not in self._known and name in self._authorizers:
            self._known[name] = self._ask(self._authorizers[name])
        return self._known[name]

    def _ask(self, authorizer: Authorizer) -> Ruling:
        return authorizer.refuse_path(self._request) or authorizer.answer(self._request, self._raw)

    def __iter__(self) -> Iterator[str]:
        return iter({*self._known, *self._authorizers})

    def __len__(self) -> int:
        return len({*self._known, *self._authorizers})


# Live evaluation


class Pending(Exception):  # noqa: N818 - not an error: an authorizer must be asked first
    """An evaluation needs an answer that is missing.

    It is the answer of `authorizer`, or, if that is None, of the external service `name`.
    """

    def __init__(self, name: str, request: Request, authorizer: Authorizer | None) -> None:
        super().__init__(name)
        self.name = name
        self.request = request
        self.authorizer = authorizer


class LiveAnswers(Protocol):
    """A source of the answers of authorizers for live evaluations."""

    def attach_to(self, request: Request, authorizers: Mapping[str, Authorizer]) -> Request:
        """Return the request with these answers."""
        ...

    def with_used_answers(self, request: Request) -> Request:
        """Return an evaluated request with only the answers that the evaluation used."""
        ...


class GatheredAnswers:
    """The answers that a request got so far. An evaluation raises Pending for the first answer that is missing.

    An external service is asked once for all evaluations. An authorizer of Eastgate is asked once for each request that
    the check covers, and again if a reload has replaced it.
    """

    def __init__(self) -> None:
        self._replies: dict[str | ExternalAuthorizer, Answer] = {}
        self._rulings: list[tuple[Authorizer, Request, Ruling]] = []

    def add(self, pending: Pending, answer: Answer) -> None:
        """Add the answer that an evaluation waits for."""
        if pending.authorizer is None:
            self._replies[_asked(pending.name)] = answer
        elif isinstance(answer, Ruling):
            self._rulings.append((pending.authorizer, pending.request, answer))

    def attach_to(self, request: Request, authorizers: Mapping[str, Authorizer]) -> Request:
        """Return the request with the answers so far."""
        return request.with_answers(_Gathered(self, request, authorizers))

    def with_used_answers(self, request: Request) -> Request:
        """Return an evaluated request with only the answers that the evaluation used."""
        gathered = request.answers
        known = dict(gathered.used) if isinstance(gathered, _Gathered) else dict(gathered)
        return request.with_answers(known)

    def reply(self, name: str, request: Request) -> Answer:
        """Return the answer of an external service. Raises Pending."""
        try:
            return self._replies[_asked(name)]
        except KeyError:
            raise Pending(name, request, None) from None

    def ruling(self, name: str, request: Request, authorizer: Authorizer) -> Ruling:
        """Return the ruling of an authorizer on a request. Raises Pending."""
        for asked, about, ruling in self._rulings:
            if asked is authorizer and (about.values is request.values or about.values == request.values):
                return ruling
        raise Pending(name, request, authorizer)


def _asked(name: str) -> str | ExternalAuthorizer:
    """Return the identity of an external authorizer. One Service that is asked in two ways has two identities."""
    return name.external if isinstance(name, AuthorizerName) else name


class _Gathered(Mapping[str, Answer]):
    """The gathered answers for one request of a check."""

    def __init__(self, gathered: GatheredAnswers, request: Request, authorizers: Mapping[str, Authorizer]) -> None:
        self.used: dict[str, Answer] = {}
        self._gathered = gathered
        self._request = request
        self._authorizers = authorizers

    def __getitem__(self, name: str) -> Answer:
        answer = self.used[name] = self._find(name)
        return answer

    def _find(self, name: str) -> Answer:
        authorizer = self._authorizers.get(name)
        if authorizer is None:
            return self._gathered.reply(name, self._request)
        refusal = authorizer.refuse_path(self._request)
        return refusal or self._gathered.ruling(name, self._request, authorizer)

    def __iter__(self) -> Iterator[str]:
        return iter(self.used)

    def __len__(self) -> int:
        return len(self.used)


class AssumedConsent:
    """A source of answers that always allow, so that only the rules decide."""

    def attach_to(self, request: Request, authorizers: Mapping[str, Authorizer]) -> Request:  # noqa: ARG002
        """Return the request as if every authorizer allowed it."""
        return Request(request.values, _ALL_ALLOW, request.assumed, request.within)

    def with_used_answers(self, request: Request) -> Request:
        """Return the request unchanged."""
        return request


class _AllAllow(Mapping[str, Answer]):
    def __getitem__(self, name: str) -> Answer:
        return Reply.ALLOW

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


_ALL_ALLOW = _AllAllow()
