"""From sources of metadata, and callbacks, to their model."""

from __future__ import annotations

from eastgate.dialects.kuadrant.authorino.model import (
    Callback,
    CelExpression,
    ClientCredentials,
    HttpCall,
    Metadata,
    MetadataSource,
    SecretRef,
    UmaResources,
    UserInfo,
)
from eastgate.dialects.kuadrant.schemes.credentials import read_credentials
from eastgate.dialects.kuadrant.schemes.meaning.fields import cache_of, first_of, priority_of, text_of, timeout_of
from eastgate.dialects.kuadrant.schemes.meaning.values import Patterns, all_of, optional_value, properties, texts
from eastgate.reading.manifests.node import Node


def read_metadata(name: str, entry: Node, patterns: Patterns) -> Metadata:
    """Read a source of metadata."""
    when = all_of(entry.get("when"), patterns)
    return Metadata(name, _source(entry), priority_of(entry), when, cache_of(entry), entry.span)


def _source(entry: Node) -> MetadataSource:
    if "userInfo" in entry:
        node = entry["userInfo"]
        return UserInfo(text_of(node.get("identitySource")), text_of(node.get("userInfoUrl")), timeout_of(node))
    if "uma" in entry:
        node = entry["uma"]
        return UmaResources(node["endpoint"].text, node["credentialsRef"]["name"].text, timeout_of(node))
    return read_http(entry["http"])


def read_callback(name: str, entry: Node, patterns: Patterns) -> Callback:
    """Read a callback."""
    when = all_of(entry.get("when"), patterns)
    return Callback(name, read_http(entry["http"]), priority_of(entry), when, entry.span)


def read_secret(node: Node | None) -> SecretRef | None:
    """Read a reference to a value in a Secret, if there is one."""
    return SecretRef(node["name"].text, node["key"].text) if node is not None else None


def _client(node: Node | None) -> ClientCredentials | None:
    if node is None:
        return None
    cache, parameters = node.get("cache"), node.get("extraParams")
    secret = node["clientSecretRef"]
    return ClientCredentials(
        node["tokenUrl"].text,
        node["clientId"].text,
        SecretRef(secret["name"].text, secret["key"].text),
        texts(node.get("scopes")),
        tuple((name, value.text) for name, value in (parameters.items() if parameters is not None else ())),
        cache is None or cache.value is True,
        timeout_of(node),
    )


def read_http(node: Node) -> HttpCall:
    """Read an HTTP request."""
    expression = node.get("urlExpression")
    return HttpCall(
        url=text_of(first_of(node, "endpoint", "url")),
        method=text_of(node.get("method"), "GET"),
        headers=properties(node.get("headers")),
        body=optional_value(node.get("body")),
        body_parameters=properties(node.get("bodyParameters")),
        content_type=text_of(node.get("contentType"), "application/x-www-form-urlencoded"),
        shared_secret=read_secret(node.get("sharedSecretRef")),
        credentials=read_credentials(node.get("credentials")),
        url_expression=CelExpression(expression.text) if expression is not None else None,
        client=_client(node.get("oauth2")),
        timeout=timeout_of(node),
    )
