"""Client certificates from a header of a proxy, or from an expression."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.identity.certificates import from_client_cert, from_xfcc
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    CelExpression,
    CertificateFormat,
    CertificateHeader,
    Identity,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from eastgate.ir.attributes import UNKNOWN
from tests.dialects.kuadrant.authorino.authorities import CLIENT, authority, issued
from tests.dialects.kuadrant.authorino.schemes import KEYS, holding, request, rule, scheme, secret

ROOT = secret("root", None, tls_crt=authority().pem)
ALICE = issued("alice", authority(), usages=[CLIENT])
STRANGER = issued("alice", authority("stranger"), usages=[CLIENT])
XFCC = CertificateHeader("x-forwarded-client-cert", CertificateFormat.XFCC)
CLIENT_CERT = CertificateHeader("client-cert", CertificateFormat.RFC_9440)


def encoded(pem: str) -> str:
    return quote(pem, safe="")


def der(holder: Any) -> str:
    return base64.b64encode(holder.certificate.public_bytes(Encoding.DER)).decode()


def asked(source: CertificateHeader | CelExpression, headers: Any, **facts: Any) -> Judgement:
    guarded = scheme(
        rule("auth.identity.CommonName eq alice"), identities=[Identity("mtls", X509(KEYS, source=source))]
    )
    return evaluate(guarded, request(headers=headers, **facts), holding(ROOT))


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f'Hash=abc;Cert="{encoded(ALICE.pem)}"', True),
        (f'By=spiffe://a;Hash=abc;Subject="CN=x, O=y;z";cert={encoded(ALICE.pem)};URI=b', True),
        (f'Hash=abc;Chain="{encoded(ALICE.pem)}"', True),
        (f'Hash=a;Cert="{encoded(ALICE.pem)}",Hash=b;Cert="{encoded(STRANGER.pem)}"', True),
        (f'Hash=a;Cert="{encoded(STRANGER.pem)}",Hash=b;Cert="{encoded(ALICE.pem)}"', False),
        (f'Hash=a;Cert="{encoded(STRANGER.pem)}";Chain="{encoded(ALICE.pem)}"', False),
        ("Hash=abc", False),
        ("", False),
        ('Cert="%ZZ"', False),
        ("Cert=nonsense", False),
    ],
)
def test_a_header_as_envoy_writes_it(header: str, allowed: bool) -> None:
    assert asked(XFCC, {"x-forwarded-client-cert": header}).allowed is allowed


@pytest.mark.parametrize(
    ("header", "allowed"),
    [
        (f":{der(ALICE)}:", True),
        (f"  : {der(ALICE)} : ", True),
        (der(ALICE), False),
        (f":{der(ALICE)}", False),
        ("::", False),
        (":", False),
        (":not base64!:", False),
        (f":{der(STRANGER)}:", False),
    ],
)
def test_a_header_as_rfc_9440_has_it(header: str, allowed: bool) -> None:
    assert asked(CLIENT_CERT, {"client-cert": header}).allowed is allowed


@pytest.mark.parametrize(
    ("expression", "headers", "allowed"),
    [
        ("request.headers['x-cert']", {"x-cert": encoded(ALICE.pem)}, True),
        ("request.headers['x-cert']", {"x-cert": encoded(STRANGER.pem)}, False),
        ("request.headers['x-cert']", {}, False),
        ("1", {}, False),
        ("''", {}, False),
    ],
)
def test_an_expression(expression: str, headers: dict[str, str], allowed: bool) -> None:
    assert asked(CelExpression(expression), headers).allowed is allowed


@pytest.mark.parametrize("source", [XFCC, CLIENT_CERT])
def test_the_certificate_of_the_connection_does_not_stand_in_for_the_header(source: CertificateHeader) -> None:
    judged = asked(source, {}, certificate=ALICE.pem)
    assert not judged.allowed
    assert source.name in judged.reason


@pytest.mark.parametrize("source", [XFCC, CLIENT_CERT, CelExpression("request.headers['x-cert']")])
def test_unknown_headers_leave_it_unknown(source: CertificateHeader | CelExpression) -> None:
    assert asked(source, UNKNOWN).is_undecided


def test_values_in_quotes_may_have_separators() -> None:
    assert from_xfcc('Hash=abc;Cert="xyz,123",Hash=def;Cert="uvw"') == "xyz,123"
    assert from_xfcc('Subject="a=b;Cert=no";Cert=yes') == "yes"
    assert from_client_cert(":YWJj:") == "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n"
