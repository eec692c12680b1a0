"""Secrets are put everywhere, and no output may contain one."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest

from eastgate.dialects.kuadrant.authorino.calls import HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    CelExpression,
    CelPredicate,
    Condition,
    Credentials,
    Denial,
    HttpCall,
    Identity,
    Introspection,
    Json,
    Jwt,
    Metadata,
    Pattern,
    PatternRules,
    Plain,
    PlainResponse,
    Property,
    Rego,
    Response,
    Scheme,
    SecretRef,
    Selected,
    Where,
)
from eastgate.reading.jwt import KnownKeys
from tests.dialects.kuadrant.authorino.schemes import (
    Backend,
    Reply,
    api_keys,
    backend,
    everybody,
    holding,
    pattern,
    request,
    scheme,
    secret,
)
from tests.reading.jwt.mint import ISSUER, keys, token

PLANTED = {
    "key": "pl4nted+key/of=alice",
    "header": "pl4nted-custom-header",
    "query": "pl4nted-query-key",
    "cookie": "pl4nted-cookie-key",
    "data": "pl4nted data of the Secret",
    "client": "pl4nted-client-secret",
    "shared": "pl4nted-shared-secret",
    "jwt": token(),
}
HEADERS = {
    "authorization": f"APIKEY {PLANTED['key']}",
    "x-key": PLANTED["header"],
    "cookie": f"theme=dark; session={PLANTED['cookie']}",
    "x-user": "alice",
}
PATH = f"/orders?a=1&k={PLANTED['query']}"


@pytest.fixture(scope="module")
def server() -> Iterator[Backend]:
    with backend() as running:
        running.replies["/echo"] = Reply({"all": [PLANTED["shared"]], "client": f"<{PLANTED['client']}>"})
        running.replies["/introspect"] = Reply({"active": True, "note": PLANTED["client"], "token": PLANTED["cookie"]})
        yield running


@pytest.fixture
def services() -> Services:
    return holding(
        secret("alice", PLANTED["key"], note=PLANTED["data"]),
        secret("client", None, {}, clientID="us", clientSecret=PLANTED["client"]),
        secret("shared", None, {}, password=PLANTED["shared"]),
        fetcher=HttpFetcher(),
        keys=KnownKeys({ISSUER: keys("p256")}),
    )


LEAKS = (
    "request.headers.authorization",
    "context.request.http.headers.authorization",
    "request.headers",
    "request",
    "@this",
    "request.path",
    "request.query",
    "request.headers.cookie",
    "request.headers.x-key",
    "request.headers.authorization.@base64:encode",
    'request.headers.authorization.@extract:{"pos":1}',
    "request.headers.x-key.@case:upper",
    "auth.identity",
    "auth.identity.data.note",
    "auth.identity.data.note.@base64:decode",
    "auth.identity.copied",
    "auth.metadata.echo",
)
CELS = (
    "request.headers.authorization",
    "request",
    "auth.identity",
    "request.path + request.headers.cookie",
    "int(request.headers.authorization) == 1",
    "timestamp(request.headers['x-key']) == timestamp(0)",
    "auth.metadata[request.headers.authorization]",
)


def responses() -> tuple[Response, ...]:
    found = [PlainResponse(Selected(leak)) for leak in LEAKS] + [PlainResponse(CelExpression(text)) for text in CELS]
    found += [PlainResponse(Selected(f"<{{{leak}}}>")) for leak in LEAKS]
    headers = [Response(f"h{at}", content, f"x-{at}") for at, content in enumerate(found)]
    everything = Json(tuple(Property(str(at), Selected(leak)) for at, leak in enumerate(LEAKS)))
    return (*headers, Response("m", everything, "m", in_header=False))


def denial() -> Denial:
    everything = "".join(f"{{{leak}}}" for leak in LEAKS)
    return Denial(418, Selected(everything), (Property("x", Selected(everything)),), Selected(everything))


def guarded(identity: Identity, *authorizations: Authorization, server: Backend) -> Scheme:
    echo = HttpCall(f"{server.url}/echo", shared_secret=SecretRef("shared", "password"))
    return scheme(
        *authorizations,
        identities=[identity],
        metadata=(Metadata("echo", echo),),
        responses=responses(),
        unauthorized=denial(),
        unauthenticated=denial(),
    )


COPIED = (Property("copied", Selected("request.headers.authorization")),)
IDENTITIES = {
    "key": api_keys(properties=COPIED),
    "header": api_keys(credentials=Credentials(Where.CUSTOM_HEADER, "X-Key")),
    "query": api_keys(credentials=Credentials(Where.QUERY, "k")),
    "cookie": api_keys(credentials=Credentials(Where.COOKIE, "session")),
    "jwt": Identity("jwt", Jwt(ISSUER), Credentials(Where.CUSTOM_HEADER, "x-key")),
    "introspection": Identity("oauth2", Introspection("", credentials="client"), Credentials(Where.COOKIE, "session")),
    "anonymous": everybody(properties=COPIED),
    "plain": Identity("plain", Plain("request.headers.authorization")),
}
RULES: dict[str, Condition] = {
    **{leak: Pattern(leak, pattern("a eq b").operator, "x") for leak in LEAKS},
    **{text: CelPredicate(text) for text in CELS},
}


def spellings(planted: str) -> set[str]:
    encoded = base64.b64encode(planted.encode()).decode()
    return {planted, planted.upper(), quote(planted), quote(planted, safe=""), quote_plus(planted), encoded}


def shown(scheme_: Scheme, facts: RequestFacts, services: Services) -> str:
    try:
        found = evaluate(scheme_, facts, services)
    except Exception:
        return traceback.format_exc()
    everything = [found, facts, found.document, found.headers, found.body, found.response_headers]
    everything += [found.dynamic_metadata, found.message, found.reason, *found.steps, services.secret("shop", "alice")]
    return "\n".join(f"{each!r} {each!s}" for each in everything)


# The scheme does not know this location as one of credentials, so the credential looks like any other value.
KNOWN = {
    "header": ("key", "cookie", "header"),
    "query": ("key", "cookie", "query"),
    "jwt": ("key", "cookie", "header", "jwt"),
}


@pytest.mark.parametrize("name", IDENTITIES)
@pytest.mark.parametrize("rule", [None, *RULES])
def test_nothing_planted_comes_out(name: str, rule: str | None, server: Backend, services: Services) -> None:
    identity = IDENTITIES[name]
    if isinstance(identity.method, Introspection):
        method = Introspection(f"{server.url}/introspect", credentials="client")
        identity = Identity("oauth2", method, identity.credentials)
    credential = PLANTED["jwt"] if name == "jwt" else PLANTED["header"]
    facts = request(PATH, {**HEADERS, "x-key": credential})
    rules = [] if rule is None else [Authorization("rule", PatternRules(RULES[rule]))]
    out = shown(guarded(identity, *rules, server=server), facts, services)
    used = ("client",) if name == "introspection" else ()
    for planted in (*KNOWN.get(name, ("key", "cookie")), *used, "data", "shared"):
        for spelled in spellings(PLANTED[planted]):
            assert spelled not in out, planted


def test_rego_cannot_say_them_either(server: Backend, services: Services) -> None:
    module = "allow { true }\nall := input\nsecret := input.request.headers.authorization"
    rego = Authorization("rego", Rego(module, all_values=True))
    stage_lines = Response("r", PlainResponse(Selected("auth.authorization.rego.secret")), "x-r")
    found = Scheme("shop", ("*",), (api_keys(),), authorizations=(rego,), responses=(stage_lines,))
    out = shown(found, request(PATH, HEADERS), services)
    assert "The Rego module allows it." in out
    for spelled in spellings(PLANTED["key"]):
        assert spelled not in out


def test_a_caller_cannot_blank_out_what_the_service_behind_is_told() -> None:
    stage_lines = Response("role", PlainResponse(Selected("auth.identity.role")), "x-role")
    role = Property("role", Selected("metadata.role"))
    found = scheme(identities=[api_keys(), everybody(priority=1, properties=(role,))], responses=(stage_lines,))
    facts = request(headers={"authorization": "APIKEY restricted"}, metadata={"role": "restricted"})
    assert evaluate(found, facts, Services()).response_headers == {"x-role": "restricted"}
