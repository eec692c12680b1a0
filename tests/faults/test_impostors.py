"""A caller without a valid certificate is anonymous, whatever names it claims."""

from __future__ import annotations

import ssl
import warnings

import pytest

from eastgate.local.machine.connection import HttpRequest
from tests.faults.certificates import Forge, tls_context
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, RAW, allow, deny, sa, world
from tests.local.machine.calling import call

_PARTNER = "partner.example"
_FRIEND = f"spiffe://{_PARTNER}/ns/shop/sa/friend"
_BASE = [*world(), allow("named", "alice", identities=[_FRIEND])]


async def _status(mesh: Running, tls: ssl.SSLContext | None) -> int:
    return (await call(mesh.target(), tls=tls, request=HttpRequest())).status


_ALICE, _BOB = sa("alice"), sa("bob")
_REFUSED: dict[str, tuple[str, ...]] = {
    "without a name": (),
    "with a URI that is not a SPIFFE ID": ("https://cluster.local/ns/shop/sa/alice",),
    "of a user in the domain": ("spiffe://alice@cluster.local/ns/shop/sa/alice",),
    "with a port in the domain": ("spiffe://cluster.local:443/ns/shop/sa/alice",),
    "with a domain and nothing else": ("spiffe://cluster.local",),
    "with the word for anonymous callers": ("none",),
    "with two names, the first not an ID": ("https://cluster.local", _ALICE),
}
_NOT_ONE_ID: dict[str, tuple[str, ...]] = {
    "with two SPIFFE IDs, the right one first": (_ALICE, _BOB),
    "with two SPIFFE IDs, the right one last": (_BOB, _ALICE),
    "with the right one twice": (_ALICE, _ALICE),
    "with another URI beside it": (_ALICE, "https://cluster.local/ns/shop/sa/alice"),
    "with a query": (f"{_ALICE}?x",),
    "with a fragment": (f"{_ALICE}#x",),
    "with a comma": (f"{_BOB},{_ALICE}",),
}


async def test_certificates_of_others_are_refused() -> None:
    forge, stranger = Forge.of(), Forge.of()
    made = {
        "right": (forge.forged(_ALICE), 200),
        "of another authority of the same name": (stranger.forged(_ALICE), 0),
        "signed by itself": (forge.forged(_ALICE, self_signed=True), 0),
        "of a caller that no policy allows": (forge.forged(_BOB), 0),
        "in capital letters": (forge.forged(_ALICE.replace("alice", "ALICE")), 0),
        "with a path that climbs": (forge.forged("spiffe://cluster.local/ns/shop/sa/x/../alice"), 0),
        "with a DNS name in place of an ID": (forge.forged(dns=["alice.shop"]), 0),
        "none": (None, 0),
    }
    async with running(*_BASE, source=forge.authority) as mesh:
        bundles = forge.authority.bundles
        found = {name: await _status(mesh, tls_context(bundles, one)) for name, (one, _) in made.items()}
        assert found == {name: status for name, (_, status) in made.items()}
        assert await _status(mesh, None) == 0  # no TLS
        without = await call(mesh.target(), tls=tls_context(bundles), request=HttpRequest())
        assert "certificate required" in (without.error or "")


@pytest.mark.parametrize("uris", [pytest.param(uris, id=name) for name, uris in _REFUSED.items()])
async def test_a_certificate_without_a_name_of_ours_is_refused(uris: tuple[str, ...]) -> None:
    await _is_denied_everywhere(uris)


@pytest.mark.parametrize("uris", [pytest.param(uris, id=name) for name, uris in _NOT_ONE_ID.items()])
async def test_a_certificate_with_anything_else_than_one_spiffe_id_is_refused(uris: tuple[str, ...]) -> None:
    await _is_denied_everywhere(uris)


async def _is_denied_everywhere(uris: tuple[str, ...]) -> None:
    """Check that the caller is not accepted with its claimed identity, as an unknown caller, or as anonymous."""
    forge = Forge.of()
    open_but_for_bob = [allow("all", ports=[RAW]), deny("not-bob", "bob", ports=[RAW])]
    async with running(*world(HTTP, RAW), allow("named", "alice"), *open_but_for_bob, source=forge.authority) as mesh:
        tls = tls_context(forge.authority.bundles, forge.forged(*uris))
        assert await _status(mesh, tls) == 0
        assert not (await call(mesh.target(RAW), tls=tls, request=b"x", enough=1)).body


async def test_a_federated_authority_speaks_for_its_own_domain_only() -> None:
    ours, theirs = Forge.of(), Forge.of(_PARTNER)
    ours.authority.federate(_PARTNER, theirs.authority.bundles.of_domain(_PARTNER))
    async with running(*_BASE, source=ours.authority) as mesh:
        bundles = ours.authority.bundles
        assert await _status(mesh, tls_context(bundles, theirs.forged(_FRIEND))) == 200
        assert await _status(mesh, tls_context(bundles, theirs.forged(sa("alice")))) == 0
        assert await _status(mesh, tls_context(bundles, ours.forged(_FRIEND))) == 0
        assert await _status(mesh, tls_context(bundles, ours.forged(sa("alice")))) == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_an_old_version_of_tls_is_refused(version: ssl.TLSVersion) -> None:
    forge = Forge.of()
    async with running(*_BASE, source=forge.authority) as mesh:
        for chosen, status in ((version, 0), (ssl.TLSVersion.TLSv1_2, 200), (ssl.TLSVersion.TLSv1_3, 200)):
            tls = tls_context(forge.authority.bundles, forge.forged(sa("alice")))
            tls.set_ciphers("ALL:@SECLEVEL=0")  # otherwise this client would refuse
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                tls.minimum_version = tls.maximum_version = chosen
            called = await call(mesh.target(), tls=tls, request=HttpRequest())
            assert called.status == status
            if not status:
                assert "alert protocol version" in (called.error or "")
