"""Bundles: the roots of each trust domain, from PEM and from SPIFFE's JSON. Other certificates are refused."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.control.identity import (
    BadBundleError,
    BundlesChanged,
    EmbeddedCa,
    IdentityChange,
    TrustBundles,
    UnknownTrustDomainError,
    read_bundle,
    roots_of_jwks,
    roots_of_pem,
)

HERE, THERE = EmbeddedCa("cluster.local"), EmbeddedCa("partner.example")
ROOTS = THERE.bundles.of_domain("partner.example")
X5C = base64.b64encode(ROOTS[0].public_bytes(Encoding.DER)).decode()


def bundle(*keys: object) -> bytes:
    return json.dumps({"keys": keys, "spiffe_sequence": 1, "spiffe_refresh_hint": 300}).encode()


GOOD = {"use": "x509-svid", "kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "x5c": [X5C]}


def test_pem_comes_back_as_it_was() -> None:
    assert roots_of_pem(THERE.bundles.pem("partner.example")) == ROOTS


def test_a_spiffe_bundle_gives_its_x509_authorities_only() -> None:
    assert roots_of_jwks(bundle({"use": "jwt-svid", "kty": "EC", "kid": "a"}, GOOD, {"use": "other"})) == ROOTS


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (bundle(), "no key whose use is 'x509-svid'"),
        (bundle({"use": "jwt-svid", "kty": "EC"}), "no key whose use"),
        (bundle({"use": "x509-svid"}), r"keys\[0\]\.x5c must hold exactly one"),
        (bundle({**GOOD, "x5c": [X5C, X5C]}), "exactly one"),
        (bundle({**GOOD, "x5c": "AAAA"}), "exactly one|in base64"),
        (bundle({**GOOD, "x5c": ["AAAA"]}), "not a certificate in base64"),
        (bundle({**GOOD, "x5c": ["*"]}), "not a certificate in base64"),
        (b"[]", "is not a JSON object"),
        (b'{"keys": {}}', "no list of keys"),
        (b'{"keys": [], "keys": []}', "the bundle"),
    ],
)
def test_the_error_for_a_malformed_spiffe_bundle_names_the_place(content: bytes, says: str) -> None:
    with pytest.raises(BadBundleError, match=says):
        roots_of_jwks(content)


def test_a_file_may_hold_either_form(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_text(THERE.bundles.pem("partner.example"))
    (tmp_path / "b.json").write_bytes(b"\n " + bundle(GOOD))
    assert read_bundle(tmp_path / "a.pem") == read_bundle(tmp_path / "b.json") == ROOTS
    (tmp_path / "c.pem").write_text("nothing")
    with pytest.raises(BadBundleError, match=r"c\.pem.*not a list of PEM certificates"):
        read_bundle(tmp_path / "c.pem")
    with pytest.raises(BadBundleError, match=r"none\.pem' cannot be read: No such file"):
        read_bundle(tmp_path / "none.pem")


def test_a_private_key_in_a_bundle_is_no_bundle() -> None:
    svid = THERE.issue("spiffe://partner.example/a/b")
    with pytest.raises(BadBundleError, match="contains a private key"):
        roots_of_pem(svid.chain + svid.private_key)


def test_a_leaf_is_no_root() -> None:
    svid = THERE.issue("spiffe://partner.example/a/b")
    leaf = x509.load_pem_x509_certificate(svid.chain.encode())
    with pytest.raises(BadBundleError, match="is not a CA"):
        HERE.bundles.federated("partner.example", [leaf])


def test_the_own_trust_domain_is_always_there_and_only_its_authority_changes_it() -> None:
    with pytest.raises(BadBundleError, match="has no certificate"):
        TrustBundles.of("cluster.local", [])
    with pytest.raises(BadBundleError, match="no root certificate"):
        TrustBundles("cluster.local", {})
    with pytest.raises(BadBundleError, match="is the own trust domain"):
        HERE.bundles.federated("cluster.local", ROOTS)
    with pytest.raises(BadBundleError, match="lower-case"):
        HERE.bundles.federated("Partner", ROOTS)


def test_federation_is_with_one_trust_domain() -> None:
    authority, told = EmbeddedCa("cluster.local"), list[IdentityChange]()
    alone = authority.bundles
    authority.watch(told.append)
    authority.federate("partner.example", ROOTS)
    authority.federate("partner.example", ROOTS)
    both = authority.bundles
    assert both.trust_domains == ("cluster.local", "partner.example")
    authority.prepare_root()
    assert authority.bundles.of_domain("partner.example") == ROOTS
    with pytest.raises(UnknownTrustDomainError, match=r"only for cluster\.local; federate with it"):
        alone.of_domain("partner.example")
    assert told[0] == BundlesChanged(both)
    assert len(told) == 2
    assert alone.trust_domains == ("cluster.local",)
