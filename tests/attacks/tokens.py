"""Invalid tokens, and some valid ones, as a caller without a certificate sends them."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

from joserfc.jwk import OctKey

from eastgate.reading.jwt import Expectations, Keys
from tests.differential.asking import TRUST_DOMAIN
from tests.reading.jwt.mint import b64, jwk, pair, sealed, text, token

__all__ = ["ACCOUNTS", "AUDIENCE", "EXPECTED", "ISSUER", "JWKS", "KEYS", "WEB", "TokenTry", "claims", "token_tries"]

ISSUER, AUDIENCE = "https://issuer.example", "mesh"
ACCOUNTS = f"spiffe://{TRUST_DOMAIN}/ns/a/sa/"
WEB = f"{ACCOUNTS}web"
KEYS = Keys.of({"keys": [jwk("p256"), jwk("rsa")]})
JWKS = json.dumps({"keys": [jwk("p256"), jwk("rsa")]})
EXPECTED = Expectations(ISSUER, frozenset({AUDIENCE}))


@dataclass(frozen=True)
class TokenTry:
    """A request with a token in it.

    `status` is the answer of a proxy: 200 for the caller WEB, 403 for another or an anonymous caller, 401 if the proxy
    refuses the token. `believed` is the result of the offline verifier for `token` alone.
    """

    name: str
    token: str
    status: tuple[int, ...]
    believed: bool
    headers: tuple[tuple[str, str], ...] | None = None
    path: str = "/items"

    @property
    def sent(self) -> tuple[tuple[str, str], ...]:
        return (("authorization", f"Bearer {self.token}"),) if self.headers is None else self.headers


def claims(**more: object) -> dict[str, object]:
    """Return the claims of a valid token with changes. None removes a claim."""
    found = {"iss": ISSUER, "aud": AUDIENCE, "sub": WEB, "exp": int(time.time()) + 86_400, **more}
    return {name: value for name, value in found.items() if value is not None}


def token_tries() -> Iterator[TokenTry]:
    """Yield all tries. Their times are relative to now."""
    good, now = token(claims()), int(time.time())
    yield TokenTry("good", good, (200,), True)
    yield TokenTry("good, of the other key", token(claims(), "rsa", "RS256"), (200,), True)
    yield TokenTry("several audiences", token(claims(aud=["other", AUDIENCE])), (200,), True)
    yield from _critical()
    yield from _signatures(good)
    yield from _places(good)
    header = {"alg": "ES256", "kid": "p256"}
    for name, claimed in {
        "expired": claims(exp=now - 3600),
        "expired just now": claims(exp=now - 5),
        "not valid yet": claims(nbf=now + 3600),
        "without an end": claims(exp=None),
        "an expiry that is not a number": claims(exp="never"),
        "without an issuer": claims(iss=None),
        "of another issuer": claims(iss="https://evil.example"),
        "an issuer with a slash more": claims(iss=f"{ISSUER}/"),
        "a list of issuers": claims(iss=[ISSUER]),
        "without an audience": claims(aud=None),
        "for another audience": claims(aud="other"),
        "for an audience in capitals": claims(aud=AUDIENCE.upper()),
        "for an audience that begins so": claims(aud=f"{AUDIENCE}-other"),
    }.items():
        yield TokenTry(name, token(claimed), (401, 403), False)
    for name, subject in {
        "somebody else": f"{ACCOUNTS}other",
        "another trust domain": "spiffe://evil.example/ns/a/sa/web",
        "a trust domain that begins so": f"spiffe://{TRUST_DOMAIN}.evil.example/ns/a/sa/web",
        "two with a comma": f"{ACCOUNTS}other,{WEB}",
        "two with a comma, the right one first": f"{WEB},{ACCOUNTS}other",
        "quotes": f'"{WEB}"',
        "a list": [WEB],
        "an object": {"id": WEB},
        "a number": 1,
        "null": None,
        "nobody": "none",
        "nothing": "",
        "a line break": f"{WEB}\n",
        "a space": f" {WEB}",
        "a query": f"{WEB}?x=1",
        "a wildcard": f"{ACCOUNTS}*",
        "dots": f"{ACCOUNTS}../sa/web",
        "percent": f"{ACCOUNTS}%77eb",
        "a slash more": f"{WEB}/",
        "capital letters": WEB.upper(),
        "a command of Envoy's": "%DOWNSTREAM_PEER_URI_SAN%",
    }.items():
        yield TokenTry(f"subject: {name}", token({**claims(), "sub": subject}), (401, 403), True)
    twice = json.dumps(claims(sub=f"{ACCOUNTS}other"))[:-1] + f', "sub": {json.dumps(WEB)}}}'
    yield TokenTry("subject twice", sealed(header, twice.encode(), "p256", "ES256"), (401, 403), False)
    escaped = json.dumps(claims()).replace('"sub"', '"\\u0073ub"').replace("spiffe:", "\\u0073piffe:")
    yield TokenTry("subject escaped", sealed(header, escaped.encode(), "p256", "ES256"), (200,), True)
    yield TokenTry("claims that are a list", sealed(header, [claims()], "p256", "ES256"), (401,), False)
    yield TokenTry("claims that are no JSON", sealed(header, b"sub: x", "p256", "ES256"), (401,), False)
    yield TokenTry("huge", token(claims(more="x" * 50_000)), (401, 431), False)


def _critical() -> Iterator[TokenTry]:
    for name, crit in {"unknown": ["made-up"], "known": ["exp"], "none": [], "no list": "x"}.items():
        yield TokenTry(f"critical: {name}", token(claims(), crit=crit), (401,), False)
    for shift in range(6):  # at every alignment in base64
        header = {"a": "x" * shift, "alg": "ES256", "kid": "p256", "crit": ["made-up"], "made-up": True}
        yield TokenTry(f"critical, moved by {shift}", sealed(header, claims(), "p256", "ES256"), (401,), False)
        spaced = b"{" + b" " * shift + b'"crit" : ["x"], "x": 1, "alg": "ES256", "kid": "p256"}'
        yield TokenTry(f"critical, first, moved by {shift}", sealed(spaced, claims(), "p256", "ES256"), (401,), False)
        for written in ("\\u0063rit", "c\\u0072it", "cr\\u0069t", "cri\\u0074"):
            raw = b"{" + b" " * shift + f'"{written}": ["x"], "x": 1, "alg": "ES256", "kid": "p256"}}'.encode()
            name = f"critical, escaped as {written}, moved by {shift}"
            yield TokenTry(name, sealed(raw, claims(), "p256", "ES256"), (401,), False)
        fine = {"a": "x" * shift, "alg": "ES256", "kid": "p256", "typ": "crit-ical", "x": "Crit", "y": "\\u00e9"}
        yield TokenTry(f"not critical, moved by {shift}", sealed(fine, claims(), "p256", "ES256"), (200,), True)


def _signatures(good: str) -> Iterator[TokenTry]:
    head, body, signature = good.split(".")
    for spelling in ("none", "None", "NONE", "nOnE", ""):
        unsigned = f"{text({'alg': spelling, 'kid': 'p256'})}.{text(claims())}"
        for shown in ("", signature):
            name = f"algorithm {spelling!r}, {'a' if shown else 'no'} signature"
            yield TokenTry(name, f"{unsigned}.{shown}", (401,), False)
    for form in ("PEM", "DER"):
        for kid in ("p256", "rsa"):
            public = pair(kid)
            assert not isinstance(public, OctKey)
            signed = f"{text({'alg': 'HS256', 'kid': kid})}.{text(claims())}"
            mac = hmac.digest(public.as_bytes(encoding=form, private=False), signed.encode(), "sha256")
            yield TokenTry(f"the public key {kid} as a secret, {form}", f"{signed}.{b64(mac)}", (401,), False)
    yield TokenTry("of another key with the same name", token(claims(), "p256-2", kid="p256"), (401,), False)
    for kid in ("../p256", "p256\u0000", "P256", "", "' or 1=1 --", "/dev/null", "http://evil.example/k"):
        yield TokenTry(f"kid {kid!r}", token(claims(), "p256-2", kid=kid), (401,), False)
    for where in ("jwk", "jku", "x5u", "x5c"):
        brought: dict[str, object] = {"jwk": jwk("p256-2"), "x5c": ["x"]}
        header = {"alg": "ES256", "kid": "p256-2", where: brought.get(where, "https://evil.example/keys")}
        forged = sealed(header, claims(), "p256-2", "ES256")
        yield TokenTry(f"a key brought along as {where}", forged, (401,), False)
    yield TokenTry("another body", f"{head}.{text(claims(sub=WEB, more=1))}.{signature}", (401,), False)
    yield TokenTry("no signature", f"{head}.{body}.", (401,), False)
    yield TokenTry("cut", good[:-4], (401,), False)
    yield TokenTry("two parts", f"{head}.{body}", (401,), False)
    yield TokenTry("four parts", f"{good}.{signature}", (401,), False)
    yield TokenTry("encrypted", f"{text({'alg': 'RSA-OAEP', 'enc': 'A256GCM'})}.{head}.{body}.x.x", (401,), False)
    yield TokenTry("padded", f"{good}=", (401,), False)
    yield TokenTry("trailing junk", f"{good}!", (401,), False)
    yield TokenTry("more behind a space", f"{good} {good}", (401,), False)
    yield TokenTry("more behind a comma", f"{good},{good}", (401,), False)


def _places(good: str) -> Iterator[TokenTry]:
    other = token(claims(sub=f"{ACCOUNTS}other"))
    for name, headers, status in (
        ("in lower case", (("authorization", f"bearer {good}"),), 403),
        ("in capitals", (("authorization", f"BEARER {good}"),), 403),
        ("of another scheme", (("authorization", f"Basic {good}"),), 403),
        ("behind another scheme", (("authorization", f"Basic x, Bearer {good}"),), 401),
        ("behind another word", (("authorization", f"xBearer {good}"),), 401),
        ("behind two spaces", (("authorization", f"Bearer  {good}"),), 401),
        ("behind a quote", (("authorization", f'Bearer "{good}"'),), 401),
        ("twice", (("authorization", f"Bearer {good}"),) * 2, 401),
        ("before another", (("authorization", f"Bearer {good}"), ("authorization", f"Bearer {other}")), 401),
        ("behind another token", (("authorization", f"Bearer {other}"), ("authorization", f"Bearer {good}")), 401),
        ("behind a password", (("authorization", "Basic eDp5"), ("authorization", f"Bearer {good}")), 401),
        ("in another header", (("x-authorization", f"Bearer {good}"), ("x-jwt", good)), 403),
        ("in the header of gateways", (("x-eastgate-authorization", f"Bearer {good}"),), 403),
        ("in the header of proxies", (("proxy-authorization", f"Bearer {good}"),), 403),
        ("in a cookie", (("cookie", f"access_token={good}; Authorization=Bearer {good}"),), 403),
        ("nowhere", (), 403),
        ("a password", (("authorization", "Basic eDp5"),), 403),
        ("a digest with commas", (("authorization", 'Digest username="x", realm="y"'),), 403),
    ):
        yield TokenTry(f"place: {name}", good, (status,), True, headers)
    for query in (f"access_token={good}", f"x=1&access_token={good}", f"jwt={good}", f"ACCESS_TOKEN={good}"):
        name = f"place: the query {query.partition(good)[0]}"
        yield TokenTry(name, good, (403,), True, (), f"/items?{query}")
