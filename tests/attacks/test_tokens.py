"""Tokens, tried at every placement and on the offline verifier: both refuse what the other refuses."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.languages.jwt import VerifiedToken, verify
from tests.attacks import placements
from tests.attacks.placements import HOST, PLACEMENTS, Attacked, Placement, Trust, Verdict
from tests.attacks.policies import only_accounts
from tests.attacks.tokens import ACCOUNTS, AUDIENCE, EXPECTED, ISSUER, JWKS, KEYS, TokenTry, claims, token_tries
from tests.differential.asking import TRUST_DOMAIN, Http
from tests.differential.bench import Bench
from tests.languages.jwt.mint import token

TRIES = list(token_tries())
IDENTITY = TokenIdentity(ISSUER, JWKS, TRUST_DOMAIN, (AUDIENCE,))


@dataclass
class Trusting:
    """A placement that is to believe tokens of an issuer."""

    placement: Placement
    attacked: Attacked

    def ask(self, asked: Iterable[tuple[str, tuple[tuple[str, str], ...]]]) -> list[Verdict]:
        """Make requests for these paths with these headers."""
        return self.attacked.verdicts([Http("GET", path, HOST, headers) for path, headers in asked])


@pytest.fixture(scope="module")
def trusting_bench() -> Iterator[Bench]:
    with placements.bench(Trust(tokens=IDENTITY)) as running:
        yield running


@pytest.fixture(scope="module", params=PLACEMENTS, ids=str)
def trusting(request: pytest.FixtureRequest, trusting_bench: Bench) -> Trusting:
    return Trusting(request.param, request.param.at(trusting_bench))


def test_no_token_is_believed_that_should_not_be(trusting: Trusting) -> None:
    trusting.attacked.enforce(only_accounts("web"))
    wrong = {}
    for one, verdict in zip(TRIES, trusting.ask((one.path, one.sent) for one in TRIES), strict=True):
        expected = one.status if trusting.placement.tokens else (401, 403, 431)
        if verdict.status not in expected or (verdict.arrived is not None) is not (verdict.status == 200):
            wrong[one.name] = verdict
    assert not wrong


@pytest.mark.parametrize("one", TRIES, ids=lambda one: one.name)
def test_the_offline_verifier_says_the_same(one: TokenTry) -> None:
    said = verify(one.token, KEYS, EXPECTED, time.time())
    assert isinstance(said, VerifiedToken) is one.believed
    if one.headers is None and one.status == (200,):
        assert one.believed
    if not one.believed:
        assert 200 not in one.status


def test_every_try_has_a_name_of_its_own() -> None:
    assert len({one.name for one in TRIES}) == len(TRIES)


def test_a_namespace_is_its_accounts_and_nothing_else(trusting: Trusting) -> None:
    if not trusting.placement.namespaces:
        return  # policies there name accounts one by one: there is nothing to try
    names = {
        "web": 200,
        "other": 200,
        "X_y.z": 200,
        "x" * (2048 - len(ACCOUNTS)): 200,
        "x" * (2049 - len(ACCOUNTS)): 403,
    }
    names |= dict.fromkeys(("*", "..", ".", "", "x/y", "x?y", "x~", "%78", "x,y", "é"), 403)
    trusting.attacked.enforce(only_accounts("a/*"))
    tokens = [token(claims(sub=ACCOUNTS + name)) for name in names]
    asked = [("/items", (("authorization", f"Bearer {one}"),)) for one in tokens]
    [somebody, *verdicts] = trusting.ask([("/items", ()), *asked])
    if not trusting.placement.tokens:
        names = dict.fromkeys(names, somebody.status)
    assert {name: one.status for name, one in zip(names, verdicts, strict=True)} == names
