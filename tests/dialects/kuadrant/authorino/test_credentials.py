"""A credential is read from exactly the location in the scheme."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.model import Credentials, Where
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.schemes import api_keys, holding, request, rule, scheme, secret

KEY = "k3y-of-alice"
SERVICES = holding(secret("alice", KEY))


@pytest.mark.parametrize(
    ("where", "name", "path", "headers", "accepted"),
    [
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"authorization": f"APIKEY {KEY}"}, True),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"authorization": f"apikey {KEY}"}, False),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"authorization": f"APIKEY  {KEY}"}, False),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"authorization": KEY}, False),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"authorization": f"APIKEY {KEY},APIKEY {KEY}"}, False),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"authorization": "APIKEY "}, False),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {}, False),
        (Where.AUTHORIZATION_HEADER, "APIKEY", "/", {"x-api-key": KEY}, False),
        (Where.CUSTOM_HEADER, "X-API-Key", "/", {"x-api-key": KEY}, True),
        (Where.CUSTOM_HEADER, "X-API-Key", "/", {"x-api-key": KEY[:-1]}, False),
        (Where.CUSTOM_HEADER, "X-API-Key", "/", {"x-api-key": ""}, False),
        (Where.CUSTOM_HEADER, "X-API-Key", "/", {"authorization": f"APIKEY {KEY}"}, False),
        (Where.QUERY, "api_key", f"/x?api_key={KEY}", {}, True),
        (Where.QUERY, "api_key", f"/x?a=1&api_key={KEY}&b=2", {}, True),
        (Where.QUERY, "api_key", f"/x?api_key={KEY}#end", {}, True),
        (Where.QUERY, "api_key", f"/x?not_api_key={KEY}", {}, False),
        (Where.QUERY, "api_key", f"/x?api_key={KEY}&api_key={KEY}", {}, True),
        (Where.QUERY, "api_key", f"/x?api_key={KEY}&api_key=other", {}, True),
        (Where.QUERY, "api_key", f"/x?api_key=&api_key={KEY}", {}, False),
        (Where.QUERY, "api_key", f"/x?api_key&api_key={KEY}", {}, False),
        (Where.QUERY, "api_key", f"/x?api%5Fkey={KEY}", {}, True),
        (Where.QUERY, "api_key", f"/x?api_key={KEY.replace('-', '%2d')}", {}, True),
        (Where.QUERY, "api_key", f"/x?api_key={KEY};b=1", {}, False),
        (Where.QUERY, "api_key", f"/x?api_key=%zz&api_key={KEY}", {}, True),
        (Where.QUERY, "api_key", f"/x%zz?api_key={KEY}", {}, False),
        (Where.COOKIE, "session", "/", {"cookie": f"session=; session={KEY}"}, False),
        (Where.QUERY, "api_key", f"/x?api_key=other&api_key={KEY}", {}, False),
        (Where.QUERY, "api_key", f"/x#?api_key={KEY}", {}, False),
        (Where.QUERY, "api_key", f"/api_key={KEY}", {}, False),
        (Where.QUERY, "api.key", f"/x?apiXkey={KEY}", {}, False),
        (Where.QUERY, "api_key", "/x?api_key=", {}, False),
        (Where.QUERY, "api_key", "/x", {}, False),
        (Where.COOKIE, "session", "/", {"cookie": f"session={KEY}"}, True),
        (Where.COOKIE, "session", "/", {"cookie": f"a=b; session={KEY}; c=d"}, True),
        (Where.COOKIE, "session", "/", {"cookie": f"mysession={KEY}"}, False),
        (Where.COOKIE, "session", "/", {"cookie": f"session=x; session={KEY}"}, False),
        (Where.COOKIE, "session", "/", {"cookie": "session="}, False),
        (Where.COOKIE, "session", "/", {"set-cookie": f"session={KEY}"}, False),
    ],
)
def test_only_the_named_place_counts(
    where: Where, name: str, path: str, headers: dict[str, str], accepted: bool
) -> None:
    found = evaluate(
        scheme(identities=[api_keys(credentials=Credentials(where, name))]), request(path, headers), SERVICES
    )
    assert found.allowed is accepted
    assert found.status == (200 if accepted else 401)
    assert not (accepted and KEY in repr(found))


def test_a_token_in_headers_that_nobody_knows_tells_nothing_about_the_other_headers() -> None:
    place = Credentials(Where.AUTHORIZATION_HEADER, "APIKEY")
    keyed = scheme(rule("context.request.http.headers.x-role neq guest"), identities=[api_keys(credentials=place)])
    known = request(headers={"authorization": f"APIKEY {KEY}"})
    unknown = replace(request(headers=UNKNOWN), presented={place: KEY})
    assert evaluate(keyed, known, SERVICES).allowed
    assert not evaluate(keyed, unknown, SERVICES).allowed
