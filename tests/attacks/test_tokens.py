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
from tests.attacks.tokens import AUDIENCE, DOMAIN, EXPECTED, ISSUER, JWKS, KEYS, TokenTry, claims, token_tries
from tests.mesh.test_knowing_callers import MANIFESTS, read
from tests.mesh.test_the_pod_itself import reading
from tests.tokens.mint import token

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


_SHOP = f"spiffe://{DOMAIN}/ns/shop/sa/"


def test_a_namespace_is_its_accounts_and_nothing_else() -> None:
    names = {"web": 200, "other": 200, "X_y.z": 200, "x" * (2048 - len(_SHOP)): 200, "x" * (2049 - len(_SHOP)): 403}
    names |= dict.fromkeys(("*", "..", ".", "", "x/y", "x?y", "x~", "%78", "x,y", "é"), 403)

    async def run() -> dict[str, int]:
        manifests = MANIFESTS.replace("serviceAccounts: [web]", "serviceAccounts: [shop/*]")
        options = MeshOptions(name=f"t{os.getpid()}-all-of-a-namespace", tokens=IDENTITY)
        async with LocalMesh(reading(manifests), options=options) as mesh:
            site = mesh.sites["shop/cart"]
            target = Target(site.address, site.ports[8080])
            found = {}
            for name in names:
                sent = (("authorization", f"Bearer {token(claims(sub=_SHOP + name))}"),)
                found[name] = (await call(target, request=HttpRequest("GET", "/items", sent), timeout=30)).status
            return found

    assert asyncio.run(run()) == names
