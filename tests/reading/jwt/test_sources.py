"""Sources of keys: files, and issuers that answer, lie, are slow, or are down."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from eastgate.basics.http import MAX_BYTES, MAX_REDIRECTS
from eastgate.reading.jwt import (
    DiscoveredKeys,
    Expectations,
    Keys,
    KeySource,
    KeysUnavailable,
    KnownKeys,
    NotAtHand,
    Reason,
    RejectedToken,
    VerifiedToken,
    keys_at_hand,
    verify_from,
)
from tests.patience import PATIENCE
from tests.reading.jwt.issuer import ABOUT, Issuer, running
from tests.reading.jwt.mint import CLAIMS, ISSUER, NOW, jwk, keys, token


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running() as server:
        server.publish(jwk("p256"))
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source(clock: Clock) -> DiscoveredKeys:
    return DiscoveredKeys(fresh_for=100, usable_for=300, min_interval=10, timeout=PATIENCE, clock=clock)


def ids(found: Keys) -> list[str | None]:
    return [key.kid for key in found.all]


def outcome(source: KeySource, issuer_url: str, signer: str = "p256") -> Reason | None:
    signed = token({**CLAIMS, "iss": issuer_url}, signer=signer)
    match verify_from(source, issuer_url, signed, Expectations(issuer_url), NOW):
        case RejectedToken(reason):
            return reason
        case VerifiedToken():
            return None


# Given keys


def test_keys_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [jwk("p256")]}))
    known = KnownKeys.from_files({ISSUER: path})
    assert outcome(known, ISSUER) is None
    assert outcome(known, ISSUER, "p256-new") is Reason.UNKNOWN_KEY
    assert outcome(known, f"{ISSUER}/") is Reason.KEYS_UNAVAILABLE


@pytest.mark.parametrize("text", [None, "{}", "not JSON"])
def test_a_file_that_holds_no_keys_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "jwks.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=r"jwks\.json: "):
        KnownKeys.from_files({ISSUER: path})


# Discovered keys


def test_keys_are_discovered_and_held(issuer: Issuer, source: DiscoveredKeys, clock: Clock) -> None:
    for _ in range(3):
        assert outcome(source, issuer.url) is None
    clock.now += 99
    assert outcome(source, issuer.url) is None
    assert issuer.asked == {ABOUT: 1, "/jwks": 1}


def test_an_issuer_has_its_document_below_its_path(issuer: Issuer, source: DiscoveredKeys) -> None:
    for name in ("/realms/shop", "/realms/till/"):
        path = name.removesuffix("/") + ABOUT
        issuer.answers[path] = {"issuer": issuer.url + name, "jwks_uri": f"{issuer.url}/jwks"}
        assert ids(source.keys(issuer.url + name)) == ["p256"]


def test_a_withdrawn_key_is_forgotten_when_keys_are_no_longer_fresh(
    issuer: Issuer, source: DiscoveredKeys, clock: Clock
) -> None:
    assert outcome(source, issuer.url) is None
    issuer.publish(jwk("p256-new"))
    assert outcome(source, issuer.url) is None
    clock.now += 100
    assert outcome(source, issuer.url) is Reason.UNKNOWN_KEY


def test_a_new_key_is_found_when_a_token_names_it(issuer: Issuer, source: DiscoveredKeys, clock: Clock) -> None:
    assert outcome(source, issuer.url) is None
    issuer.publish(jwk("p256"), jwk("p256-new"))
    clock.now += 10
    assert outcome(source, issuer.url, "p256-new") is None
    assert issuer.asked["/jwks"] == 2


def test_keys_that_are_newer_already_are_not_fetched_again(
    issuer: Issuer, source: DiscoveredKeys, clock: Clock
) -> None:
    first = source.keys(issuer.url)
    issuer.publish(jwk("p256"), jwk("p256-new"))
    clock.now += 10
    second = source.newer_keys(issuer.url, first)
    clock.now += 10
    assert source.newer_keys(issuer.url, first) is second
    assert issuer.asked["/jwks"] == 2


def test_made_up_key_ids_do_not_make_us_ask_again_and_again(
    issuer: Issuer, source: DiscoveredKeys, clock: Clock
) -> None:
    for _ in range(50):
        assert outcome(source, issuer.url, "p256-evil") is Reason.UNKNOWN_KEY
    assert issuer.asked["/jwks"] == 1
    clock.now += 9.9
    assert outcome(source, issuer.url, "p256-evil") is Reason.UNKNOWN_KEY
    assert issuer.asked["/jwks"] == 1
    clock.now += 0.1
    for _ in range(50):
        assert outcome(source, issuer.url, "p256-evil") is Reason.UNKNOWN_KEY
    assert issuer.asked["/jwks"] == 2


def test_old_keys_are_used_while_the_issuer_is_down_but_not_for_ever(
    issuer: Issuer, source: DiscoveredKeys, clock: Clock
) -> None:
    assert outcome(source, issuer.url) is None
    issuer.answers.clear()
    clock.now += 299
    assert outcome(source, issuer.url) is None
    clock.now += 1
    assert outcome(source, issuer.url) is Reason.KEYS_UNAVAILABLE
    issuer.publish(jwk("p256"))
    assert outcome(source, issuer.url) is Reason.KEYS_UNAVAILABLE, "asked again too soon"
    clock.now += 10
    assert outcome(source, issuer.url) is None


def test_an_issuer_that_is_down_gets_no_request_for_every_token(
    issuer: Issuer, source: DiscoveredKeys, clock: Clock
) -> None:
    issuer.answers.clear()
    for _ in range(20):
        assert outcome(source, issuer.url) is Reason.KEYS_UNAVAILABLE
    assert issuer.asked == {ABOUT: 1}


def test_many_threads_ask_once(issuer: Issuer, source: DiscoveredKeys) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: outcome(source, issuer.url), range(32))) == {None}
    assert issuer.asked["/jwks"] == 1


def test_one_slow_issuer_does_not_hold_up_another(issuer: Issuer, source: DiscoveredKeys) -> None:
    with running() as slow:
        slow.publish(jwk("p256"))
        slow.pause.clear()
        waiting = threading.Thread(target=lambda: outcome(source, slow.url))
        waiting.start()
        assert outcome(source, issuer.url) is None
        assert waiting.is_alive()
        slow.pause.set()
        waiting.join()


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({ABOUT: {"issuer": "https://other.example", "jwks_uri": "URL/jwks"}}, "it is another issuer"),
    "itself with a slash": ({ABOUT: {"issuer": "URL/", "jwks_uri": "URL/jwks"}}, "it is another issuer"),
    "no issuer": ({ABOUT: {"jwks_uri": "URL/jwks"}}, "it is another issuer"),
    "no place of keys": ({ABOUT: {"issuer": "URL"}}, "does not say where its keys are"),
    "a place that is a list": ({ABOUT: {"issuer": "URL", "jwks_uri": ["URL/jwks"]}}, "does not say where"),
    "a file": ({ABOUT: {"issuer": "URL", "jwks_uri": "file:///etc/passwd"}}, "names no server"),
    "a file on a server": ({ABOUT: {"issuer": "URL", "jwks_uri": "file://127.0.0.1/etc/passwd"}}, "is not HTTPS"),
    "data": ({ABOUT: {"issuer": "URL", "jwks_uri": 'data:,{"keys":[]}'}}, "is not a URL"),
    "plain HTTP elsewhere": ({ABOUT: {"issuer": "URL", "jwks_uri": "http://keys.example/"}}, "is not HTTPS"),
    "the metadata service": ({ABOUT: {"issuer": "URL", "jwks_uri": "http://169.254.169.254/"}}, "is not HTTPS"),
    "two issuers": ({ABOUT: b'{"issuer":"a","issuer":"b"}'}, "same key twice"),
    "a page": ({ABOUT: b"<html>"}, "is not JSON"),
    "a list": ({ABOUT: b"[]"}, "is not a JSON object"),
    "an empty answer": ({ABOUT: b""}, "is not JSON"),
    "too long an answer": ({ABOUT: b" " * (MAX_BYTES + 1)}, "is longer than"),
    "an error": ({ABOUT: (500, {})}, "answered 500"),
    "no content": ({ABOUT: (204, {})}, "answered 204"),
    "half of a range": ({ABOUT: (206, {})}, "answered 206"),
    "no keys there": ({"/jwks": (404, {})}, "answered 404"),
    "a key set without keys": ({"/jwks": {"keys": []}}, "no key that verifies"),
    "a key that is broken": ({"/jwks": {"keys": [{"kty": "RSA"}]}}, r"keys\[0\] has no 'n'"),
    "secrets": ({"/jwks": {"keys": [{"kty": "oct", "k": "A" * 64}]}}, "shared secrets"),
    "a redirect to another server": ({"/jwks": (302, {"Location": "http://127.0.0.1:1/jwks"})}, "another server"),
    "a redirect to another name": ({"/jwks": (302, {"Location": "//localhost/jwks"})}, "another server"),
    "a redirect to HTTPS elsewhere": ({"/jwks": (307, {"Location": "https://other.example"})}, "another server"),
    "a redirect to a file": ({"/jwks": (301, {"Location": "file:///etc/passwd"})}, "names no server"),
    "a redirect to nowhere": ({"/jwks": (302, {})}, "answered 302"),
    "a redirect to itself": ({"/jwks": (302, {"Location": "/jwks"})}, f"more than {MAX_REDIRECTS} times"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_issuer_that_does_not_answer_properly_has_no_keys(issuer: Issuer, source: DiscoveredKeys, lie: str) -> None:
    answers, says = LIES[lie]
    for path, answer in answers.items():
        spelled = json.loads(json.dumps(answer).replace("URL", issuer.url)) if isinstance(answer, dict) else answer
        issuer.answers[path] = spelled
    with pytest.raises(KeysUnavailable, match=says):
        source.keys(issuer.url)
    assert outcome(source, issuer.url) is Reason.KEYS_UNAVAILABLE


def test_a_redirect_on_the_same_server_is_followed(issuer: Issuer, source: DiscoveredKeys) -> None:
    issuer.answers["/moved"] = issuer.answers["/jwks"]
    issuer.answers["/jwks"] = (301, {"Location": "/moved"})
    assert outcome(source, issuer.url) is None


BAD_URLS = [
    ("", "names no server"),
    ("issuer.example", "names no server"),
    ("http://issuer.example", "is not HTTPS"),
    ("http://127.0.0.1.evil.example", "is not HTTPS"),
    ("http://localhost.evil.example", "is not HTTPS"),
    ("ftp://127.0.0.1", "is not HTTPS"),
    ("https://", "names no server"),
    ("https://user:hunter2@issuer.example", "has a user name"),
    ("http://127.0.0.1@evil.example", "has a user name"),
    ("https://issuer.example?x", "query or a fragment"),
    ("https://issuer.example#x", "query or a fragment"),
    ("https://issuer.example:port", "is not a URL"),
    ("https://[::1", "is not a URL"),
    ("https://issuer.example\\@evil.example", "is not a URL"),
    ("https://issuer.example\n", "is not a URL"),
    ("https://іssuer.example", "is not a URL"),
]


@pytest.mark.parametrize(("url", "says"), BAD_URLS)
def test_an_invalid_issuer_gets_no_request(source: DiscoveredKeys, url: str, says: str) -> None:
    with pytest.raises(KeysUnavailable, match=says) as problem:
        source.keys(url)
    assert "hunter2" not in str(problem.value)


def test_an_unreachable_issuer_has_no_keys(source: DiscoveredKeys) -> None:
    with running() as gone:
        url = gone.url
    with pytest.raises(KeysUnavailable, match="cannot be reached"):
        source.keys(url)


def test_an_issuer_that_does_not_answer_in_time_has_no_keys(issuer: Issuer) -> None:
    issuer.pause.clear()
    with pytest.raises(KeysUnavailable, match="takes too long"):
        DiscoveredKeys(timeout=0.1).keys(issuer.url)


def test_an_issuer_that_answers_drop_by_drop_has_no_keys(issuer: Issuer) -> None:
    issuer.answers["/jwks"] = [b" "] * 200
    with pytest.raises(KeysUnavailable, match="takes too long"):
        DiscoveredKeys(timeout=0.2).keys(issuer.url)


def test_a_proxy_never_sees_a_request_to_this_machine(issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert outcome(DiscoveredKeys(), issuer.url) is None


@pytest.mark.parametrize("settings", [{"fresh_for": 5}, {"usable_for": 599}, {"min_interval": -1}])
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="min_interval must not exceed"):
        DiscoveredKeys(**settings)


# HTTPS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a self-signed certificate of 127.0.0.1 with its key in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "issuer.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return path


@pytest.fixture
def https_issuer(certificate: Path) -> Iterator[Issuer]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with running(tls) as server:
        server.publish(jwk("p256"))
        yield server


def test_an_issuer_is_believed_only_with_a_certificate_that_is_trusted(https_issuer: Issuer, certificate: Path) -> None:
    trusting = DiscoveredKeys(tls=ssl.create_default_context(cafile=str(certificate)))
    assert outcome(trusting, https_issuer.url) is None
    with pytest.raises(KeysUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
        DiscoveredKeys().keys(https_issuer.url)


def test_keys_of_an_https_issuer_are_not_fetched_in_the_clear(
    https_issuer: Issuer, issuer: Issuer, certificate: Path
) -> None:
    trusting = DiscoveredKeys(tls=ssl.create_default_context(cafile=str(certificate)))
    https_issuer.answers[ABOUT] = {"issuer": https_issuer.url, "jwks_uri": f"{issuer.url}/jwks"}
    with pytest.raises(KeysUnavailable, match="not HTTPS"):
        trusting.keys(https_issuer.url)
    assert not issuer.asked


def test_known_keys_have_nothing_newer() -> None:
    held = keys("p256")
    assert KnownKeys({ISSUER: held}).newer_keys(ISSUER, held) is held


def test_cached_keys_are_the_fresh_ones_without_a_fetch(issuer: Issuer, source: DiscoveredKeys, clock: Clock) -> None:
    at_hand = keys_at_hand(source)
    with pytest.raises(NotAtHand):
        at_hand.keys(issuer.url)
    assert not issuer.asked
    fetched = source.keys(issuer.url)
    assert at_hand.keys(issuer.url) is fetched
    with pytest.raises(NotAtHand):
        at_hand.newer_keys(issuer.url, fetched)
    asked = dict(issuer.asked)
    clock.now += 100
    with pytest.raises(NotAtHand):
        at_hand.keys(issuer.url)
    assert issuer.asked == asked


def test_keys_that_were_given_are_always_at_hand() -> None:
    known = KnownKeys({ISSUER: keys("p256")})
    assert keys_at_hand(known) is known
