"""Eastgate and a real Authorino accept the same credentials and client certificates."""

from __future__ import annotations

import base64
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from eastgate.cluster import Secret
from eastgate.convert.authconfigs import auth_config
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from tests.authorino.requests import answered, check_request
from tests.authorino.running import Authorino
from tests.dialects.kuadrant.authorino.authorities import CLIENT, SERVER, Holder, issued
from tests.dialects.kuadrant.authorino.schemes import holding, request
from tests.dialects.kuadrant.scheme_texts import node, scheme

pytestmark = pytest.mark.authorino

NAMESPACE = "shop"
LONG = 10**8  # seconds, so that a certificate is valid now, and not only at the time of the tests' clock
KEY = "k+y of/alice"


def secret(name: str, **data: str) -> Secret:
    encoded = {key.replace("_crt", ".crt"): value.encode() for key, value in data.items()}
    return Secret(NAMESPACE, name, {"app": name}, {}, encoded)


class Both:
    """A scheme in Eastgate and in Authorino."""

    def __init__(self, authorino: Authorino, name: str, text: str, *secrets: Secret) -> None:
        self._authorino, self._key = authorino, f"{name}.test"
        self._scheme = scheme(f"hosts: [{self._key}]\n{text}")
        self._services: Services = holding(*secrets)
        plain = node(f"hosts: [{self._key}]\n{text}").plain()
        assert isinstance(plain, dict)
        manifests = [
            {
                "metadata": {"name": one.name, "labels": dict(one.labels)},
                "data": {key: base64.b64encode(value).decode() for key, value in one.data.items()},
            }
            for one in secrets
        ]
        authorino.create_namespace(NAMESPACE, manifests)
        assert authorino.create_config(NAMESPACE, name, auth_config(plain)) is None
        assert authorino.wait_for_configs() == {}

    def differs(self, facts: RequestFacts) -> str | None:
        """Return the difference between both decisions, or None."""
        now = replace(facts, time=time.time())
        ours = evaluate(self._scheme, now, self._services).status
        theirs = answered(self._authorino.check(check_request(now, self._key))).status
        return None if ours == theirs else f"{now.path!r} {now.headers}: ours {ours}, Authorino {theirs}"


def by_key(place: str) -> str:
    return f"identity: [{{name: keys, apiKey: {{labelSelectors: {{app: keys}}}}, credentials: {place}}}]"


# No `#`: a `%` after it that is not followed by two digits kills Authorino v0.27.
PIECES = [
    *("api_key", "api%5fkey", "API_KEY", "=", "==", "&", "&&", ";", "%", "%zz", "%3D", "?", "x=1", "+", "%2B", "%20"),
    *(KEY, "k%2By+of%2Falice", "k%2By%20of/alice", "k%2by+of/alice", "/", "//", ".."),
]
COOKIES = ["KEY=", f"KEY={KEY}", "KEY", "=", ";", "; ", " ", "KEY=x", "key=", "XKEY=", KEY, ","]


def texts(pieces: list[str], beginning: str, count: int) -> Iterator[str]:
    """Return texts of a few pieces, the same in every run."""
    choose = random.Random(7)  # noqa: S311 - not for secrets
    for _ in range(count):
        yield beginning + "".join(choose.choices(pieces, k=choose.randint(1, 7)))


@pytest.mark.parametrize(
    ("name", "place", "requests"),
    [
        ("query", "{in: query, keySelector: api_key}", lambda: map(request, texts(PIECES, "/x?", 300))),
        ("cookie", "{in: cookie, keySelector: KEY}", lambda: (_with("cookie", one) for one in texts(COOKIES, "", 150))),
        ("header", "{in: custom_header, keySelector: X-Key}", lambda: (_with("x-key", one) for one in ("", " ", KEY))),
        (
            "prefix",
            "{keySelector: APIKEY}",
            lambda: (_with("authorization", one) for one in texts(["APIKEY", " ", KEY, "apikey"], "", 100)),
        ),
    ],
)
def test_credentials_are_taken_alike(
    authorino: Authorino, name: str, place: str, requests: Callable[[], Iterator[RequestFacts]]
) -> None:
    both = Both(authorino, name, by_key(place), secret("keys", api_key=KEY))
    assert [found for one in requests() if (found := both.differs(one))] == []


def _with(header: str, value: str) -> RequestFacts:
    return request(headers={header: value})


def lasting(name: str, by: Holder | None = None, *, authority: bool = False, client: bool = True) -> Holder:
    usages = () if authority else (CLIENT if client else SERVER,)
    return issued(name, by, authority=authority, usages=usages, begins=-LONG, ends=LONG)


def test_certificates_are_taken_alike(authorino: Authorino) -> None:
    root, stranger = lasting("root", authority=True), lasting("stranger", authority=True)
    middle = lasting("middle", root, authority=True)
    alice, bob, below = lasting("alice", root), lasting("bob", stranger), lasting("below", middle)
    noise = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    presented = {
        "alice": alice.pem,
        "bob": bob.pem,
        "below": below.pem,
        "with its chain": below.pem + middle.pem,
        "behind its chain": middle.pem + below.pem,
        "bob, alice": bob.pem + alice.pem,
        "alice, bob": alice.pem + bob.pem,
        "noise, alice": noise + alice.pem,
        "alice, noise": alice.pem + noise,
        "text, alice": f"some text\n{alice.pem}",
        "for servers": lasting("alice", root, client=False).pem,
        "itself": root.pem,
        "nothing": "nothing",
    }
    authorities = {
        "one": root.pem,
        "last": stranger.pem + root.pem,
        "first": root.pem + stranger.pem,
        "middle": middle.pem,
        "noise": root.pem + noise,
    }
    wrong = []
    for name, held in authorities.items():
        text = f"identity: [{{name: mtls, mtls: {{selector: {{matchLabels: {{app: ca-{name}}}}}}}}}]"
        both = Both(authorino, f"ca-{name}", text, secret(f"ca-{name}", tls_crt=held))
        wrong += [
            f"{name}: {who}: {found}"
            for who, pem in presented.items()
            if (found := both.differs(request(certificate=pem)))
        ]
    assert wrong == []
