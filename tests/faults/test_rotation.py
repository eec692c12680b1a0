"""Certificates and roots are rotated while calls continue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from cryptography import x509

from eastgate.control.events import Noted
from eastgate.control.identity import EmbeddedCa, Lifetimes
from eastgate.local.machine.connection import HttpRequest
from tests.faults.certificates import Forge, served_certificate, tls_context
from tests.faults.hammering import hammering
from tests.faults.meshes import SERVER, Running, running, until
from tests.faults.worlds import DOMAIN, HTTP, RAW, allow, sa, world
from tests.local.machine.calling import call
from tests.patience import PATIENCE

_BASE = [*world(HTTP, RAW), allow("all", "alice")]
_SHORT = Lifetimes(svid=timedelta(seconds=20), backdate=timedelta(seconds=1))


async def test_short_lived_certificates_are_replaced_well_before_they_expire() -> None:
    async with running(*_BASE, lifetimes=_SHORT) as mesh, await mesh.open("alice", RAW) as connection:
        shown: dict[int, x509.Certificate] = {}

        async def look() -> int:
            tls = await mesh.mesh.certificates.context(sa("alice"))
            certificate = await served_certificate(mesh.target(), tls)
            shown[certificate.serial_number] = certificate
            return len(shown)

        async def ping() -> int:
            await connection.send(b"ping")
            return len((await connection.raw(PATIENCE, enough=4)).body)

        await look()
        [first] = shown.values()
        calls = {"look": look, "ping": ping, "get": lambda: mesh.get("alice", "/")}
        async with hammering(calls) as answers:
            while datetime.now(UTC) < first.not_valid_after_utc + timedelta(seconds=0.5):
                await answers.more("get", 5)
        assert answers.only("get", 200)
        assert answers.only("ping", 4), "the connection outlives the certificates that it was made with"
        assert len(shown) >= 2
        for old, new in pairwise(shown.values()):
            issued = new.not_valid_before_utc + _SHORT.backdate
            assert issued < old.not_valid_after_utc, "that there is time to try again is the point"
        assert connection.closed_at is None


async def test_a_certificate_that_has_expired_is_refused() -> None:
    forge = Forge.of()
    async with running(*_BASE, source=forge.authority) as mesh:
        for expired, status in ((False, 200), (True, 0)):
            tls = tls_context(forge.authority.bundles, forge.forged(sa("alice"), expired=expired))
            called = await call(mesh.target(), tls=tls, request=HttpRequest())
            assert called.status == status
        await until(lambda: any("has_expired" in (one.detail or "") for one in mesh.seen()))


async def test_a_root_is_replaced_without_a_failed_call_and_then_the_old_one_counts_no_more() -> None:
    authority = EmbeddedCa(DOMAIN)
    async with running(*_BASE, source=authority) as mesh:
        old_root = authority.bundles.of_domain(DOMAIN)[0]
        old = await mesh.mesh.certificates.context(sa("alice"))

        async def with_old() -> int:
            return (await call(mesh.target(), tls=old, request=HttpRequest())).status

        async with hammering({"alice": lambda: mesh.get("alice", "/"), "bob": lambda: mesh.get("bob", "/")}) as answers:
            await answers.more("alice")
            authority.prepare_root()
            await mesh.mesh.server.wait_settled(SERVER)
            # A caller that does not have the new root yet continues with the old one.
            assert await with_old() == 200
            await _activate(mesh, authority, None)
            await answers.more("alice")
            assert old_root in authority.bundles.of_domain(DOMAIN)
        assert answers.only("alice", 200)
        assert answers.only("bob", 0)
        tls = tls_context(authority.bundles, Forge.of().forged(sa("alice")))
        chain = await served_certificate(mesh.target(), await mesh.mesh.certificates.context(sa("alice")))
        assert chain.issuer != old_root.subject
        assert (await call(mesh.target(), tls=tls, request=HttpRequest())).status == 0
        # The next rotation has no overlap: certificates of earlier roots are invalid as soon as the roots are dropped.
        authority.prepare_root()
        await mesh.mesh.server.wait_settled(SERVER)
        second = await mesh.mesh.certificates.context(sa("alice"))
        assert (await call(mesh.target(), tls=second, request=HttpRequest())).status == 200
        await _activate(mesh, authority, timedelta())
        authority.drop_retired()
        await mesh.mesh.server.wait_settled(SERVER)
        assert (await call(mesh.target(), tls=second, request=HttpRequest())).status == 0
        assert await mesh.get("alice", "/") == 200


async def _activate(mesh: Running, authority: EmbeddedCa, overlap: timedelta | None) -> None:
    def renewed() -> int:
        return sum("was renewed" in one.message for one in mesh.events_of(Noted))

    before = renewed()
    authority.activate_root(overlap)
    await until(lambda: renewed() > before)
    await mesh.mesh.server.wait_settled(SERVER)
