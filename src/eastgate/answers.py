"""Auth schemes, answered for a question: what their evaluator needs to know, and whom it may ask.

A scheme is evaluated when the engine asks for its answer, and only then. What the question leaves out is unknown to it
as well, and then it does not allow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from eastgate.authconfig.facts import RequestFacts, Services
from eastgate.authconfig.model import Credentials, Introspection, Jwt, Scheme, SubjectAccess, TokenReview, Where
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.policy import Answer, AskAll, Layer, Refusal, Request, Ruling
from eastgate.policy.attributes import ADDRESS, AUTHORITY, IDENTITY, METHOD, TARGET, UNKNOWN, Attribute, Unknown
from eastgate.policy.fields import header_values
from eastgate.questions import Question
from eastgate.settings import Settings
from eastgate.world import Secret, Selector, World

if TYPE_CHECKING:
    from eastgate.tokens import KeySource

__all__ = ["looks_at_paths", "with_answers", "with_token"]


def with_answers(
    request: Request,
    question: Question,
    layers: Sequence[Layer],
    world: World,
    settings: Settings,
    keys: KeySource | None,
) -> Request:
    """The request, with an answer from each scheme that the layers may ask; they are worked out when asked for."""
    schemes = {
        ask.authorizer: ask.scheme
        for layer in layers
        for chain in layer.chains
        for stage in chain.stages
        if isinstance(stage, AskAll)
        for ask in stage.asks
        if isinstance(ask.scheme, Scheme)
    }
    if not schemes:
        return request
    services = _services(world, settings, keys)
    facts = _facts(request, question)

    def answer(name: str) -> Ruling:
        from eastgate.authconfig.evaluate import evaluate  # few questions need it

        scheme = schemes[name]
        if request.refused_path and looks_at_paths(scheme):
            return Ruling(False, Refusal.BAD_REQUEST, "its path has an encoded slash or backslash")
        asked = with_token(facts, scheme, question.token)
        judged = evaluate(scheme, asked, services)
        if judged.is_undecided:  # a question never gives the URL scheme: both must be allowed
            completed = [evaluate(scheme, replace(asked, scheme=one), services) for one in ("http", "https")]
            judged = next((one for one in completed if not one.allowed), completed[0])
        return Ruling(judged.allowed, judged.status, judged.reason, judged)

    return Request(request.values, _Answers(request.answers, frozenset(schemes), answer), request.assumed)


class _Answers(Mapping[str, Answer]):
    """The answers that were given, and those of schemes, each worked out once."""

    def __init__(self, given: Mapping[str, Answer], schemes: frozenset[str], answer: Callable[[str], Ruling]) -> None:
        self._known = dict(given)
        self._schemes = schemes
        self._answer = answer

    def __getitem__(self, name: str) -> Answer:
        if name not in self._known and name in self._schemes:
            self._known[name] = self._answer(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({*self._known, *self._schemes})

    def __len__(self) -> int:
        return len({*self._known, *self._schemes})


# What is known of the request


def _facts(request: Request, question: Question) -> RequestFacts:
    headers = question.headers
    return RequestFacts(
        time=time.time(),
        host=_text(request, AUTHORITY),
        method=_text(request, METHOD),
        path=_text(request, TARGET),
        protocol=question.http_protocol or "HTTP/1.1",
        headers={name: ",".join(every) for name, every in header_values(headers).items()}
        if headers is not None
        else UNKNOWN,
        principal=_peer(request, IDENTITY),
        address=_peer(request, ADDRESS),
        certificate=question.certificate or (None if request.get(IDENTITY) is None else UNKNOWN),
        size=None,
        claims=question.claims,
    )


def _text(request: Request, attribute: Attribute) -> str | Unknown:
    found = request.get(attribute)
    return UNKNOWN if found is None or found is UNKNOWN else str(found)


def _peer(request: Request, attribute: Attribute) -> str | Unknown | None:
    """What is known of the peer: also that there is nothing."""
    found = request.get(attribute)
    return found if found is None or found is UNKNOWN else str(found)


def looks_at_paths(part: object) -> bool:
    """Whether any expression in a scheme may look at the path. To ask the API server about no resource is to do so."""
    if isinstance(part, str):
        return "path" in part
    if isinstance(part, Mapping):
        return any(looks_at_paths(one) for one in part.values())
    if isinstance(part, tuple):
        return any(looks_at_paths(one) for one in part)
    if isinstance(part, SubjectAccess) and part.resource is None:
        return True
    if not is_dataclass(part):
        return False
    return any(looks_at_paths(getattr(part, one.name)) for one in fields(part) if one.name not in ("span", "name"))


def with_token(facts: RequestFacts, scheme: Scheme, token: str | None) -> RequestFacts:
    """The request with a token wherever the scheme looks for one."""
    places = {one.credentials for one in scheme.identities if isinstance(one.method, Jwt | TokenReview | Introspection)}
    for place in places if token is not None else ():
        facts = _carrying(facts, place, token or "")
    return facts


def _carrying(facts: RequestFacts, place: Credentials, token: str) -> RequestFacts:
    """The request with a token in one place. Of headers or a path that are not known, no more is known by it."""
    if (facts.path if place.where is Where.QUERY else facts.headers) is UNKNOWN:
        return replace(facts, presented={**facts.presented, place: token})
    headers = {} if facts.headers is UNKNOWN else dict(facts.headers)
    match place.where:
        case Where.AUTHORIZATION_HEADER:
            return replace(facts, headers={**headers, "authorization": f"{place.key} {token}"})
        case Where.CUSTOM_HEADER:
            return replace(facts, headers={**headers, place.key.lower(): token})
        case Where.COOKIE:
            cookies = "; ".join(part for part in (headers.get("cookie"), f"{place.key}={token}") if part)
            return replace(facts, headers={**headers, "cookie": cookies})
        case Where.QUERY:
            path = str(facts.path)
            return replace(facts, path=f"{path}{'&' if '?' in path else '?'}{quote(place.key)}={quote(token)}")


# Whom to ask


def _services(world: World, settings: Settings, keys: KeySource | None) -> Services:
    def secrets(namespace: str, selector: Selector) -> Iterator[Secret]:
        return (one for one in world.secrets.values() if one.namespace == namespace and selector.matches(one.labels))

    def secret(namespace: str, name: str) -> Secret | None:
        return world.secrets.get(f"{namespace}/{name}")

    compat = settings.section(KuadrantSettings).authorino_compat
    return Services(secrets=secrets, secret=secret, keys=keys, key_sets=keys, authorino_compat=compat)
