"""Every field of an AuthConfig v1beta3 becomes a part of the model. Only today's kinds accept them."""

from __future__ import annotations

import pytest

from eastgate.cluster import Selector
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    ApiKeys,
    CelExpression,
    CertificateFormat,
    CertificateHeader,
    ClientCredentials,
    Credentials,
    FetchedModule,
    HttpCall,
    Introspection,
    LiteralValue,
    PermissionCheck,
    Plain,
    Property,
    Rego,
    SecretRef,
    Selected,
    SigningKey,
    SubjectAccess,
    UmaResources,
    UserInfo,
    Where,
    Wristband,
)
from eastgate.dialects.kuadrant.schemes import AUTH_CONFIG_SPEC, AUTH_CONFIG_SPEC_V1BETA1, read_scheme
from tests.dialects.kuadrant.scheme_texts import node
from tests.dialects.kuadrant.schemes.reading import HOSTS, config, ids, problems

FRIENDS = Selector.of({"app": "friends"})
SELECTOR = "selector: {matchLabels: {app: friends}}"
CLIENT = "tokenUrl: 'https://idp/token', clientId: me, clientSecretRef: {name: s, key: k}"
OBJECT = "{name: {selector: auth.identity.sub}, kind: {value: user}}"

AUTHENTICATIONS = {
    f"apiKey: {{{SELECTOR}, allNamespaces: true}}": ApiKeys(FRIENDS, all_namespaces=True),
    f"x509: {{{SELECTOR}, allNamespaces: true}}": X509(FRIENDS, all_namespaces=True),
    f"x509: {{{SELECTOR}, source: {{xfccHeader: X-Cert}}}}": X509(
        FRIENDS, source=CertificateHeader("x-cert", CertificateFormat.XFCC)
    ),
    f"x509: {{{SELECTOR}, source: {{clientCertHeader: Client-Cert}}}}": X509(
        FRIENDS, source=CertificateHeader("client-cert", CertificateFormat.RFC_9440)
    ),
    f"x509: {{{SELECTOR}, source: {{expression: source.certificate}}}}": X509(
        FRIENDS, source=CelExpression("source.certificate")
    ),
    f"x509: {{{SELECTOR}, source: {{}}}}": X509(FRIENDS),
    "plain: {expression: request.method}": Plain(expression="request.method"),
    "oauth2Introspection: {endpoint: 'https://idp', credentialsRef: {name: c}, timeout: 700}": Introspection(
        "https://idp", "access_token", "c", 0.7
    ),
}


@pytest.mark.parametrize("method", AUTHENTICATIONS)
def test_authentication(method: str) -> None:
    (identity,) = config(f"authentication: {{a: {{{method}, credentials: {{}}}}}}").identities
    assert identity.method == AUTHENTICATIONS[method]


METADATA = {
    "http: {urlExpression: \"'http://' + request.host\"}": HttpCall(
        "", url_expression=CelExpression("'http://' + request.host")
    ),
    f"http: {{url: 'http://a', oauth2: {{{CLIENT}}}, credentials: {{cookie: {{name: T}}}}}}": HttpCall(
        "http://a",
        credentials=Credentials(Where.COOKIE, "T"),
        client=ClientCredentials("https://idp/token", "me", SecretRef("s", "k")),
    ),
    f"http: {{url: 'http://a', oauth2: {{{CLIENT}, scopes: [a, b], extraParams: {{x: z}}, cache: false}}}}": HttpCall(
        "http://a",
        client=ClientCredentials("https://idp/token", "me", SecretRef("s", "k"), ("a", "b"), (("x", "z"),), False),
    ),
    "http: {url: 'http://a', contentType: application/x-www-form-urlencoded, credentials: {}}": HttpCall("http://a"),
    "userInfo: {identitySource: idp, timeout: 5}": UserInfo("idp", timeout=0.005),
    "userInfo: {userInfoUrl: 'https://idp/me'}": UserInfo(url="https://idp/me"),
    "uma: {endpoint: 'https://idp/uma', credentialsRef: {name: c}, timeout: 0}": UmaResources(
        "https://idp/uma", "c", 0
    ),
    f"http: {{url: 'http://a', timeout: 2500, oauth2: {{{CLIENT}, timeout: 100}}}}": HttpCall(
        "http://a", client=ClientCredentials("https://idp/token", "me", SecretRef("s", "k"), timeout=0.1), timeout=2.5
    ),
}


@pytest.mark.parametrize("source", METADATA)
def test_metadata(source: str) -> None:
    idp = "authentication: {idp: {jwt: {issuerUrl: 'https://idp'}}}"
    (metadata,) = config(f"{idp}\nmetadata: {{a: {{{source}}}}}").metadata
    assert metadata.source == METADATA[source]


AUTHORIZATIONS = {
    "kubernetesSubjectAccessReview: {authorizationGroups: {selector: auth.identity.groups}}": SubjectAccess(
        None, selected_groups=Selected("auth.identity.groups")
    ),
    "kubernetesSubjectAccessReview: {user: {value: a}, resourceAttributes: {verb: {value: get}, group: {}}}": (
        SubjectAccess(LiteralValue("a"), resource={"verb": LiteralValue("get")})
    ),
    "opa: {externalPolicy: {url: 'http://opa/p', ttl: 5, sharedSecretRef: {name: s, key: k}}, allValues: true}": Rego(
        "", all_values=True, fetched=FetchedModule(HttpCall("http://opa/p", shared_secret=SecretRef("s", "k")), 5)
    ),
    "opa: {rego: 'allow if { input.request.method == \"GET\" }', version: v1}": Rego(
        'allow if { input.request.method == "GET" }', version=1
    ),
    f"spicedb: {{endpoint: 'db:50051', insecure: true, subject: {OBJECT}, resource: {OBJECT},"
    " permission: {value: read}, sharedSecretRef: {name: s, key: k}}": PermissionCheck(
        "db:50051",
        *(Selected("auth.identity.sub"), LiteralValue("user"), Selected("auth.identity.sub"), LiteralValue("user")),
        LiteralValue("read"),
        insecure=True,
        shared_secret=SecretRef("s", "k"),
    ),
}


AUTHORIZATIONS |= dict.fromkeys(
    (
        "spicedb: {endpoint: 'db:50051'}",
        "spicedb: {endpoint: 'db:50051', subject: {}, resource: {}, permission: {}}",
        "spicedb: {endpoint: 'db:50051', subject: {name: {}, kind: {}}}",
    ),
    PermissionCheck("db:50051"),
)


@pytest.mark.parametrize("rule", AUTHORIZATIONS)
def test_authorization(rule: str) -> None:
    (authorization,) = config(f"authorization: {{a: {{{rule}}}}}").authorizations
    assert authorization.rule == AUTHORIZATIONS[rule]


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"])
@pytest.mark.parametrize("section", ["metadata", "callbacks"])
def test_methods_that_are_never_sent_are_read_with_a_warning(section: str, method: str) -> None:
    text = f"{section}: {{a: {{http: {{url: 'http://a', method: {method}, body: {{value: a}}}}}}}}"
    assert ids(problems(AUTH_CONFIG_SPEC, HOSTS + text)) == ["EG5124"]
    written = read_scheme(node(HOSTS + text), "shop")
    call = written.metadata[0].source if section == "metadata" else written.callbacks[0].call
    assert call == HttpCall("http://a", method, body=LiteralValue("a"))


def test_response() -> None:
    wristband = (
        "{issuer: 'http://a:8083/x', tokenDuration: 60, customClaims: {age: {selector: auth.identity.age}},"
        " signingKeyRefs: [{name: k, algorithm: ES256}]}"
    )
    (response,) = config(f"response: {{success: {{headers: {{x-w: {{wristband: {wristband}}}}}}}}}").responses
    claims = (Property("age", Selected("auth.identity.age")),)
    assert response.content == Wristband("http://a:8083/x", (SigningKey("k", "ES256"),), claims, 60)


OLD = {
    f"identity: [{{name: a, apiKey: {{{SELECTOR}, allNamespaces: true}}}}]": (
        f"authentication: {{a: {{apiKey: {{{SELECTOR}, allNamespaces: true}}}}}}"
    ),
    "identity: [{name: i, oidc: {endpoint: 'https://i'}}]\nmetadata: [{name: a, userInfo: {identitySource: i}}]": (
        "authentication: {i: {jwt: {issuerUrl: 'https://i'}}}\nmetadata: {a: {userInfo: {identitySource: i}}}"
    ),
    "authorization: [{name: a, opa: {externalRegistry: {endpoint: 'http://opa', ttl: 1}}}]": (
        "authorization: {a: {opa: {externalPolicy: {url: 'http://opa', ttl: 1}}}}"
    ),
    "response: [{name: x-w, wristband: {issuer: i, signingKeyRefs: [{name: k, algorithm: RS256}]}}]": (
        "response: {success: {headers: {x-w: {wristband: {issuer: i, signingKeyRefs: [{name: k, algorithm: RS256}]}}}}}"
    ),
    f"metadata: [{{name: a, http: {{endpoint: 'http://a', oauth2: {{{CLIENT}}}}}}}]": (
        f"metadata: {{a: {{http: {{url: 'http://a', oauth2: {{{CLIENT}}}}}}}}}"
    ),
}


@pytest.mark.parametrize("text", OLD)
def test_v1beta1_is_read_alike(text: str) -> None:
    old, new = config(text, AUTH_CONFIG_SPEC_V1BETA1), config(OLD[text])
    sections = ("identities", "metadata", "authorizations", "responses")
    assert [getattr(old, name) for name in sections] == [getattr(new, name) for name in sections]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (
            f"authentication: {{a: {{x509: {{{SELECTOR}, source: {{xfccHeader: a, expression: b}}}}}}}}",
            ["EG5109", "EG5111"],
        ),
        ("authentication: {a: {plain: {}}}", ["EG5111"]),
        ("authentication: {a: {plain: {selector: a, expression: request.method}}}", ["EG5111"]),
        ("authentication: {a: {plain: {expression: request.}}}", ["EG5109"]),
        ("metadata: {a: {http: {url: 'http://a', urlExpression: request.host}}}", ["EG5112"]),
        ("metadata: {a: {http: {url: 'http://a', oauth2: {tokenUrl: a}}}}", ["EG1203", "EG1203", "EG5112"]),
        ("metadata: {a: {userInfo: {}}}", ["EG5120"]),
        ("metadata: {a: {uma: {endpoint: 'https://a'}}}", ["EG1203"]),
        ("authorization: {a: {opa: {}}}", ["EG5110"]),
        ("authorization: {a: {opa: {rego: 'allow = true', externalPolicy: {url: 'http://a'}}}}", ["EG5110"]),
        ("authorization: {a: {opa: {rego: 'allow { true }', version: v1}}}", ["EG5110"]),
        (f"authorization: {{a: {{spicedb: {{endpoint: db, subject: {OBJECT}}}}}}}", ["EG5112"]),
        ("authorization: {a: {spicedb: {subject: {name: {value: a, selector: b}}}}}", ["EG1203", "EG5111"]),
        ("metadata: {a: {http: {url: 'http://a', method: BREW}}}", ["EG1205"]),
        ("response: {success: {headers: {a: {wristband: {issuer: i, signingKeyRefs: []}}}}}", ["EG5122"]),
        ("callbacks: {a: {}}", ["EG5102"]),
        ("authentication: {a: {anonymous: {}, credentials: {cookie: {name: T}}}}", ["EG5115"]),
    ],
)
def test_mistakes(text: str, codes: list[str]) -> None:
    assert sorted(ids(problems(AUTH_CONFIG_SPEC, HOSTS + text))) == codes


@pytest.mark.parametrize(
    "text",
    [
        "identity: [{name: a, plain: {authJSON: a, expression: b}}]",
        "identity: [{name: a, hmac: {}}]",
        "metadata: [{name: a, http: {endpoint: 'http://a', urlExpression: b}}]",
        "authorization: [{name: a, kubernetes: {authorizationGroups: {value: []}}}]",
        "authorization: [{name: a, spicedb: {}}]",
    ],
)
def test_v1beta1_has_less(text: str) -> None:
    assert problems(AUTH_CONFIG_SPEC_V1BETA1, HOSTS + text)
