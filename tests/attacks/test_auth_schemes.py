"""Tokens and API keys of auth schemes: a gateway denies every request with an invalid credential."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pytest

from tests.attacks.application import Arrived
from tests.attacks.auth_policies import api_keys, auth_policy, passing_on, request_authentication, secret
from tests.attacks.placements import Attacked
from tests.attacks.tokens import AUDIENCE, ISSUER, WEB, TokenTry, claims, token_tries
from tests.differential.asking import HTTP_1_1, HTTP_2, Http
from tests.differential.world import Manifest
from tests.reading.jwt.mint import token

Headers = tuple[tuple[str, str], ...]

# Tokens

_TRIES = list(token_tries())
_BY_TOKEN: Manifest = {
    "identity": [{"name": "tokens", "oidc": {"endpoint": ISSUER, "audiences": [AUDIENCE]}}],
    "authorization": [
        {"name": "web", "json": {"rules": [{"selector": "auth.identity.sub", "operator": "eq", "value": WEB}]}}
    ],
}


def _expected(each: TokenTry) -> tuple[int, ...]:
    """Return the right statuses: 200 for a valid token, 403 for the token of another caller, 401 for all others.

    A credential is only the text after `Bearer ` in a single Authorization header.
    """
    if each.headers is not None:
        return (401,)
    if each.believed:
        return (200,) if each.status == (200,) else (403,)
    return (0, 401, 431) if each.name == "huge" else (401,)  # HTTP/2 closes without a status


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
def test_no_token_is_believed_that_should_not_be(attacked_gateway: Attacked, version: str) -> None:
    attacked_gateway.enforce([auth_policy("Gateway:gw", {"*": _BY_TOKEN})])
    tries = [Http("GET", each.path, "a", each.sent, version) for each in _TRIES]
    wrong = {}
    signatures = tuple(each.token.rpartition(".")[2] for each in _TRIES if each.believed)
    for each, verdict in zip(_TRIES, attacked_gateway.verdicts(tries), strict=True):
        if verdict.status not in _expected(each) or (verdict.arrived is not None) is not (verdict.status == 200):
            wrong[each.name] = verdict
        if verdict.arrived is not None and any(signature in _text(verdict.arrived) for signature in signatures):
            wrong[each.name] = verdict
    assert not wrong


def _text(arrived: Arrived) -> str:
    """Return all text in which the application could find a credential."""
    return f"{arrived.target} {arrived.headers}"


# RequestAuthentications of Istio


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
@pytest.mark.parametrize("forward", [False, True], ids=["taken off", "forwarded"])
def test_a_token_that_istio_would_take_off_does_not_arrive(
    attacked_gateway: Attacked, forward: bool, version: str
) -> None:
    good = token(claims())
    rule: Manifest = {"fromHeaders": [{"name": "authorization", "prefix": "Bearer "}, {"name": "x-jwt"}]}
    rule |= {"fromParams": ["access_token"], "fromCookies": ["jwt"], "forwardOriginalToken": forward}
    attacked_gateway.enforce([request_authentication(**rule)])
    requests = [
        Http("GET", "/?b=2", "a", (("authorization", f"Bearer {good}"),), version),
        Http("GET", "/?b=2", "a", (("x-jwt", good), ("authorization", "Basic eDp5")), version),
        Http("GET", f"/?access_token={good}&b=2", "a", (), version),
        Http("GET", "/?b=2", "a", (("cookie", f"a=b; jwt={good}; c=d"),), version),
        Http("GET", "/?b=2", "a", (("x-other", good),), version),
    ]
    verdicts = attacked_gateway.verdicts(requests)
    assert {verdict.status for verdict in verdicts} == {200}
    arrived = [verdict.arrived for verdict in verdicts if verdict.arrived is not None]
    assert [good in _text(each) for each in arrived] == [*([forward] * 4), True]
    if not forward:
        assert [each.target for each in arrived] == ["/?b=2"] * 5
        assert dict(arrived[1].headers)["authorization"] == "Basic eDp5"
        assert dict(arrived[3].headers)["cookie"] == "a=b; c=d"


# API keys

_KEY = "GOOD-key-1"
_SECRETS = [
    secret("good", _KEY),
    secret("other-namespace", "KEY-of-b", namespace="b"),
    secret("other-label", "KEY-of-others", label="others"),
    secret("no-label", "KEY-without-label", label=None),
    secret("empty", ""),
    secret("with-line", "KEY-with-line\n"),
]
_LOCATIONS = {
    "header.example": {"in": "authorization_header", "keySelector": "APIKEY"},
    "custom.example": {"in": "custom_header", "keySelector": "X-Key"},
    "query.example": {"in": "query", "keySelector": "api_key"},
    "cookie.example": {"in": "cookie", "keySelector": "KEY"},
}
_POLICY = auth_policy(
    "Gateway:gw", {host: {"identity": [api_keys(**location)]} for host, location in _LOCATIONS.items()}
)


@dataclass(frozen=True, slots=True)
class _KeyTry:
    """A request with a key. `counts`: the hosts at which the key is a credential."""

    headers: Headers = ()
    query: str = ""
    counts: frozenset[str] = frozenset()


def _placed(key: str) -> Mapping[str, _KeyTry]:
    """Return requests with a key at the place that each host reads."""
    return {
        "header.example": _KeyTry((("authorization", f"APIKEY {key}"),)),
        "custom.example": _KeyTry((("x-key", key),)),
        "query.example": _KeyTry(query=f"?api_key={key}"),
        "cookie.example": _KeyTry((("cookie", f"KEY={key}"),)),
    }


def _good() -> Iterator[_KeyTry]:
    for host, placed in _placed(_KEY).items():
        yield _KeyTry(placed.headers, placed.query, frozenset({host}))
    yield _KeyTry((("X-KEY", _KEY),), "", frozenset({"custom.example"}))
    yield _KeyTry((("cookie", f"a=b; KEY={_KEY}; c=d"),), "", frozenset({"cookie.example"}))
    for query in (f"?api%5Fkey={_KEY.replace('-', '%2D')}", f"?x=1&api_key={_KEY}", f"?api_key={_KEY}&api_key=no"):
        yield _KeyTry((), query, frozenset({"query.example"}))


def _bad() -> Iterator[_KeyTry]:
    keys = ("KEY-of-b", "KEY-of-others", "KEY-without-label", "KEY-with-line", "", "no", _KEY.lower(), _KEY[:-1])
    for key in (*keys, f"{_KEY}x", f'"{_KEY}"', f"'{_KEY}'", f"{_KEY},{_KEY}", f"{_KEY}\x7f"[:-1] + "/", "*", "null"):
        yield from _placed(key).values()
    for value in (
        *(f"apikey {_KEY}", f"ApiKey {_KEY}", f"Bearer {_KEY}", f"Basic {_KEY}", _KEY, f"APIKEY{_KEY}"),
        *(f"APIKEY  {_KEY}", f"APIKEY\t{_KEY}", f"APIKEY={_KEY}", f"x APIKEY {_KEY}", f"APIKEY {_KEY},APIKEY {_KEY}"),
        *(f"APIKEY {_KEY} x", f"APIKEY no {_KEY}", "APIKEY", "APIKEY "),
    ):
        yield _KeyTry((("authorization", value),))
    for name in ("authorization", "x-key"):
        prefix = "APIKEY " if name == "authorization" else ""
        for first, second in ((_KEY, "no"), ("no", _KEY), (_KEY, _KEY), ("", _KEY)):
            yield _KeyTry(((name, prefix + first), (name, prefix + second)))
    for name in (
        "x-eastgate-authorization",
        "proxy-authorization",
        "x_key",
        "xkey",
        "x-key-2",
        "x-api-key",
        "api_key",
        "x-forwarded-x-key",
    ):
        yield _KeyTry(((name, _KEY),))
        yield _KeyTry(((name, f"APIKEY {_KEY}"),))
    for query in ("?API_KEY={k}", "?api_key", "?api_key=", "?api_key[]={k}", "?x=api_key={k}", "?api_key%00={k}"):
        yield _KeyTry((), query.format(k=_KEY))
    for query in ("?a=1;api_key={k}", "?api_key=no&api_key={k}", "?api_key={k}%00", "?api_key=+{k}", "?api-key={k}"):
        yield _KeyTry((), query.format(k=_KEY))
    for cookie in ("key={k}", "KEY2={k}", "XKEY={k}", "a=KEY={k}", "KEY = {k}", 'KEY="{k}"', "KEY=no; KEY={k}", "KEY"):
        yield _KeyTry((("cookie", cookie.format(k=_KEY)),))
    yield _KeyTry((("set-cookie", f"KEY={_KEY}"), ("cookie2", f"KEY={_KEY}")))


def _asked(each: _KeyTry, host: str, version: str = HTTP_1_1) -> Http:
    return Http("GET", f"/{each.query}", host, each.headers, version)


@pytest.mark.parametrize("version", [HTTP_1_1, HTTP_2])
def test_a_key_counts_only_where_it_is_looked_for(attacked_gateway: Attacked, version: str) -> None:
    attacked_gateway.enforce([*_SECRETS, _POLICY])
    tries = [(each, host) for each in (*_good(), *_bad()) for host in _LOCATIONS]
    verdicts = attacked_gateway.verdicts([_asked(each, host, version) for each, host in tries])
    wrong = {}
    for (each, host), verdict in zip(tries, verdicts, strict=True):
        expected = (200,) if host in each.counts else (400, 401)
        if verdict.status not in expected or (verdict.arrived is not None) is not (verdict.status == 200):
            wrong[host, each] = verdict
        if verdict.arrived is not None and _KEY in unquote(_text(verdict.arrived)):
            wrong[host, each] = verdict
    assert not wrong


def test_only_the_credential_is_taken_off(attacked_gateway: Attacked) -> None:
    """Text at the place of another scheme's credential stays, since that scheme recognized no caller."""
    attacked_gateway.enforce([*_SECRETS, _POLICY])
    others = (("authorization", "APIKEY other"), ("x-key", "other"), ("cookie", "a=b; KEY=other; c=d"))
    sent = {
        "header.example": ((("authorization", f"APIKEY {_KEY}"), *others[1:]), "?api_key=other&b=2"),
        "custom.example": ((others[0], ("x-key", _KEY), others[2]), "?api_key=other&b=2"),
        "query.example": (others, f"?b=2&api_key={_KEY}"),
        "cookie.example": ((*others[:2], ("cookie", f"a=b; KEY={_KEY}; c=d")), "?api_key=other&b=2"),
    }
    kept = dict(others)
    expected = {
        "header.example": ({**kept, "authorization": None}, "/?api_key=other&b=2"),
        "custom.example": ({**kept, "x-key": None}, "/?api_key=other&b=2"),
        "query.example": (kept, "/?b=2"),
        "cookie.example": ({**kept, "cookie": "a=b; c=d"}, "/?api_key=other&b=2"),
    }
    requests = [Http("GET", f"/{query}", host, headers) for host, (headers, query) in sent.items()]
    for host, verdict in zip(sent, attacked_gateway.verdicts(requests), strict=True):
        assert verdict.arrived is not None, host
        headers = dict(verdict.arrived.headers)
        assert ({name: headers.get(name) for name in kept}, verdict.arrived.target) == expected[host], host


def test_a_policy_may_pass_a_credential_on(attacked_gateway: Attacked) -> None:
    names = {"header.example": "authorization", "custom.example": "x-key", "cookie.example": "cookie"}
    schemes: dict[str, Manifest] = {}
    for host, name in names.items():
        schemes[host] = {"identity": [api_keys(**_LOCATIONS[host])], "response": [passing_on(name)]}
    attacked_gateway.enforce([*_SECRETS, auth_policy("Gateway:gw", schemes)])
    placed = {host: _placed(_KEY)[host] for host in names}
    verdicts = attacked_gateway.verdicts([_asked(each, host) for host, each in placed.items()])
    for (host, each), verdict in zip(placed.items(), verdicts, strict=True):
        assert verdict.arrived is not None, host
        assert set(each.headers) <= set(verdict.arrived.headers), host


def test_a_key_ends_with_its_secret(attacked_gateway: Attacked) -> None:
    tries = [_asked(each, host) for host, each in _placed(_KEY).items()]

    def statuses(*secrets: Manifest) -> set[int]:
        attacked_gateway.enforce([*secrets, _POLICY])
        return {verdict.status for verdict in attacked_gateway.verdicts(tries)}

    assert statuses(secret("good", _KEY)) == {200}
    assert statuses() == {401}
    assert statuses(secret("good", _KEY)) == {200}
    assert statuses(secret("good", "changed")) == {401}
    assert statuses(secret("good", _KEY, label="others")) == {401}
    assert statuses(secret("good", _KEY, namespace="b")) == {401}


def test_another_host_has_another_scheme(attacked_gateway: Attacked) -> None:
    """Neither another spelling of a host nor a similar host leads to a weaker scheme."""
    closed: Manifest = {"identity": [api_keys(**_LOCATIONS["custom.example"])]}
    attacked_gateway.enforce([auth_policy("Gateway:gw", {"*": closed, "open.example": {"identity": [_ANY_CALLER]}})])
    spelled = ("open.example", "OPEN.example:80", "open.example.")
    others = ("a", "x.open.example", "open.example.evil", "openxexample", "open.example%2e", "a,open.example")
    hosts = [(host, HTTP_1_1) for host in (*spelled, *others)] + [(host, HTTP_2) for host in (*spelled, *others)]
    verdicts = attacked_gateway.verdicts([Http(host=host, version=version) for host, version in hosts])
    arrived = {(host, version) for (host, version), verdict in zip(hosts, verdicts, strict=True) if verdict.arrived}
    assert arrived == {(host, version) for host in spelled for version in (HTTP_1_1, HTTP_2)}
    forged = [("x-forwarded-host", "open.example"), ("host", "open.example"), ("forwarded", "host=open.example")]
    beside = [Http(host="a", headers=(header,), version=version) for header in forged for version in (HTTP_1_1, HTTP_2)]
    assert not [verdict for verdict in attacked_gateway.verdicts(beside) if verdict.arrived is not None]


_ANY_CALLER: Manifest = {"name": "anybody", "anonymous": {}}
