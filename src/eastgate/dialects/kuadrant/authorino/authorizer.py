"""An auth scheme as an authorizer of the engine.

A scheme is evaluated only when the engine asks for its answer. Values that a request leaves out are unknown to the
scheme too, and then it does not allow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.dialects.base import Scene
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.keyring import Keyring
from eastgate.dialects.kuadrant.authorino.model import (
    ApiKeys,
    Authorization,
    Credentials,
    Identity,
    Introspection,
    Jwt,
    Metadata,
    Response,
    Scheme,
    TokenReview,
    Where,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement, StepKind
from eastgate.dialects.kuadrant.settings import KuadrantSettings
from eastgate.ir import Origin, RawRequest, Refusal, Request, Ruling, RulingStep, StepVerdict, TakenOff, WouldWait
from eastgate.ir.attributes import (
    ADDRESS,
    AUTHORITY,
    IDENTITY,
    METHOD,
    TARGET,
    UNKNOWN,
    Attribute,
    Headers,
    Unknown,
    header_values,
    steers_proxy,
)
from eastgate.settings import DataPlane

if TYPE_CHECKING:
    from eastgate.reading.jwt import KeySource

_TOKENS = (Jwt, TokenReview, Introspection)
_BEARING = (*_TOKENS, ApiKeys)  # identities whose credential is a secret in the request


@dataclass(frozen=True, slots=True)
class SchemeAuthorizer:
    """Evaluates one auth scheme, with its services."""

    scheme: Scheme
    services: Services = field(default_factory=Services, compare=False, repr=False)

    def refuse_path(self, request: Request) -> Ruling | None:
        """Return the refusal of a path that is ambiguous or not canonical, if a part of the scheme reads the path."""
        if request.refused_path:
            why = "its path has an encoded slash, backslash or NUL"
        elif request.respelled_path and not self.services.any_spelling:
            why = "its path is not in its canonical spelling"
        else:
            return None
        reader = next(_path_readers(self.scheme), None)
        if reader is None:
            return None
        kind, name, span = reader
        looks = f"`{kind}`" if kind is StepKind.WHEN else f"{kind} `{name}`"
        step = RulingStep(kind, name, StepVerdict.REFUSED, f"{why}, and {looks} reads the path", span=span)
        judged = Judgement(False, Refusal.BAD_REQUEST, steps=(step,))
        return Ruling(False, judged.status, judged.reason, judged.steps, origin=self.origin_of(judged))

    def answer(self, request: Request, raw: RawRequest) -> Ruling:
        """Evaluate the scheme for a request."""
        if raw.may_wait:
            return self._evaluate(request, raw, self.services)
        from eastgate.reading.jwt import NotAtHand

        services = self.services.at_once
        if services is None or not self.scheme.is_quick:
            raise WouldWait
        try:
            return self._evaluate(request, raw, services)
        except NotAtHand:
            raise WouldWait from None

    def _evaluate(self, request: Request, raw: RawRequest, services: Services) -> Ruling:
        from eastgate.dialects.kuadrant.authorino.evaluate import (
            evaluate,  # few questions need it, and its imports are slow
        )

        facts = with_token(_facts(request, raw), self.scheme, "" if raw.no_token else raw.token)
        judged = evaluate(self.scheme, facts, services, explain=raw.explain)
        if judged.is_undecided and facts.scheme is UNKNOWN:  # both must be allowed
            schemes = (replace(facts, scheme=url) for url in ("http", "https"))
            completed = [evaluate(self.scheme, known, services, explain=raw.explain) for known in schemes]
            judged = next((judgement for judgement in completed if not judgement.allowed), completed[0])
        if judged.follow_up is not None:
            judged.follow_up()
        taken_off = _credential_removals(self.scheme, judged, facts)
        return Ruling(
            judged.allowed,
            judged.status,
            judged.reason,
            judged.steps if raw.explain else (),
            judged.document,
            tuple(_responses(judged, facts)) if judged.allowed else judged.headers,
            (*_withheld_headers(self.scheme, judged), *taken_off.removed),
            taken_off.parameters,
            taken_off.cookies,
            judged.body,
            judged.dynamic_metadata,
            self.origin_of(judged),
        )

    def origin_of(self, _judged: Judgement) -> Origin | None:
        """Return the part of the policy that decided; None if the whole scheme is from one policy."""
        return None


def _path_readers(scheme: Scheme) -> Iterator[tuple[StepKind, str, Span | None]]:
    """Yield the parts of a scheme that may read the path, each with its name."""
    if scheme.when is not None and scheme.when.looks_at_path:
        yield StepKind.WHEN, "when", scheme.span
    parts: dict[StepKind, tuple[Identity | Metadata | Authorization | Response, ...]] = {
        StepKind.IDENTITY: scheme.identities,
        StepKind.METADATA: scheme.metadata,
        StepKind.AUTHORIZATION: scheme.authorizations,
        StepKind.RESPONSE: scheme.responses,
    }
    for kind, named in parts.items():
        yield from ((kind, part.name, part.span) for part in named if part.looks_at_path)
    denials = {"unauthenticated": scheme.unauthenticated, "unauthorized": scheme.unauthorized}
    yield from ((StepKind.RESPONSE, name, scheme.span) for name, denial in denials.items() if denial.looks_at_path)


def _withheld_headers(scheme: Scheme, judged: Judgement) -> tuple[str, ...]:
    """Return the headers of the scheme that it did not create.

    Values from the client must not reach the application.
    """
    made = {name.lower() for name in judged.response_headers} | judged.passed_on
    if not judged.allowed or len(made) == len(scheme.responses):
        return ()
    names = dict.fromkeys(response.key for response in scheme.responses if response.in_header)
    return tuple(name for name in names if name.lower() not in made and not steers_proxy(name))


def _responses(judged: Judgement, facts: RequestFacts) -> Iterator[tuple[str, str]]:
    """Yield the headers for the application, including client headers that the scheme passes on."""
    yield from judged.response_headers.items()
    if facts.headers is not UNKNOWN:
        yield from ((name, facts.headers[name]) for name in sorted(judged.passed_on))


def _credential_removals(scheme: Scheme, judged: Judgement, facts: RequestFacts) -> TakenOff:
    """Return the changes that remove the credential of the identity, because the application could reuse it.

    A certificate is no secret. A `plain` identity may select a value that is no secret.
    """
    from eastgate.dialects.kuadrant.authorino.credentials import take_off

    for identity in scheme.identities if judged.allowed else ():
        if identity.name == judged.recognized_by and isinstance(identity.method, _BEARING):
            return take_off(identity.credentials, facts)
    return TakenOff()


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
    """Return an attribute of the peer; None if it is known to be absent."""
    value = request.get(attribute)
    return value if value is None or value is UNKNOWN else str(value)


def with_token(facts: RequestFacts, scheme: Scheme, token: str | None) -> RequestFacts:
    """Return the request with a token at every location where the scheme reads one. An empty token is no token."""
    if token is None:
        return facts
    for location in {identity.credentials for identity in scheme.identities if isinstance(identity.method, _TOKENS)}:
        facts = _with_credential(facts, location, token)
    return facts


def _with_credential(facts: RequestFacts, location: Credentials, token: str) -> RequestFacts:
    """Return the request with a token at a location.

    All other unknown headers, or the rest of an unknown path, stay unknown.
    """
    if (facts.path if location.where is Where.QUERY else facts.headers) is UNKNOWN:
        return replace(facts, presented={**facts.presented, location: token})
    if not token:
        return facts
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


def services_of(scene: Scene) -> Services:
    """Return the services of schemes in a scene. In Authorino, expressions see a path with any spelling."""
    compat = scene.settings.section(KuadrantSettings).authorino_compat
    lenient = compat and scene.settings.data_plane is DataPlane.NATIVE
    return services_in(scene.world, scene.keys, authorino_compat=compat, any_spelling=lenient, live=scene.live)


def services_in(
    world: World,
    keys: KeySource | None,
    *,
    authorino_compat: bool,
    any_spelling: bool = False,
    live: bool = False,
) -> Services:
    """Return the services of schemes in a cluster: its Secrets, the keys of token issuers, and servers if it is live.

    A policy that is read again gets new services, so that no answer outlives the policy that asked for it.
    """
    from eastgate.reading.jwt import VerifiedTokens, key_sets_of, keys_at_hand  # only if there is an AuthPolicy

    keyring = Keyring(world)
    services = Services(
        secrets=keyring.secrets,
        secret=keyring.secret,
        api_key_owner=keyring.owner,
        keys=keys,
        key_sets=key_sets_of(keys) if keys is not None else None,
        tokens=VerifiedTokens(),
        authorino_compat=authorino_compat,
        any_spelling=any_spelling,
    )
    if not live:
        return services
    from eastgate.dialects.kuadrant.authorino.callbacks import CallbackThreads
    from eastgate.dialects.kuadrant.authorino.calls import AnswerCache, HttpFetcher
    from eastgate.dialects.kuadrant.authorino.spicedb import SpiceDbClient

    fetcher = HttpFetcher()
    services = at_once = replace(services, background=CallbackThreads(fetcher))
    if keys is not None:
        at_once = replace(services, keys=keys_at_hand(keys), key_sets=keys_at_hand(key_sets_of(keys)))
    return replace(services, fetcher=fetcher, cache=AnswerCache(), permissions=SpiceDbClient(), at_once=at_once)
