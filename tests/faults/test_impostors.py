"""Who has no certificate that counts is nobody, whatever it says about itself."""

from __future__ import annotations

import ssl
import warnings

import pytest

from eastgate.mesh.local.calling import HttpRequest, call
from tests.faults.certificates import Forge, tls_context
from tests.faults.meshes import Running, running
from tests.faults.worlds import HTTP, RAW, allow, deny, sa, world

_PARTNER = "partner.example"
_FRIEND = f"spiffe://{_PARTNER}/ns/shop/sa/friend"
# Everybody with any identity may use the one port, alice and the friend the other.
_BASE = [
    *world(HTTP, RAW),
    allow("named", "alice", identities=[_FRIEND], ports=[HTTP]),
    allow("anybody", "shop/*", ports=[RAW]),
]


async def _status(mesh: Running, tls: ssl.SSLContext | None) -> int:
    return (await call(mesh.target(), tls=tls, request=HttpRequest())).status


async def test_certificates_that_do_not_prove_one_identity_are_refused() -> None:
    forge, stranger = Forge.of(), Forge.of()
    alice, bob = sa("alice"), sa("bob")
    made = {
        "right": (forge.forged(alice), 200),
        "of a caller whom nobody allows": (forge.forged(bob), 0),
        "of another authority of the same name": (stranger.forged(alice), 0),
        "signed by itself": (forge.forged(alice, self_signed=True), 0),
        "with two SPIFFE IDs, the right one first": (forge.forged(alice, bob), 0),
        "with two SPIFFE IDs, the right one last": (forge.forged(bob, alice), 0),
        "with the right one twice": (forge.forged(alice, alice), 0),
        "with another URI beside it": (forge.forged(alice, "https://cluster.local/ns/shop/sa/alice"), 0),
        "without a name": (forge.forged(), 0),
        "with a DNS name in place of an ID": (forge.forged(dns=["alice.shop"]), 0),
        "with a URI that is no SPIFFE ID": (forge.forged("https://cluster.local/ns/shop/sa/alice"), 0),
        "with a path that climbs": (forge.forged("spiffe://cluster.local/ns/shop/sa/x/../alice"), 0),
        "with a query": (forge.forged(f"{alice}?x"), 0),
        "with a comma": (forge.forged(f"{bob},{alice}"), 0),
        "in capital letters": (forge.forged(alice.replace("alice", "ALICE")), 0),
        "of a user in the domain": (forge.forged("spiffe://alice@cluster.local/ns/shop/sa/alice"), 0),
        "with a port in the domain": (forge.forged("spiffe://cluster.local:443/ns/shop/sa/alice"), 0),
        "with the word for nobody": (forge.forged("none"), 0),
    }
    async with running(*_BASE, source=forge.authority) as mesh:
        bundles = forge.authority.bundles
        found = {name: await _status(mesh, tls_context(bundles, one)) for name, (one, _) in made.items()}
        assert found == {name: status for name, (_, status) in made.items()}
        assert await _status(mesh, tls_context(bundles)) == 0  # TLS without a certificate
        assert await _status(mesh, None) == 0  # no TLS
        # What is refused is no caller at all: a port that is open to all of the namespace is not open to it.
        for name, (one, status) in made.items():
            if status == 0 and name != "of a caller whom nobody allows" and "capital" not in name:
                called = await call(mesh.target(RAW), tls=tls_context(bundles, one), request=b"x", enough=1)
                assert not called.body, name


async def test_a_federated_authority_speaks_for_its_own_domain_only() -> None:
    ours, theirs = Forge.of(), Forge.of(_PARTNER)
    ours.authority.federate(_PARTNER, theirs.authority.bundles.of_domain(_PARTNER))
    async with running(*_BASE, source=ours.authority) as mesh:
        bundles = ours.authority.bundles
        assert await _status(mesh, tls_context(bundles, theirs.forged(_FRIEND))) == 200
        assert await _status(mesh, tls_context(bundles, theirs.forged(sa("alice")))) == 0
        assert await _status(mesh, tls_context(bundles, ours.forged(_FRIEND))) == 0
        assert await _status(mesh, tls_context(bundles, ours.forged(sa("alice")))) == 200


async def test_a_deny_by_name_cannot_be_avoided_by_another_certificate() -> None:
    """Who is denied as himself must not come in as nobody, where nobody may come in."""
    forge = Forge.of()
    async with running(*world(), deny("not-bob", "bob"), allow("all"), source=forge.authority) as mesh:
        bundles = forge.authority.bundles
        assert await _status(mesh, tls_context(bundles, forge.forged(sa("alice")))) == 200
        assert await _status(mesh, tls_context(bundles, forge.forged(sa("bob")))) == 0
        for one in (forge.forged(), forge.forged(sa("bob"), sa("alice")), forge.forged(sa("bob"), self_signed=True)):
            assert await _status(mesh, tls_context(bundles, one)) == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_an_old_version_of_tls_is_refused(version: ssl.TLSVersion) -> None:
    forge = Forge.of()
    async with running(*_BASE, source=forge.authority) as mesh:
        for chosen, status in ((version, 0), (ssl.TLSVersion.TLSv1_2, 200), (ssl.TLSVersion.TLSv1_3, 200)):
            tls = tls_context(forge.authority.bundles, forge.forged(sa("alice")))
            tls.set_ciphers("ALL:@SECLEVEL=0")  # or this client itself would refuse
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                tls.minimum_version = tls.maximum_version = chosen
            called = await call(mesh.target(), tls=tls, request=HttpRequest())
            assert called.status == status
            if not status:
                assert "alert protocol version" in (called.error or "")
