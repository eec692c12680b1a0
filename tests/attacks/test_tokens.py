"""Tokens, tried on a real proxy and on the offline verifier: both refuse what the other refuses."""

from __future__ import annotations

import asyncio
import json
import os
import time

import pytest

from eastgate.mesh.local.calling import Called, HttpRequest, Target, call
from eastgate.mesh.mesh import LocalMesh, MeshOptions
from eastgate.tokens import Verified, verify
from eastgate.xds.tokens import TokenIdentity
from tests.attacks.tokens import AUDIENCE, DOMAIN, EXPECTED, ISSUER, JWKS, KEYS, TokenTry, token_tries
from tests.mesh.test_knowing_callers import read

TRIES = list(token_tries())
IDENTITY = TokenIdentity(ISSUER, JWKS, DOMAIN, (AUDIENCE,))


def test_a_proxy_believes_no_token_that_it_should_not() -> None:
    answers = asyncio.run(_asked(TRIES))
    wrong = {
        one.name: called.status for one, called in zip(TRIES, answers, strict=True) if called.status not in one.status
    }
    assert not wrong
    reached = {
        one.name: json.loads(called.body) for one, called in zip(TRIES, answers, strict=True) if called.status == 200
    }
    assert set(reached) == {one.name for one in TRIES if one.status == (200,)}


async def _asked(tries: list[TokenTry]) -> list[Called]:
    async with LocalMesh(read, options=MeshOptions(name=f"t{os.getpid()}-tokens", tokens=IDENTITY)) as mesh:
        site = mesh.sites["shop/cart"]
        target = Target(site.address, site.ports[8080])
        return [await call(target, request=HttpRequest("GET", one.path, one.sent), timeout=30) for one in tries]


@pytest.mark.parametrize("one", TRIES, ids=lambda one: one.name)
def test_the_offline_verifier_says_the_same(one: TokenTry) -> None:
    said = verify(one.token, KEYS, EXPECTED, time.time())
    assert isinstance(said, Verified) is one.believed
    if one.headers is None and one.status == (200,):
        assert one.believed
    if not one.believed:
        assert 200 not in one.status


def test_every_try_has_a_name_of_its_own() -> None:
    assert len({one.name for one in TRIES}) == len(TRIES)
