"""From entries that recognize callers to their model."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    AnonymousAccess,
    ApiKeys,
    CelExpression,
    CertificateFormat,
    CertificateHeader,
    Identity,
    Introspection,
    Jwt,
    Method,
    Plain,
    TokenReview,
)
from eastgate.dialects.kuadrant.schemes.credentials import read_credentials
from eastgate.dialects.kuadrant.schemes.identities import secrets_of
from eastgate.dialects.kuadrant.schemes.meaning.fields import (
    cache_of,
    first_of,
    is_set,
    priority_of,
    text_of,
    timeout_of,
)
from eastgate.dialects.kuadrant.schemes.meaning.values import Patterns, all_of, properties, texts
from eastgate.reading.manifests.node import Node


def read_identity(name: str, entry: Node, patterns: Patterns) -> Identity:
    """Read one way to recognize a caller."""
    return Identity(
        name,
        _method(entry),
        read_credentials(entry.get("credentials")),
        priority_of(entry),
        all_of(entry.get("when"), patterns),
        (
            *properties(entry.get("extendedProperties")),
            *properties(entry.get("defaults")),
            *properties(entry.get("overrides"), overwrite=True),
        ),
        cache_of(entry),
        entry.span,
    )


def _method(entry: Node) -> Method:
    (name,) = _METHODS.keys() & {key for key, _ in entry.items()}
    method = entry[name]
    match _METHODS[name]:
        case "jwt":
            keys = method.get("jwksUrl")
            issuer = first_of(method, "endpoint", "issuerUrl")
            return Jwt(
                issuer.text if issuer is not None else None,
                keys.text if keys is not None else None,
                frozenset(texts(method.get("audiences"))),
            )
        case "apiKey":
            return ApiKeys(secrets_of(method), is_set(method.get("allNamespaces")))
        case "x509":
            return X509(
                secrets_of(method), is_set(method.get("allNamespaces")), _certificate_source(method.get("source"))
            )
        case "review":
            return TokenReview(texts(method.get("audiences")))
        case "introspection":
            return Introspection(
                text_of(first_of(method, "tokenIntrospectionUrl", "endpoint")),
                text_of(method.get("tokenTypeHint"), "access_token"),
                method["credentialsRef"]["name"].text,
                timeout_of(method),
            )
        case "plain":
            return Plain(text_of(first_of(method, "authJSON", "selector")), text_of(method.get("expression")))
        case _:
            return AnonymousAccess()


_METHODS = {
    **dict.fromkeys(("oidc", "jwt"), "jwt"),
    **dict.fromkeys(("mtls", "x509"), "x509"),
    **dict.fromkeys(("kubernetes", "kubernetesTokenReview"), "review"),
    **dict.fromkeys(("oauth2", "oauth2Introspection"), "introspection"),
    **{name: name for name in ("apiKey", "plain", "anonymous")},
}


def _certificate_source(node: Node | None) -> CertificateHeader | CelExpression | None:
    if node is None:
        return None
    for name, format_ in (("xfccHeader", CertificateFormat.XFCC), ("clientCertHeader", CertificateFormat.RFC_9440)):
        if name in node:
            return CertificateHeader(node[name].text.lower(), format_)
    return CelExpression(node["expression"].text) if "expression" in node else None
