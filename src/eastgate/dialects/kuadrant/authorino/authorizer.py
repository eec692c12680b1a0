"""An auth scheme as an authorizer of the engine.

A scheme is evaluated when the engine asks for its answer, and only then. What a request leaves out is unknown to the
scheme as well, and then it does not allow.
"""

from __future__ import annotations

import time
from dataclasses import field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from eastgate.cluster import World
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.keyring import Keyring
from eastgate.dialects.kuadrant.authorino.model import (
    Credentials,
    Introspection,
    Jwt,
    Scheme,
    TokenReview,
    Where,
)
from eastgate.ir import Origin, RawRequest, Request, Ruling, WouldWait
from eastgate.ir.attributes import ADDRESS, AUTHORITY, IDENTITY, METHOD, TARGET, UNKNOWN, Attribute, Unknown
from eastgate.ir.fields import Headers, header_values, steers_proxy
from eastgate.records import dataclass

if TYPE_CHECKING:
    from eastgate.dialects.kuadrant.authorino.judgement import Judgement
    from eastgate.languages.jwt import KeySource

__all__ = ["SchemeAuthorizer", "services_in", "with_token"]


@dataclass(frozen=True, slots=True)
class SchemeAuthorizer:
    """Evaluates one auth scheme, with the services that it may ask."""

    scheme: Scheme
    services: Services = field(default_factory=Services, compare=False, repr=False)

    @property
    def looks_at_path(self) -> bool:
        """Return whether any expression of the scheme may look at the path."""
        return self.scheme.looks_at_path

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Evaluate the scheme for a request."""
        if raw.may_wait:
            return self._evaluate(request, raw, self.services)
        from eastgate.languages.jwt import NotAtHand

        services = self.services.at_once
        if services is None or not self.scheme.is_quick:
            raise WouldWait
        try:
            return self._evaluate(request, raw, services)
        except NotAtHand:
            raise WouldWait from None

    def _evaluate(self, request: Request, raw: RawRequest, services: Services) -> Ruling:
        from eastgate.dialects.kuadrant.authorino.evaluate import (
            evaluate,  # few questions need it, and it brings much along
        )

        facts = with_token(_facts(request, raw), self.scheme, raw.token)
        judged = evaluate(self.scheme, facts, services, explain=raw.explain)
        if judged.is_undecided and facts.scheme is UNKNOWN:  # both must be allowed
            schemes = (replace(facts, scheme=url) for url in ("http", "https"))
            completed = [evaluate(self.scheme, known, services, explain=raw.explain) for known in schemes]
            judged = next((judgement for judgement in completed if not judgement.allowed), completed[0])
        if judged.follow_up is not None:
            judged.follow_up()
        return Ruling(
            judged.allowed,
            judged.status,
            judged.reason,
            judged.steps if raw.explain else (),
            judged.document,
            tuple(judged.response_headers.items()) if judged.allowed else judged.headers,
            _withheld(self.scheme, judged),
            judged.body,
            judged.dynamic_metadata,
            self.origin_of(judged),
        )

    def origin_of(self, _judged: Judgement) -> Origin | None:
        """Return the part of a policy that decided; None where the whole scheme is of one."""
        return None


def _withheld(scheme: Scheme, judged: Judgement) -> tuple[str, ...]:
    """Return the headers that the scheme vouches for and has not made: what a client sends there is not to arrive."""
    made = {name.lower() for name in judged.response_headers}
    if not judged.allowed or len(made) == len(scheme.responses):
        return ()
    names = dict.fromkeys(response.key for response in scheme.responses if response.in_header)
    return tuple(name for name in names if name.lower() not in made and not steers_proxy(name))


# The facts of a request


def _facts(request: Request, raw: RawRequest) -> RequestFacts:
    headers = raw.headers
    return RequestFacts(
        time=time.time(),
        host=_text(request, AUTHORITY),
        method=_text(request, METHOD),
        path=_text(request, TARGET),
        scheme=raw.scheme or UNKNOWN,
        protocol=raw.http_protocol or "HTTP/1.1",
        headers=_joined(headers) if headers is not None else UNKNOWN,
        principal=_peer(request, IDENTITY),
        address=_peer(request, ADDRESS),
        port=UNKNOWN if raw.port is None else raw.port,
        certificate=raw.certificate or (None if request.get(IDENTITY) is None else UNKNOWN),
        extensions=raw.extensions,
        size=raw.size,
        body=raw.body,
        claims=raw.claims,
    )


def _joined(headers: Headers) -> dict[str, str]:
    return {name: every[0] if len(every) == 1 else ",".join(every) for name, every in header_values(headers).items()}


def _text(request: Request, attribute: Attribute) -> str | Unknown:
    value = request.get(attribute)
    return UNKNOWN if value is None or value is UNKNOWN else str(value)


def _peer(request: Request, attribute: Attribute) -> str | Unknown | None:
    """Return an attribute of the peer; None where it is known to have none."""
    value = request.get(attribute)
    return value if value is None or value is UNKNOWN else str(value)


def with_token(facts: RequestFacts, scheme: Scheme, token: str | None) -> RequestFacts:
    """Return the request with a token at every location where the scheme looks for one."""
    if token is None:
        return facts
    methods = (Jwt, TokenReview, Introspection)
    for location in {identity.credentials for identity in scheme.identities if isinstance(identity.method, methods)}:
        facts = _with_credential(facts, location, token)
    return facts


def _with_credential(facts: RequestFacts, location: Credentials, token: str) -> RequestFacts:
    """Return the request with a token at a location. Unknown headers, or an unknown path, stay unknown otherwise."""
    if (facts.path if location.where is Where.QUERY else facts.headers) is UNKNOWN:
        return replace(facts, presented={**facts.presented, location: token})
    headers = {} if facts.headers is UNKNOWN else dict(facts.headers)
    match location.where:
        case Where.AUTHORIZATION_HEADER:
            return replace(facts, headers={**headers, "authorization": f"{location.key} {token}"})
        case Where.CUSTOM_HEADER:
            return replace(facts, headers={**headers, location.key.lower(): token})
        case Where.COOKIE:
            cookies = "; ".join(part for part in (headers.get("cookie"), f"{location.key}={token}") if part)
            return replace(facts, headers={**headers, "cookie": cookies})
        case Where.QUERY:
            path = str(facts.path)
            return replace(facts, path=f"{path}{'&' if '?' in path else '?'}{quote(location.key)}={quote(token)}")


# Services


def services_in(world: World, keys: KeySource | None, *, authorino_compat: bool, live: bool = False) -> Services:
    """Return the services of schemes in a world: its Secrets, the keys of token issuers, and where it is live, servers.

    A policy that is read anew gets new services, so that no answer outlives the policy that it was given for.
    """
    from eastgate.languages.jwt import VerifiedTokens, key_sets_of, keys_at_hand  # only where there is an AuthPolicy

    keyring = Keyring(world)
    services = Services(
        secrets=keyring.secrets,
        secret=keyring.secret,
        api_key_owner=keyring.owner,
        keys=keys,
        key_sets=key_sets_of(keys) if keys is not None else None,
        tokens=VerifiedTokens(),
        authorino_compat=authorino_compat,
    )
    if not live:
        return services
    from eastgate.dialects.kuadrant.authorino.caching import AnswerCache
    from eastgate.dialects.kuadrant.authorino.callbacks import CallbackThreads
    from eastgate.dialects.kuadrant.authorino.fetching import HttpFetcher
    from eastgate.dialects.kuadrant.authorino.spicedb import SpiceDbClient

    fetcher = HttpFetcher()
    services = at_once = replace(services, background=CallbackThreads(fetcher))
    if keys is not None:
        at_once = replace(services, keys=keys_at_hand(keys), key_sets=keys_at_hand(key_sets_of(keys)))
    return replace(services, fetcher=fetcher, cache=AnswerCache(), permissions=SpiceDbClient(), at_once=at_once)
