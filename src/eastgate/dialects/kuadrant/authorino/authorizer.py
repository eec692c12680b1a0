"""An auth scheme as an authorizer of the engine.

A scheme is evaluated when the engine asks for its answer, and only then. What a request leaves out is unknown to the
scheme as well, and then it does not allow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import field, fields, is_dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from eastgate.cluster import Secret, Selector, World
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import (
    Credentials,
    Introspection,
    Jwt,
    Scheme,
    SubjectAccess,
    TokenReview,
    Where,
)
from eastgate.ir import RawRequest, Request, Ruling
from eastgate.ir.attributes import ADDRESS, AUTHORITY, IDENTITY, METHOD, TARGET, UNKNOWN, Attribute, Unknown
from eastgate.ir.fields import header_values
from eastgate.records import dataclass

if TYPE_CHECKING:
    from eastgate.languages.jwt import KeySource

__all__ = ["SchemeAuthorizer", "looks_at_paths", "services_in", "with_token"]


@dataclass(frozen=True, slots=True)
class SchemeAuthorizer:
    """Evaluates one auth scheme, with the services that it may ask."""

    scheme: Scheme
    services: Services = field(default_factory=Services, compare=False, repr=False)

    @property
    def looks_at_path(self) -> bool:
        """Whether any expression of the scheme may look at the path."""
        return looks_at_paths(self.scheme)

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Evaluate the scheme for a request."""
        from eastgate.dialects.kuadrant.authorino.evaluate import (
            evaluate,  # few questions need it, and it brings much along
        )

        facts = with_token(_facts(request, raw), self.scheme, raw.token)
        judged = evaluate(self.scheme, facts, self.services)
        if judged.is_undecided:  # a question never gives the URL scheme: both must be allowed
            completed = [evaluate(self.scheme, replace(facts, scheme=url), self.services) for url in ("http", "https")]
            judged = next((judgement for judgement in completed if not judgement.allowed), completed[0])
        return Ruling(judged.allowed, judged.status, judged.reason, judged.steps, judged.document)


# What is known of the request


def _facts(request: Request, raw: RawRequest) -> RequestFacts:
    headers = raw.headers
    return RequestFacts(
        time=time.time(),
        host=_text(request, AUTHORITY),
        method=_text(request, METHOD),
        path=_text(request, TARGET),
        protocol=raw.http_protocol or "HTTP/1.1",
        headers={name: ",".join(every) for name, every in header_values(headers).items()}
        if headers is not None
        else UNKNOWN,
        principal=_peer(request, IDENTITY),
        address=_peer(request, ADDRESS),
        certificate=raw.certificate or (None if request.get(IDENTITY) is None else UNKNOWN),
        size=None,
        claims=raw.claims,
    )


def _text(request: Request, attribute: Attribute) -> str | Unknown:
    found = request.get(attribute)
    return UNKNOWN if found is None or found is UNKNOWN else str(found)


def _peer(request: Request, attribute: Attribute) -> str | Unknown | None:
    """What is known of the peer: also that there is nothing."""
    found = request.get(attribute)
    return found if found is None or found is UNKNOWN else str(found)


def looks_at_paths(part: object) -> bool:
    """Tell whether any expression in a part of a scheme may look at the path.

    Asking the API server about no resource is to do so. A part that nobody thought of here is searched like any other.
    """
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


def services_in(world: World, keys: KeySource | None, *, authorino_compat: bool) -> Services:
    """Return the services of schemes in a world: its Secrets, and the keys of token issuers."""

    def secrets(namespace: str, selector: Selector) -> Iterator[Secret]:
        declared = (secret for secret in world.secrets.values() if secret.namespace == namespace)
        return (secret for secret in declared if selector.matches(secret.labels))

    def secret(namespace: str, name: str) -> Secret | None:
        return world.secrets.get(f"{namespace}/{name}")

    return Services(secrets=secrets, secret=secret, keys=keys, key_sets=keys, authorino_compat=authorino_compat)
