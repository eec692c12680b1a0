"""The certificates of the embedded CA, and their limits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.control.identity import (
    BadIdentityError,
    BundlesChanged,
    EmbeddedCa,
    IdentityChange,
    Lifetimes,
    PeerError,
    Svid,
    SvidsRenewed,
    verify_peer,
)
from eastgate.control.identity.certificates import Period, Signer, new_key, new_leaf
from eastgate.settings import Settings

ME = "spiffe://cluster.local/ns/shop/sa/web"
AUTHORITY = EmbeddedCa("cluster.local")


class Hands:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time


def chain_of(svid: Svid) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(svid.chain.encode())


def verified(svid: Svid, authority: EmbeddedCa, at: datetime | None = None) -> str:
    first, *rest = (one.public_bytes(Encoding.DER) for one in chain_of(svid))
    return verify_peer(first, authority.bundles, svid.identity, intermediates=rest, at=at)


def test_a_leaf_is_an_x509_svid() -> None:
    name = Settings().mesh_name("shop", "web")
    certificate, intermediate = chain_of(AUTHORITY.issue(ME, [name]))
    extensions = certificate.extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [ME]
    assert names.get_values_for_type(x509.DNSName) == [name]
    basic = extensions.get_extension_for_class(x509.BasicConstraints)
    assert (basic.critical, basic.value.ca) == (True, False)
    usage = extensions.get_extension_for_class(x509.KeyUsage)
    assert (usage.critical, usage.value.digital_signature) == (True, True)
    assert not usage.value.key_cert_sign
    assert not usage.value.crl_sign
    purposes = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(purposes) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    signer = intermediate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == signer


def test_an_authority_names_its_trust_domain_and_how_deep_it_may_sign() -> None:
    root, intermediate = AUTHORITY.bundles.of_domain("cluster.local")[0], chain_of(AUTHORITY.issue(ME))[1]
    for certificate, depth in ((root, 1), (intermediate, 0)):
        basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        assert basic.critical
        assert (basic.value.ca, basic.value.path_length) == (True, depth)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://cluster.local"]
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        assert usage.key_cert_sign
        assert not usage.digital_signature
    intermediate.verify_directly_issued_by(root)


def test_the_key_is_that_of_the_leaf_and_a_new_one_each_time() -> None:
    first, second = AUTHORITY.issue(ME), AUTHORITY.issue(ME)
    for svid in (first, second):
        key = load_pem_private_key(svid.private_key.encode(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.public_key() == chain_of(svid)[0].public_key()
    assert first.private_key != second.private_key
    assert chain_of(first)[0].serial_number != chain_of(second)[0].serial_number


SEGMENT = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@settings(max_examples=25)
@given(namespace=SEGMENT, account=SEGMENT)
def test_every_account_gets_a_chain_that_verifies(namespace: str, account: str) -> None:
    identity = f"spiffe://cluster.local/ns/{namespace}/sa/{account}"
    assert verified(AUTHORITY.issue(identity), AUTHORITY) == identity


@pytest.mark.parametrize(
    ("identity", "says"),
    [
        ("spiffe://other.example/ns/shop/sa/web", "not in the trust domain 'cluster.local'"),
        ("spiffe://cluster.local.evil/ns/shop/sa/web", "not in the trust domain"),
        ("spiffe://cluster.local", "a path is missing"),
        ("spiffe://cluster.local/ns/../sa/web", "path segment"),
        ("https://cluster.local/ns/shop/sa/web", "does not start with spiffe://"),
    ],
)
def test_it_vouches_for_nothing_else(identity: str, says: str) -> None:
    with pytest.raises(BadIdentityError, match=says):
        AUTHORITY.issue(identity)


def test_a_leaf_cannot_act_as_an_authority() -> None:
    mine = AUTHORITY.issue(ME)
    certificate, intermediate = chain_of(mine)
    key = load_pem_private_key(mine.private_key.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    period = Period(now - timedelta(minutes=1), now + timedelta(minutes=1))
    victim = "spiffe://cluster.local/ns/bank/sa/vault"
    forged = new_leaf(victim, (), new_key().public_key(), Signer(certificate, key), period)
    between = [one.public_bytes(Encoding.DER) for one in (certificate, intermediate)]
    with pytest.raises(PeerError, match="not proven"):
        verify_peer(forged.public_bytes(Encoding.DER), AUTHORITY.bundles, victim, intermediates=between)
    store = Store(list(AUTHORITY.bundles.of_domain("cluster.local")))
    with pytest.raises(VerificationError):
        PolicyBuilder().store(store).build_client_verifier().verify(forged, [certificate, intermediate])


def test_an_svid_ends_after_an_hour_and_starts_a_little_early() -> None:
    hands = Hands()
    svid = EmbeddedCa("cluster.local", clock=hands).issue(ME)
    assert svid.not_before == hands.time - timedelta(seconds=30)
    assert svid.not_after == hands.time + timedelta(hours=1)
    assert not svid.expired(svid.not_after - timedelta(seconds=1))
    assert svid.expired(svid.not_after)
    half = timedelta(minutes=30)
    assert half - timedelta(minutes=3) <= svid.renew_at - hands.time <= half + timedelta(minutes=3)


def test_an_expired_svid_proves_nothing() -> None:
    hands = Hands()
    authority = EmbeddedCa("cluster.local", clock=hands)
    svid = authority.issue(ME)
    assert verified(svid, authority, at=hands.time) == ME
    with pytest.raises(PeerError, match="not proven"):
        verified(svid, authority, at=hands.time + timedelta(hours=1, seconds=1))


def test_an_intermediate_is_replaced_before_it_would_cut_an_svid_short() -> None:
    hands = Hands()
    authority = EmbeddedCa("cluster.local", clock=hands)
    before = chain_of(authority.issue(ME))[1]
    hands.time += timedelta(days=7) - timedelta(minutes=30)
    svid = authority.issue(ME)
    assert chain_of(svid)[1] != before
    assert svid.not_after == hands.time + timedelta(hours=1)
    assert verified(svid, authority, at=hands.time) == ME


def test_the_error_for_an_expiring_root_names_the_next_step() -> None:
    hands = Hands()
    authority = EmbeddedCa("cluster.local", clock=hands)
    hands.time += timedelta(days=3650) - timedelta(minutes=1)
    with pytest.raises(BadIdentityError, match="replace it with prepare_root and activate_root"):
        authority.issue(ME)
    authority.prepare_root()
    authority.activate_root()
    assert verified(authority.issue(ME), authority, at=hands.time) == ME


def test_no_peer_is_refused_during_the_replacement_of_a_root() -> None:
    hands = Hands()
    authority = EmbeddedCa("cluster.local", clock=hands)
    told: list[IdentityChange] = []
    authority.watch(told.append)
    old = authority.issue(ME)
    (first,) = authority.bundles.of_domain("cluster.local")

    authority.prepare_root()
    early = authority.bundles
    assert told == [BundlesChanged(early)]
    assert len(early.of_domain("cluster.local")) == 2
    chain_of(authority.issue(ME))[1].verify_directly_issued_by(first)

    authority.activate_root()
    assert SvidsRenewed(None) in told
    new = authority.issue(ME)
    leaf_, intermediate = (one.public_bytes(Encoding.DER) for one in chain_of(new))
    assert verify_peer(leaf_, early, ME, intermediates=[intermediate], at=hands.time) == ME
    assert verified(old, authority, at=hands.time) == ME

    hands.time += timedelta(minutes=59)
    authority.drop_retired()
    assert verified(old, authority, at=hands.time) == ME
    hands.time += timedelta(minutes=2)
    authority.drop_retired()
    assert first not in authority.bundles.of_domain("cluster.local")
    assert told[-1] == BundlesChanged(authority.bundles)


def test_an_undistributed_root_does_not_sign() -> None:
    with pytest.raises(BadIdentityError, match="call prepare_root"):
        EmbeddedCa("cluster.local").activate_root()


def test_rolling_the_intermediate_keeps_the_bundle() -> None:
    authority = EmbeddedCa("cluster.local")
    told: list[IdentityChange] = []
    stop = authority.watch(told.append)
    before, bundles = chain_of(authority.issue(ME))[1], authority.bundles
    authority.roll_intermediate()
    svid = asyncio.run(authority.svid(ME))
    assert chain_of(svid)[1].fingerprint(hashes.SHA256()) != before.fingerprint(hashes.SHA256())
    assert authority.bundles == bundles
    assert told == [SvidsRenewed(None)]
    stop()
    authority.roll_intermediate()
    assert len(told) == 1


def test_a_watcher_that_fails_keeps_no_other_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    authority, told = EmbeddedCa("cluster.local"), list[IdentityChange]()

    def broken(change: IdentityChange) -> None:
        raise RuntimeError("broken")

    authority.watch(broken)
    authority.watch(told.append)
    authority.roll_intermediate()
    assert len(told) == 1
    assert "a watcher of identities failed" in caplog.text


@pytest.mark.parametrize(
    "lifetimes",
    [
        {"svid": timedelta()},
        {"svid": timedelta(days=8)},
        {"intermediate": timedelta(days=4000)},
        {"backdate": timedelta(seconds=-1)},
    ],
)
def test_lifetimes_that_make_no_sense_are_refused(lifetimes: dict[str, timedelta]) -> None:
    with pytest.raises(ValueError, match="must"):
        Lifetimes(**lifetimes)
