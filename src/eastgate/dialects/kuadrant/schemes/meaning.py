"""From a checked auth scheme to its model: the same model, in either style."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping

from eastgate.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    AnonymousAccess,
    ApiKeys,
    Authorization,
    AuthorizationRule,
    Cache,
    Callback,
    CelExpression,
    CertificateFormat,
    CertificateHeader,
    ClientCredentials,
    Condition,
    Denial,
    FetchedModule,
    HttpCall,
    Identity,
    Introspection,
    Json,
    Jwt,
    Metadata,
    MetadataSource,
    Method,
    PatternRules,
    PermissionCheck,
    Plain,
    PlainResponse,
    Property,
    Rego,
    Response,
    Scheme,
    SecretRef,
    SigningKey,
    SubjectAccess,
    TokenReview,
    UmaResources,
    UserInfo,
    Wristband,
)
from eastgate.dialects.kuadrant.hosts import ANY
from eastgate.dialects.kuadrant.schemes.authorizations import ATTRIBUTES
from eastgate.dialects.kuadrant.schemes.credentials import read_credentials
from eastgate.dialects.kuadrant.schemes.identities import secrets_of
from eastgate.dialects.kuadrant.schemes.meaning_values import (
    Patterns,
    all_of,
    at_gateway,
    named_patterns,
    optional_value,
    properties,
    texts,
    value_of,
)
from eastgate.dialects.kuadrant.schemes.responses import HEADER_WRAPPER, METADATA_FIELDS
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.manifests.node import Node

__all__ = ["SchemeSection", "read_scheme", "scheme_from"]


def read_scheme(node: Node, namespace: str) -> Scheme:
    """Read the scheme of a checked node. Its Secrets are in `namespace`: that of the policy."""
    named = node.get("patterns")
    patterns = named_patterns(named.items() if named is not None else ())
    deny_with, response = node.get("denyWith"), node.get("response")
    denials = response if response is not None and isinstance(response.value, dict) else deny_with
    return Scheme(
        namespace=namespace,
        hosts=texts(node.get("hosts")) or (ANY,),
        identities=tuple(
            _identity(name, entry, patterns) for name, entry in entries(_first(node, "identity", "authentication"))
        ),
        metadata=tuple(_metadata(name, entry, patterns) for name, entry in entries(node.get("metadata"))),
        authorizations=tuple(
            _authorization(name, entry, patterns) for name, entry in entries(node.get("authorization"))
        ),
        responses=tuple(_responses(response, patterns)),
        callbacks=tuple(_callback(name, entry, patterns) for name, entry in entries(node.get("callbacks"))),
        when=all_of(node.get("when"), patterns),
        unauthenticated=_denial(denials.get("unauthenticated") if denials is not None else None),
        unauthorized=_denial(denials.get("unauthorized") if denials is not None else None),
        span=node.span,
    )


class SchemeSection(enum.StrEnum):
    """A section of a scheme whose entries are given one by one; the last three are single entries without a name."""

    AUTHENTICATION = "authentication"
    METADATA = "metadata"
    AUTHORIZATION = "authorization"
    HEADERS = "response.success.headers"
    DYNAMIC_METADATA = "response.success.metadata"
    CALLBACKS = "callbacks"
    PATTERNS = "patterns"
    CONDITIONS = "conditions"
    UNAUTHENTICATED = "response.unauthenticated"
    UNAUTHORIZED = "response.unauthorized"


def scheme_from(
    parts: Mapping[tuple[str, str], Node], namespace: str, *, span: Span | None = None, authorino_compat: bool = False
) -> Scheme:
    """Build a scheme for all hosts from checked entries by section and name, which may come from several policies.

    A `patternRef` means the set of patterns of that name wherever it comes from. One that means none errs, or with
    `authorino_compat` is left out, as Authorino does.
    """
    given: dict[str, dict[str, Node]] = {}
    for (section, name), node in parts.items():
        given.setdefault(section, {})[name] = node

    def entries_of(section: SchemeSection) -> Iterable[tuple[str, Node]]:
        return given.get(section, {}).items()

    def single(section: SchemeSection) -> Node | None:
        return given.get(section, {}).get("")

    patterns = named_patterns(entries_of(SchemeSection.PATTERNS), drop_missing=authorino_compat)
    return Scheme(
        namespace=namespace,
        hosts=(ANY,),
        identities=tuple(_identity(name, entry, patterns) for name, entry in entries_of(SchemeSection.AUTHENTICATION)),
        metadata=tuple(_metadata(name, entry, patterns) for name, entry in entries_of(SchemeSection.METADATA)),
        authorizations=tuple(
            _authorization(name, entry, patterns) for name, entry in entries_of(SchemeSection.AUTHORIZATION)
        ),
        responses=(
            *(_response(name, entry, patterns, True) for name, entry in entries_of(SchemeSection.HEADERS)),
            *(_response(name, entry, patterns, False) for name, entry in entries_of(SchemeSection.DYNAMIC_METADATA)),
        ),
        when=at_gateway(single(SchemeSection.CONDITIONS)),
        unauthenticated=_denial(single(SchemeSection.UNAUTHENTICATED)),
        unauthorized=_denial(single(SchemeSection.UNAUTHORIZED)),
        span=span,
        callbacks=tuple(_callback(name, entry, patterns) for name, entry in entries_of(SchemeSection.CALLBACKS)),
    )


def _first(node: Node, *names: str) -> Node | None:
    """Return the field under whichever of its names it has."""
    return next((node[name] for name in names if name in node), None)


def _text(node: Node | None, otherwise: str = "") -> str:
    return node.text if node is not None else otherwise


def _is_set(node: Node | None) -> bool:
    return node is not None and node.value is True


def _seconds(node: Node, name: str, otherwise: int = 0) -> int:
    seconds = node.get(name)
    return seconds.number if seconds is not None else otherwise


# Fields of all entries


def _priority(entry: Node) -> int:
    priority = entry.get("priority")
    return priority.number if priority is not None else 0


def _cache(entry: Node) -> Cache | None:
    cache = entry.get("cache")
    if cache is None:
        return None
    key, ttl = value_of(cache["key"]), cache.get("ttl")
    return Cache(key, ttl.number) if ttl is not None else Cache(key)


# Identity


def _identity(name: str, entry: Node, patterns: Patterns) -> Identity:
    return Identity(
        name,
        _method(entry),
        read_credentials(entry.get("credentials")),
        _priority(entry),
        all_of(entry.get("when"), patterns),
        (
            *properties(entry.get("extendedProperties")),
            *properties(entry.get("defaults")),
            *properties(entry.get("overrides"), overwrite=True),
        ),
        _cache(entry),
        entry.span,
    )


def _method(entry: Node) -> Method:
    (name,) = _METHODS.keys() & {key for key, _ in entry.items()}
    method = entry[name]
    match _METHODS[name]:
        case "jwt":
            keys = method.get("jwksUrl")
            issuer = _first(method, "endpoint", "issuerUrl")
            return Jwt(
                issuer.text if issuer is not None else None,
                keys.text if keys is not None else None,
                frozenset(texts(method.get("audiences"))),
            )
        case "apiKey":
            return ApiKeys(secrets_of(method), _is_set(method.get("allNamespaces")))
        case "x509":
            return X509(
                secrets_of(method), _is_set(method.get("allNamespaces")), _certificate_source(method.get("source"))
            )
        case "review":
            return TokenReview(texts(method.get("audiences")))
        case "introspection":
            return Introspection(
                _text(_first(method, "tokenIntrospectionUrl", "endpoint")),
                _text(method.get("tokenTypeHint"), "access_token"),
                method["credentialsRef"]["name"].text,
            )
        case "plain":
            return Plain(_text(_first(method, "authJSON", "selector")), _text(method.get("expression")))
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


# Metadata


def _metadata(name: str, entry: Node, patterns: Patterns) -> Metadata:
    when = all_of(entry.get("when"), patterns)
    return Metadata(name, _source(entry), _priority(entry), when, _cache(entry), entry.span)


def _source(entry: Node) -> MetadataSource:
    if "userInfo" in entry:
        node = entry["userInfo"]
        return UserInfo(_text(node.get("identitySource")), _text(node.get("userInfoUrl")))
    if "uma" in entry:
        return UmaResources(entry["uma"]["endpoint"].text, entry["uma"]["credentialsRef"]["name"].text)
    return _http(entry["http"])


def _callback(name: str, entry: Node, patterns: Patterns) -> Callback:
    when = all_of(entry.get("when"), patterns)
    return Callback(name, _http(entry["http"]), _priority(entry), when, entry.span)


def _secret(node: Node | None) -> SecretRef | None:
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
    )


def _http(node: Node) -> HttpCall:
    expression = node.get("urlExpression")
    return HttpCall(
        url=_text(_first(node, "endpoint", "url")),
        method=_text(node.get("method"), "GET"),
        headers=properties(node.get("headers")),
        body=optional_value(node.get("body")),
        body_parameters=properties(node.get("bodyParameters")),
        content_type=_text(node.get("contentType"), "application/x-www-form-urlencoded"),
        shared_secret=_secret(node.get("sharedSecretRef")),
        credentials=read_credentials(node.get("credentials")),
        url_expression=CelExpression(expression.text) if expression is not None else None,
        client=_client(node.get("oauth2")),
    )


# Authorization


def _authorization(name: str, entry: Node, patterns: Patterns) -> Authorization:
    when = all_of(entry.get("when"), patterns)
    return Authorization(name, _rule(entry, patterns), _priority(entry), when, _cache(entry), entry.span)


def _rule(entry: Node, patterns: Patterns) -> AuthorizationRule:
    matching = _first(entry, "json", "patternMatching")
    if matching is not None:
        condition: Condition | None = all_of(_first(matching, "rules", "patterns"), patterns)
        assert condition is not None  # noqa: S101 - an empty list is an error
        return PatternRules(condition)
    opa = entry.get("opa")
    if opa is not None:
        version = 1 if _text(opa.get("version")) == "v1" else 0
        external = _first(opa, "externalRegistry", "externalPolicy")
        fetched = FetchedModule(_http(external), _seconds(external, "ttl")) if external is not None else None
        return Rego(_text(_first(opa, "inlineRego", "rego")), _is_set(opa.get("allValues")), version, fetched)
    if (check := _first(entry, "authzed", "spicedb")) is not None:
        return _permission_check(check)
    review = _first(entry, "kubernetes", "kubernetesSubjectAccessReview")
    assert review is not None  # noqa: S101 - every entry has a method
    attributes = review.get("resourceAttributes")
    resource = (
        {name: value_of(attributes[name]) for name in ATTRIBUTES if name in attributes and attributes[name].value}
        if attributes is not None
        else None
    )
    user, groups = optional_value(review.get("user")), texts(review.get("groups"))
    return SubjectAccess(user, groups, resource, optional_value(review.get("authorizationGroups")))


def _permission_check(node: Node) -> PermissionCheck:
    subject, resource = node["subject"], node["resource"]
    return PermissionCheck(
        endpoint=node["endpoint"].text,
        subject=value_of(subject["name"]),
        subject_kind=value_of(subject["kind"]),
        resource=value_of(resource["name"]),
        resource_kind=value_of(resource["kind"]),
        permission=value_of(node["permission"]),
        insecure=_is_set(node.get("insecure")),
        shared_secret=_secret(node.get("sharedSecretRef")),
    )


# Response


def _responses(section: Node | None, patterns: Patterns) -> Iterator[Response]:
    """Read responses: a list, each with its wrapper; or a mapping for success, in headers and in metadata."""
    if section is None or isinstance(section.value, list):
        for name, entry in entries(section):
            yield _response(name, entry, patterns, _text(entry.get("wrapper"), HEADER_WRAPPER) == HEADER_WRAPPER)
        return
    success = section.get("success")
    for field in ("headers", *METADATA_FIELDS):
        for name, entry in entries(success.get(field) if success is not None else None):
            yield _response(name, entry, patterns, field == "headers")


def _response(name: str, entry: Node, patterns: Patterns, in_header: bool) -> Response:
    return Response(
        name,
        _content(entry),
        _text(_first(entry, "wrapperKey", "key"), name),
        in_header,
        _priority(entry),
        all_of(entry.get("when"), patterns),
        _cache(entry),
        entry.span,
    )


def _content(entry: Node) -> PlainResponse | Json | Wristband:
    if "plain" in entry:
        return PlainResponse(value_of(entry["plain"]))
    if "json" in entry:
        return Json(properties(entry["json"]["properties"]))
    wristband = entry["wristband"]
    keys = tuple(SigningKey(key["name"].text, key["algorithm"].text) for key in wristband["signingKeyRefs"])
    claims = properties(wristband.get("customClaims"))
    return Wristband(wristband["issuer"].text, keys, claims, _seconds(wristband, "tokenDuration", 300))


def _denial(node: Node | None) -> Denial:
    if node is None:
        return Denial()
    code = node.get("code")
    headers: tuple[Property, ...] = properties(node.get("headers"))
    return Denial(
        code.number if code is not None else None,
        optional_value(node.get("message")),
        headers,
        optional_value(node.get("body")),
    )
