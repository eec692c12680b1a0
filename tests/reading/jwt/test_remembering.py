"""Cached verified tokens: when they are valid, and when they are not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from eastgate.reading.jwt import (
    DiscoveredKeys,
    Expectations,
    KeySource,
    KnownKeys,
    Reason,
    RejectedToken,
    VerifiedToken,
    VerifiedTokens,
    key_sets_of,
    verify_from,
)
from eastgate.reading.jwt import keys as keys_module
from tests.patience import PATIENCE
from tests.reading.jwt.issuer import Issuer, running
from tests.reading.jwt.mint import CLAIMS, ISSUER, NOW, jwk, keys, token
from tests.reading.jwt.test_sources import Clock

EXPECTED = Expectations(ISSUER)
TOKEN = token(CLAIMS)


class Checks:
    """Counts the signature checks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        checked = keys_module.Key.signed

        def counted(key: keys_module.Key, algorithm: str, message: bytes, signature: bytes) -> bool:
            self.count += 1
            return checked(key, algorithm, message, signature)

        monkeypatch.setattr(keys_module.Key, "signed", counted)


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Checks:
    return Checks(monkeypatch)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running() as server:
        server.publish(jwk("p256"))
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def source(clock: Clock) -> Remembering:
    return Remembering(DiscoveredKeys(fresh_for=100, usable_for=300, min_interval=10, timeout=PATIENCE, clock=clock))


def reason(outcome: VerifiedToken | RejectedToken) -> Reason | None:
    return outcome.reason if isinstance(outcome, RejectedToken) else None


class Remembering:
    """A source, and the tokens that were verified with its keys."""

    def __init__(self, source: KeySource) -> None:
        self.source = source
        self.tokens = VerifiedTokens()

    def verify(self, url: str, signed: str, expected: Expectations, now: float) -> VerifiedToken | RejectedToken:
        return verify_from(self.source, url, signed, expected, now, self.tokens)


def known() -> Remembering:
    return Remembering(KnownKeys({ISSUER: keys("p256")}))


def test_a_signature_is_checked_once(checks: Checks) -> None:
    source = known()
    outcomes = [source.verify(ISSUER, TOKEN, EXPECTED, NOW + second) for second in range(5)]
    assert [reason(outcome) for outcome in outcomes] == [None] * 5
    assert outcomes[0] == outcomes[4]
    assert checks.count == 1


def test_a_remembered_token_ends_when_it_says(checks: Checks) -> None:
    source = known()
    lenient = Expectations(ISSUER, leeway=30)
    expires = CLAIMS["exp"]
    assert isinstance(expires, int)
    for expected in (EXPECTED, lenient):
        assert reason(source.verify(ISSUER, TOKEN, expected, NOW)) is None
        assert reason(source.verify(ISSUER, TOKEN, expected, expires - 0.5)) is None
        assert reason(source.verify(ISSUER, TOKEN, expected, expires)) is Reason.EXPIRED
    assert checks.count == 4


def test_a_clock_that_is_set_back_makes_it_be_verified_anew() -> None:
    source = known()
    signed = token({**CLAIMS, "nbf": NOW})
    assert reason(source.verify(ISSUER, signed, EXPECTED, NOW)) is None
    assert reason(source.verify(ISSUER, signed, EXPECTED, NOW - 60)) is Reason.NOT_YET_VALID


def test_other_expectations_are_another_question() -> None:
    source = known()
    assert reason(source.verify(ISSUER, TOKEN, EXPECTED, NOW)) is None
    strict = Expectations(ISSUER, frozenset({"payroll"}))
    assert reason(source.verify(ISSUER, TOKEN, strict, NOW)) in (Reason.WRONG_AUDIENCE, Reason.MISSING_CLAIM)
    assert reason(source.verify(ISSUER, TOKEN, Expectations("https://other"), NOW)) is Reason.WRONG_ISSUER


def test_a_token_that_differs_in_one_letter_is_not_remembered() -> None:
    source = known()
    assert reason(source.verify(ISSUER, TOKEN, EXPECTED, NOW)) is None
    head, payload, signature = TOKEN.split(".")
    changed = f"{head}.{payload}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
    assert reason(source.verify(ISSUER, changed, EXPECTED, NOW)) is Reason.BAD_SIGNATURE
    assert len(source.tokens) == 1


def test_rejected_tokens_are_not_remembered() -> None:
    source = known()
    assert reason(source.verify(ISSUER, token(CLAIMS, signer="p256-new"), EXPECTED, NOW)) is not None
    assert len(source.tokens) == 0


def test_nothing_that_is_remembered_holds_the_token() -> None:
    source = known()
    source.verify(ISSUER, TOKEN, EXPECTED, NOW)
    shown = repr(list(source.tokens._remembered.items()))
    assert all(part not in shown for part in TOKEN.split("."))


def test_the_least_recently_used_give_way() -> None:
    remembered = VerifiedTokens(2)
    issued = keys("p256")
    verified = VerifiedToken({"sub": "erin"}, {}, None)
    for name in ("a", "b"):
        remembered.put(name, ISSUER, issued, EXPECTED, NOW, verified)
    assert remembered.get("a", ISSUER, issued, EXPECTED, NOW) is verified
    remembered.put("c", ISSUER, issued, EXPECTED, NOW, verified)
    assert [remembered.get(name, ISSUER, issued, EXPECTED, NOW) is not None for name in "abc"] == [True, False, True]


def verify_at(source: Remembering, issuer: Issuer, signer: str = "p256") -> Reason | None:
    signed = token({**CLAIMS, "iss": issuer.url}, signer=signer)
    return reason(source.verify(issuer.url, signed, Expectations(issuer.url), NOW))


def test_a_token_is_not_remembered_past_the_removal_of_its_key(
    issuer: Issuer, source: Remembering, clock: Clock
) -> None:
    signed = token({**CLAIMS, "iss": issuer.url})
    expected = Expectations(issuer.url)
    assert reason(source.verify(issuer.url, signed, expected, NOW)) is None
    issuer.publish(jwk("p256-new"))
    clock.now += 100
    assert reason(source.verify(issuer.url, signed, expected, NOW)) is Reason.UNKNOWN_KEY


def test_keys_that_are_fetched_again_and_are_the_same_forget_nothing(
    issuer: Issuer, source: Remembering, clock: Clock, checks: Checks
) -> None:
    signed = token({**CLAIMS, "iss": issuer.url})
    expected = Expectations(issuer.url)
    for _ in range(3):
        assert reason(source.verify(issuer.url, signed, expected, NOW)) is None
        clock.now += 100
    assert issuer.asked["/jwks"] == 3
    assert checks.count == 1


def test_an_issuer_that_withdraws_all_keys_is_believed_at_once(
    issuer: Issuer, source: Remembering, clock: Clock
) -> None:
    assert verify_at(source, issuer) is None
    issuer.publish()
    clock.now += 100
    assert verify_at(source, issuer) is Reason.KEYS_UNAVAILABLE
    issuer.publish(jwk("p256"))
    clock.now += 10
    assert verify_at(source, issuer) is None


def test_while_one_thread_fetches_the_others_use_the_cached_keys(
    issuer: Issuer, source: Remembering, clock: Clock
) -> None:
    first = source.source.keys(issuer.url)
    clock.now += 100
    issuer.pause.clear()
    fetching = threading.Thread(target=source.source.keys, args=(issuer.url,))
    fetching.start()
    while issuer.asked["/.well-known/openid-configuration"] < 2:
        pass
    with ThreadPoolExecutor(4) as pool:
        assert all(keys is first for keys in pool.map(source.source.keys, [issuer.url] * 20))
    issuer.pause.set()
    fetching.join()
    assert issuer.asked["/.well-known/openid-configuration"] == 2


def test_a_key_set_at_a_url_of_its_own_is_fetched_from_there(issuer: Issuer, source: Remembering) -> None:
    url = f"{issuer.url}/jwks"
    signed = token({**CLAIMS, "iss": issuer.url})
    key_sets = key_sets_of(source.source)
    assert reason(verify_from(key_sets, url, signed, Expectations(None), NOW)) is None
    assert dict(issuer.asked) == {"/jwks": 1}
    given = KnownKeys({url: keys("p256")})
    assert key_sets_of(given) is given
