"""Tokens at every placement and in the offline verifier. Both refuse the same tokens."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from eastgate.envoy.config.tokens import TokenIdentity
from eastgate.reading.jwt import VerifiedToken, verify
from tests.attacks import placements
from tests.attacks.auth_policies import auth_policy, passing_on, request_authentication
from tests.attacks.placements import HOST, PLACEMENTS, Attacked, Placement, Trust, Verdict
from tests.attacks.policies import only_accounts
from tests.attacks.tokens import ACCOUNTS, AUDIENCE, EXPECTED, ISSUER, JWKS, KEYS, TokenTry, claims, token_tries
from tests.differential.asking import TRUST_DOMAIN, Http
from tests.differential.bench import Bench
from tests.differential.world import Manifest
from tests.reading.jwt.mint import token

TRIES = list(token_tries())
IDENTITY = TokenIdentity(ISSUER, JWKS, TRUST_DOMAIN, (AUDIENCE,))
_IDENTITY: Manifest = {"name": "tokens", "oidc": {"endpoint": ISSUER, "audiences": [AUDIENCE]}}


@dataclass
class Trusting:
    """A placement that accepts tokens of an issuer."""

    placement: Placement
    attacked: Attacked

    def ask(self, asked: Iterable[tuple[str, tuple[tuple[str, str], ...]]]) -> list[Verdict]:
        """Send requests for these paths with these headers."""
        return self.attacked.verdicts([Http("GET", path, HOST, headers) for path, headers in asked])


@pytest.fixture(scope="module")
def trusting_bench() -> Iterator[Bench]:
    with placements.bench(Trust(tokens=IDENTITY)) as running:
        yield running


@pytest.fixture(scope="module", params=PLACEMENTS, ids=str)
def trusting(request: pytest.FixtureRequest, trusting_bench: Bench) -> Trusting:
    return Trusting(request.param, request.param.at(trusting_bench))


def _sent(tries: Iterable[TokenTry]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(one.path, one.sent) for one in tries]


def test_no_token_is_believed_that_should_not_be(trusting: Trusting) -> None:
    trusting.attacked.enforce(only_accounts("web"))
    wrong = {}
    for one, verdict in zip(TRIES, trusting.ask(_sent(TRIES)), strict=True):
        expected = one.status if trusting.placement.tokens else (401, 403, 431)
        if verdict.status not in expected or (verdict.arrived is not None) is not (verdict.status == 200):
            wrong[one.name] = verdict
    assert not wrong


@pytest.mark.parametrize("one", TRIES, ids=lambda one: one.name)
def test_the_offline_verifier_says_the_same(one: TokenTry) -> None:
    verified = verify(one.token, KEYS, EXPECTED, time.time())
    assert isinstance(verified, VerifiedToken) is one.believed
    if one.headers is None and one.status == (200,):
        assert one.believed
    if not one.believed:
        assert 200 not in one.status


def test_a_token_that_is_believed_does_not_arrive(trusting: Trusting) -> None:
    """A gateway removes the token even if a certificate is the identity: the next gateway would accept the token."""
    trusting.attacked.enforce(only_accounts("web", "x", "y"))
    shown = {one.name: verdict.arrived for one, verdict in zip(TRIES, trusting.ask(_sent(TRIES)), strict=True)}
    believed = [one for one in TRIES if one.status == (200,)]
    kept = not trusting.placement.is_gateway and not trusting.placement.tokens  # the certificate is the identity
    for one in believed:
        arrived = shown[one.name]
        assert arrived is not None, one.name
        sent = [value for name, value in arrived.headers if name.lower() == "authorization"]
        assert sent == ([f"Bearer {one.token}"] if kept else []), one.name
        assert not [name for name, _ in arrived.headers if name.lower().startswith("x-eastgate-auth")]
    arrivals = [(one, shown[one.name]) for one in TRIES if one.headers is not None]
    if not trusting.placement.tokens:  # the proxy must not remove a token that is not of the mesh
        own = ("x-eastgate-",) if trusting.placement.is_gateway else ()
        for one, arrived in arrivals:
            sent_by_client = {header for header in one.sent if not header[0].startswith(own)}
            assert arrived is None or sent_by_client <= set(arrived.headers), one.name


_PASSING: dict[str, tuple[list[Manifest], bool]] = {
    "no policy": ([], False),
    "a RequestAuthentication": ([request_authentication()], False),
    "a RequestAuthentication that forwards": ([request_authentication(forwardOriginalToken=True)], True),
    "an AuthPolicy": ([auth_policy("Gateway:gw", {"*": {"identity": [_IDENTITY]}})], False),
    "an AuthPolicy that passes it on": (
        [auth_policy("Gateway:gw", {"*": {"identity": [_IDENTITY], "response": [passing_on("authorization")]}})],
        True,
    ),
}


@pytest.mark.parametrize("policies", _PASSING)
def test_a_token_leaves_a_gateway_only_where_a_policy_passes_it_on(trusting: Trusting, policies: str) -> None:
    if not trusting.placement.is_gateway:
        return
    enforced, passed_on = _PASSING[policies]
    trusting.attacked.enforce(enforced)
    bearer = ("authorization", f"Bearer {token(claims())}")
    [verdict] = trusting.ask([("/items", (bearer,))])
    assert verdict.arrived is not None
    assert (bearer in verdict.arrived.headers) is passed_on


def test_every_try_has_a_name_of_its_own() -> None:
    assert len({one.name for one in TRIES}) == len(TRIES)


def test_a_namespace_is_its_accounts_and_nothing_else(trusting: Trusting) -> None:
    if not trusting.placement.namespaces:
        return  # policies there name single accounts: there is no try
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
