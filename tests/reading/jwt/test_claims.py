"""Claims are checked despite a valid signature: times, issuer and audience, to the second and to the letter."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.reading.jwt import Expectations, Reason, verify
from tests.reading.jwt.mint import CLAIMS, EXPECTED, ISSUER, NOW, keys, reason, token

LENIENT = Expectations(ISSUER, leeway=30)

TIMES: list[tuple[str, dict[str, object], Expectations, Reason | None]] = [
    ("expires in a second", {"exp": NOW + 1}, EXPECTED, None),
    ("expires in half a second", {"exp": NOW + 0.5}, EXPECTED, None),
    ("expires now", {"exp": NOW}, EXPECTED, Reason.EXPIRED),
    ("expired a second ago", {"exp": NOW - 1}, EXPECTED, Reason.EXPIRED),
    ("expired, whatever the leeway", {"exp": NOW}, LENIENT, Reason.EXPIRED),
    ("not expired yet", {"exp": NOW + 1}, LENIENT, None),
    ("expired before 1970", {"exp": -1}, EXPECTED, Reason.EXPIRED),
    ("expires at the end of days", {"exp": 2**64 - 1}, LENIENT, None),
    ("expires at a large fraction", {"exp": 1e300}, LENIENT, None),
    ("begins now", {"nbf": NOW}, EXPECTED, None),
    ("begins in a second", {"nbf": NOW + 1}, EXPECTED, Reason.NOT_YET_VALID),
    ("begins at the end of the leeway", {"nbf": NOW + 30}, LENIENT, None),
    ("begins after the leeway", {"nbf": NOW + 31}, LENIENT, Reason.NOT_YET_VALID),
    ("issued now", {"iat": NOW}, EXPECTED, None),
    ("issued in a second", {"iat": NOW + 1}, EXPECTED, Reason.ISSUED_IN_THE_FUTURE),
    ("issued at the end of the leeway", {"iat": NOW + 30}, LENIENT, None),
    ("issued after the leeway", {"iat": NOW + 31}, LENIENT, Reason.ISSUED_IN_THE_FUTURE),
]


@pytest.mark.parametrize(("claims", "expected", "why"), [row[1:] for row in TIMES], ids=[row[0] for row in TIMES])
def test_times_hold_to_the_second(claims: dict[str, object], expected: Expectations, why: Reason | None) -> None:
    assert reason(token({**CLAIMS, **claims}), keys("p256"), expected) is why


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize("value", [str(NOW + 60), True, None, [NOW + 60], {"$date": NOW + 60}, ""], ids=repr)
def test_a_time_is_a_number(name: str, value: object) -> None:
    assert reason(token({**CLAIMS, name: value}), keys("p256")) is Reason.INVALID_CLAIM


def test_a_token_without_an_end_is_believed_only_where_that_is_waived() -> None:
    endless = token({name: value for name, value in CLAIMS.items() if name != "exp"})
    assert reason(endless, keys("p256")) is Reason.MISSING_CLAIM
    assert reason(endless, keys("p256"), Expectations(ISSUER, require_expiry=False)) is None
    assert reason(token({**CLAIMS, "exp": NOW}), keys("p256"), Expectations(ISSUER, require_expiry=False))


ISSUERS: list[tuple[object, Reason]] = [
    ("https://issuer.example/", Reason.WRONG_ISSUER),
    ("https://ISSUER.example", Reason.WRONG_ISSUER),
    ("https://issuer.example.evil.example", Reason.WRONG_ISSUER),
    (" https://issuer.example", Reason.WRONG_ISSUER),
    ("https://issuer.example\u0000", Reason.WRONG_ISSUER),
    ("https://іssuer.example", Reason.WRONG_ISSUER),  # a Cyrillic letter
    ("", Reason.WRONG_ISSUER),
    ([ISSUER], Reason.INVALID_CLAIM),
    (None, Reason.INVALID_CLAIM),
    ({ISSUER: ISSUER}, Reason.INVALID_CLAIM),
]


@pytest.mark.parametrize(("issuer", "why"), ISSUERS)
def test_another_issuer_is_not_believed(issuer: object, why: Reason) -> None:
    signed = token({**CLAIMS, "iss": issuer})
    assert reason(signed, keys("p256")) is why
    assert reason(signed, keys("p256"), Expectations(None)) is None


def test_a_missing_issuer_is_not_the_expected_one() -> None:
    assert reason(token({"aud": "shop", "exp": NOW + 1}), keys("p256")) is Reason.MISSING_CLAIM


AUDIENCES: list[tuple[object, Reason | None]] = [
    ("shop", None),
    (["shop"], None),
    (["other", "shop"], None),
    ("till", None),
    ("Shop", Reason.WRONG_AUDIENCE),
    ("shop ", Reason.WRONG_AUDIENCE),
    ("shop,till", Reason.WRONG_AUDIENCE),
    ([], Reason.WRONG_AUDIENCE),
    (["other"], Reason.WRONG_AUDIENCE),
    (None, Reason.INVALID_CLAIM),
    (1, Reason.INVALID_CLAIM),
    ({"shop": True}, Reason.INVALID_CLAIM),
    (["shop", 1], Reason.INVALID_CLAIM),
    ([["shop"]], Reason.INVALID_CLAIM),
]


@pytest.mark.parametrize(("audience", "why"), AUDIENCES)
def test_any_audience_in_common_is_enough(audience: object, why: Reason | None) -> None:
    signed = token({**CLAIMS, "aud": audience})
    assert reason(signed, keys("p256"), Expectations(ISSUER, frozenset({"shop", "till"}))) is why
    assert reason(signed, keys("p256"), Expectations(ISSUER)) is None


def test_a_missing_audience_is_not_the_expected_one() -> None:
    assert reason(token({"iss": ISSUER, "exp": NOW + 1}), keys("p256")) is Reason.MISSING_CLAIM


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"issuer": ""}, "issuer is empty"),
        ({"audiences": "shop"}, "frozenset"),
        ({"algorithms": ()}, "no token could ever"),
        ({"algorithms": "RS256"}, "tuple"),
        ({"algorithms": ("RS256", "none")}, "none: not a signature algorithm"),
        ({"algorithms": ("rs256",)}, "rs256: not a signature algorithm"),
        ({"leeway": -1}, "leeway"),
        ({"leeway": float("nan")}, "leeway"),
        ({"leeway": float("inf")}, "leeway"),
        ({"max_bytes": 0}, "max_bytes"),
    ],
)
def test_contradictory_expectations_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Expectations(**{"issuer": ISSUER, **settings})


@pytest.mark.parametrize("now", [float("nan"), float("inf"), float("-inf")])
def test_a_clock_that_tells_no_time_is_refused(now: float) -> None:
    with pytest.raises(ValueError, match="now must be a time"):
        verify(token(), keys("p256"), EXPECTED, now)
