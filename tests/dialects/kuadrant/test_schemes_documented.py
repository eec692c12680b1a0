"""The schemes of Authorino's guides, in both styles: supported features are read, and others are refused.

`scheme_guides.txt` has a scheme for each guide, with the name of the guide, in the old style and in the new one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.unsupported import FEATURES
from tests.dialects.kuadrant.scheme_texts import content, judge, scheme

GUIDES = Path(__file__).with_name("scheme_guides.txt")
HOSTS = "hosts: [talker.127.0.0.1.nip.io]\n"
ISSUER = "http://keycloak.auth.svc.cluster.local:8080/auth/realms/shop"
FRIENDS = "apiKey: {selector: {matchLabels: {group: friends}}}"
OLD_KEYS = f"identity: [{{name: friends, {FRIENDS}, credentials: {{in: authorization_header, keySelector: APIKEY}}}}]\n"
NEW_KEYS = f"authentication: {{friends: {{{FRIENDS}, credentials: {{authorizationHeader: {{prefix: APIKEY}}}}}}}}\n"
OLD_TOKENS = f"identity: [{{name: realm, oidc: {{endpoint: '{ISSUER}'}}}}]\n"
NEW_TOKENS = f"authentication: {{realm: {{jwt: {{issuerUrl: '{ISSUER}'}}}}}}\n"


def guides() -> dict[str, list[str]]:
    parts = re.split(r"^=== (.*)\n", GUIDES.read_text("utf-8"), flags=re.MULTILINE)
    return {name: body.split("\n---\n") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize(("old", "new"), guides().values(), ids=guides())
def test_a_guide_is_read_alike_in_both_styles(old: str, new: str) -> None:
    assert content(scheme(old)) == content(scheme(new))


REFUSED = {
    "oidc-user-info": (
        codes.METADATA_UNSUPPORTED,
        OLD_TOKENS + "metadata: [{name: userinfo, userInfo: {identitySource: realm}}]",
        NEW_TOKENS + "metadata: {userinfo: {userInfo: {identitySource: realm}}}",
    ),
    "resource-level-authorization-uma": (
        codes.METADATA_UNSUPPORTED,
        OLD_TOKENS + f"metadata: [{{name: data, uma: {{endpoint: '{ISSUER}', credentialsRef: {{name: c}}}}}}]",
        NEW_TOKENS + f"metadata: {{data: {{uma: {{endpoint: '{ISSUER}', credentialsRef: {{name: c}}}}}}}}",
    ),
    "authzed": (
        codes.AUTHORIZATION_UNSUPPORTED,
        OLD_KEYS + "authorization: [{name: db, authzed: {endpoint: 'spicedb:50051', insecure: true}}]",
        NEW_KEYS + "authorization: {db: {spicedb: {endpoint: 'spicedb:50051', insecure: true}}}",
    ),
    "edge-authentication-architecture-festival-wristbands": (
        codes.RESPONSE_UNSUPPORTED,
        OLD_KEYS + "response: [{name: x-w, wristband: {issuer: 'http://a:8083/x', signingKeyRefs: [{name: k}]}}]",
        NEW_KEYS
        + "response: {success: {headers: {x-w: {wristband: {issuer: 'http://a:8083/x', signingKeyRefs: []}}}}}",
    ),
    "callbacks": (
        codes.CALLBACKS,
        OLD_KEYS + "callbacks: [{name: log, http: {endpoint: 'http://log', method: POST}}]",
        NEW_KEYS + "callbacks: {log: {http: {url: 'http://log', method: POST}}}",
    ),
    "OPA policies from a registry": (
        codes.AUTHORIZATION_UNSUPPORTED,
        OLD_KEYS + "authorization: [{name: p, opa: {externalRegistry: {endpoint: 'http://opa/policies/p', ttl: 5}}}]",
        NEW_KEYS + "authorization: {p: {opa: {externalPolicy: {url: 'http://opa/policies/p', ttl: 5}}}}",
    ),
    "API keys of all namespaces": (
        codes.ALL_NAMESPACES,
        "identity: [{name: k, apiKey: {selector: {matchLabels: {a: b}}, allNamespaces: true}}]",
        "authentication: {k: {apiKey: {selector: {matchLabels: {a: b}}, allNamespaces: true}}}",
    ),
}


@pytest.mark.parametrize("guide", REFUSED)
def test_what_is_not_evaluated_is_refused_in_both_styles(guide: str) -> None:
    code, *styles = REFUSED[guide]
    for style in styles:
        read, found = judge(HOSTS + style)
        assert read is None
        assert [one.code for one in found] == [code]
        assert found[0].help


def test_every_feature_that_is_not_evaluated_is_shown_in_the_goldens() -> None:
    golden = Path(__file__).with_name("scheme_messages.txt").read_text("utf-8")
    underlined = set(re.findall(r"^EG513\d at (.*)$", golden, flags=re.MULTILINE))
    assert {feature.path[-1] for features in FEATURES.values() for feature in features} == underlined - {"PUT"}
