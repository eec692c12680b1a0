"""Real handshakes between SVIDs: accepted and rejected peers."""

from __future__ import annotations

import os
import ssl
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.control.identity import (
    EmbeddedCa,
    NoMemoryFileError,
    PeerError,
    Svid,
    SvidExpiredError,
    UnknownTrustDomainError,
    client_context,
    server_context,
    verify_peer,
)
from eastgate.control.identity.certificates import Period, key_pem, new_key, new_leaf
from eastgate.control.identity.peers import identity_of
from eastgate.control.identity.svid import utc_now
from tests.control.identity.handshakes import Side, connect

WEB, DB = "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/db"
HERE, THERE = EmbeddedCa("cluster.local"), EmbeddedCa("partner.example")
HERE.federate("partner.example", THERE.bundles.of_domain("partner.example"))
THERE.federate("cluster.local", HERE.bundles.of_domain("cluster.local"))
PARTNER = "spiffe://partner.example/ns/shop/sa/web"


def serving(authority: EmbeddedCa = HERE, identity: str = DB, expected: str | None = None) -> Side:
    return server_context(authority.issue(identity), authority.bundles), authority.bundles, expected


def calling(
    authority: EmbeddedCa = HERE, identity: str = WEB, to: str = "cluster.local", expected: str | None = DB
) -> Side:
    return client_context(authority.issue(identity), authority.bundles, to), authority.bundles, expected


def test_both_ends_learn_the_identity_of_the_other() -> None:
    outcome = connect(serving(), calling())
    assert (outcome.server_saw, outcome.client_saw) == (WEB, DB)


def test_trust_domains_that_federate_can_talk() -> None:
    outcome = connect(serving(), calling(THERE, PARTNER))
    assert (outcome.server_saw, outcome.client_saw) == (PARTNER, DB)


def test_an_authority_with_the_same_name_is_not_the_same_authority() -> None:
    impostor = EmbeddedCa("cluster.local")
    outcome = connect(serving(impostor), calling())
    assert isinstance(outcome.client_saw, ssl.SSLCertVerificationError)
    outcome = connect(serving(), (client_context(impostor.issue(WEB), HERE.bundles), HERE.bundles, DB))
    assert isinstance(outcome.server_saw, ssl.SSLCertVerificationError)
    assert isinstance(outcome.client_saw, OSError)


def test_a_client_without_a_certificate_is_refused() -> None:
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.check_hostname = False
    bare.load_verify_locations(cadata=HERE.bundles.pem("cluster.local"))
    outcome = connect(serving(), (bare, HERE.bundles, DB))
    assert isinstance(outcome.server_saw, ssl.SSLError)
    assert isinstance(outcome.client_saw, OSError)


def test_a_certificate_that_expires_before_it_is_shown_is_refused() -> None:
    brief = EmbeddedCa("brief.example", clock=lambda: utc_now() - timedelta(hours=2))
    server, client = brief.issue("spiffe://brief.example/a/server"), brief.issue("spiffe://brief.example/a/client")
    later = utc_now() + timedelta(hours=1)  # contexts from the time when both were valid
    serving = (server_context(replace(server, not_after=later), brief.bundles), brief.bundles, None)
    calling = (client_context(replace(client, not_after=later), brief.bundles), brief.bundles, None)
    outcome = connect(serving, calling)
    assert isinstance(outcome.client_saw, ssl.SSLCertVerificationError)
    assert "expired" in str(outcome.client_saw)
    for make in (server_context, client_context):
        with pytest.raises(SvidExpiredError, match="expired at"):
            make(client, brief.bundles)


def test_an_unexpected_identity_is_refused_by_either_end() -> None:
    outcome = connect(serving(), calling(expected=WEB))
    assert isinstance(outcome.client_saw, PeerError)
    assert str(outcome.client_saw) == f"the peer is {DB!r}, and not {WEB!r}"
    outcome = connect(serving(expected=DB), calling())
    assert isinstance(outcome.server_saw, PeerError)


def forged_by_the_partner() -> Svid:
    """Return an identity of the OWN trust domain, signed by the CA of the partner."""
    signer, key = THERE._state.intermediate, new_key()
    start = signer.certificate.not_valid_before_utc
    certificate = new_leaf(WEB, (), key.public_key(), signer, Period(start, start + timedelta(hours=1)))
    chain = certificate.public_bytes(Encoding.PEM).decode() + signer.pem
    return replace(THERE.issue(PARTNER), identity=WEB, chain=chain, private_key=key_pem(key))


def test_a_trusted_partner_cannot_sign_own_identities() -> None:
    outcome = connect(serving(), (client_context(forged_by_the_partner(), HERE.bundles), HERE.bundles, DB))
    # TLS alone accepts it: the server trusts the root of the partner, for the partner.
    assert isinstance(outcome.server_saw, PeerError)
    assert "is not proven by the roots of 'cluster.local'" in str(outcome.server_saw)
    assert isinstance(outcome.client_saw, OSError)


def test_a_client_trusts_only_the_trust_domain_that_it_calls() -> None:
    outcome = connect(serving(THERE, PARTNER), calling(to="cluster.local", expected=None))
    assert isinstance(outcome.client_saw, ssl.SSLCertVerificationError)
    outcome = connect(serving(THERE, PARTNER), calling(to="partner.example", expected=PARTNER))
    assert outcome.client_saw == PARTNER
    with pytest.raises(UnknownTrustDomainError, match=r"no root certificates for the trust domain 'nobody\.example'"):
        calling(to="nobody.example")


def test_sessions_are_not_resumed() -> None:
    context, _, _ = serving()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert context.num_tickets == 0


def test_no_file_is_left_behind() -> None:
    before = set(os.listdir("/proc/self/fd"))
    serving()
    assert set(os.listdir("/proc/self/fd")) == before


def test_the_error_without_memory_files_asks_for_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    with pytest.raises(NoMemoryFileError, match="run this on Linux"):
        serving()


def a_leaf(*uris: str) -> bytes:
    state = HERE._state.intermediate
    names: list[x509.GeneralName] = [x509.DNSName("web.example"), *map(x509.UniformResourceIdentifier, uris)]
    start = state.certificate.not_valid_before_utc
    plain = new_leaf(WEB, (), new_key().public_key(), state, Period(start, start + timedelta(hours=1)))
    builder = x509.CertificateBuilder(
        issuer_name=plain.issuer,
        subject_name=plain.subject,
        public_key=plain.public_key(),
        serial_number=plain.serial_number,
        not_valid_before=plain.not_valid_before_utc,
        not_valid_after=plain.not_valid_after_utc,
    )
    for extension in plain.extensions:
        named = isinstance(extension.value, x509.SubjectAlternativeName)
        builder = builder.add_extension(
            x509.SubjectAlternativeName(names) if named else extension.value, extension.critical
        )
    return builder.sign(state.key, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("uris", "says"),
    [
        ((), "has 0 URIs"),
        ((WEB, DB), "has 2 URIs"),
        ((WEB, "https://cluster.local/"), "has 2 URIs"),
        (("https://cluster.local/ns/shop/sa/web",), "not a SPIFFE ID"),
        (("spiffe://cluster.local",), "a path is missing"),
        (("spiffe://unknown.example/ns/shop/sa/web",), "is not trusted here"),
    ],
)
def test_a_peer_has_exactly_one_identity_that_can_be_checked(uris: tuple[str, ...], says: str) -> None:
    between = [HERE._state.intermediate.certificate.public_bytes(Encoding.DER)]
    with pytest.raises(PeerError, match=says):
        verify_peer(a_leaf(*uris), HERE.bundles, intermediates=between)
    assert verify_peer(a_leaf(WEB), HERE.bundles, intermediates=between) == WEB


def test_a_certificate_that_is_not_for_a_workload_is_rejected() -> None:
    root = HERE.bundles.of_domain("cluster.local")[0]
    with pytest.raises(PeerError, match="a path is missing"):
        identity_of(root)
    with pytest.raises(PeerError, match="not a certificate"):
        verify_peer(b"\x30\x00", HERE.bundles)
    with pytest.raises(PeerError, match="not proven"):
        verify_peer(a_leaf(WEB), HERE.bundles)
