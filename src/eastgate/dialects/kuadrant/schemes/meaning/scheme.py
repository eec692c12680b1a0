"""Converts a checked auth scheme to its model.

The model is the same for both styles, and for parts from several policies.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.model import (
    X509,
    All,
    AnonymousAccess,
    ApiKeys,
    Authorization,
    AuthorizationRule,
    CelExpression,
    CertificateFormat,
    CertificateHeader,
    Denial,
    FetchedModule,
    Identity,
    Introspection,
    Json,
    Jwt,
    Method,
    PatternRules,
    PermissionCheck,
    Plain,
    PlainResponse,
    Property,
    Rego,
    Response,
    Scheme,
    SigningKey,
    SubjectAccess,
    TokenReview,
    Value,
    Wristband,
)
from eastgate.dialects.kuadrant.hosts import ANY
from eastgate.dialects.kuadrant.schemes.authorizations import ATTRIBUTES
from eastgate.dialects.kuadrant.schemes.credentials import read_credentials
from eastgate.dialects.kuadrant.schemes.identities import secrets_of
from eastgate.dialects.kuadrant.schemes.meaning.fields import (
    Patterns,
    all_of,
    at_gateway,
    cache_of,
    first_of,
    is_set,
    named_patterns,
    optional_value,
    priority_of,
    properties,
    read_callback,
    read_http,
    read_metadata,
    read_secret,
    seconds_of,
    text_of,
    texts,
    timeout_of,
    value_of,
)
from eastgate.dialects.kuadrant.schemes.responses import HEADER_WRAPPER, METADATA_FIELDS
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.reading.manifests.node import Node

# Converts checks to their model.


def read_authorization(name: str, entry: Node, patterns: Patterns) -> Authorization:
    """Read a check."""
    when = all_of(entry.get("when"), patterns)
    return Authorization(name, _rule(entry, patterns), priority_of(entry), when, cache_of(entry), entry.span)


def _rule(entry: Node, patterns: Patterns) -> AuthorizationRule:
    matching = first_of(entry, "json", "patternMatching")
    if matching is not None:
        return PatternRules(all_of(first_of(matching, "rules", "patterns"), patterns) or All())
    opa = entry.get("opa")
    if opa is not None:
        version = 1 if text_of(opa.get("version")) == "v1" else 0
        external = first_of(opa, "externalRegistry", "externalPolicy")
        fetched = FetchedModule(read_http(external), seconds_of(external, "ttl")) if external is not None else None
        return Rego(text_of(first_of(opa, "inlineRego", "rego")), is_set(opa.get("allValues")), version, fetched)
    if (check := first_of(entry, "authzed", "spicedb")) is not None:
        return _permission_check(check)
    review = first_of(entry, "kubernetes", "kubernetesSubjectAccessReview")
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
    subject, resource = node.get("subject"), node.get("resource")
    return PermissionCheck(
        endpoint=node["endpoint"].text,
        subject=_part_of(subject, "name"),
        subject_kind=_part_of(subject, "kind"),
        resource=_part_of(resource, "name"),
        resource_kind=_part_of(resource, "kind"),
        permission=optional_value(node.get("permission")),
        insecure=is_set(node.get("insecure")),
        shared_secret=read_secret(node.get("sharedSecretRef")),
    )


def _part_of(node: Node | None, name: str) -> Value | None:
    return optional_value(node.get(name)) if node is not None else None


# Converts identities to their model.


def read_identity(name: str, entry: Node, patterns: Patterns) -> Identity:
    """Read one method to recognize a caller."""
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


# Converts responses and denials to their model.


def read_responses(section: Node | None, patterns: Patterns) -> Iterator[Response]:
    """Read responses: a list of wrapped entries, or a mapping for headers and one for metadata."""
    if section is None or isinstance(section.value, list):
        for name, entry in entries(section):
            yield read_response(name, entry, patterns, text_of(entry.get("wrapper"), HEADER_WRAPPER) == HEADER_WRAPPER)
        return
    success = section.get("success")
    for field in ("headers", *METADATA_FIELDS):
        for name, entry in entries(success.get(field) if success is not None else None):
            yield read_response(name, entry, patterns, field == "headers")


def read_response(name: str, entry: Node, patterns: Patterns, in_header: bool) -> Response:
    """Read a response."""
    return Response(
        name,
        _content(entry),
        text_of(first_of(entry, "wrapperKey", "key"), name),
        in_header,
        priority_of(entry),
        all_of(entry.get("when"), patterns),
        cache_of(entry),
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
    return Wristband(wristband["issuer"].text, keys, claims, seconds_of(wristband, "tokenDuration", 300))


def read_denial(node: Node | None) -> Denial:
    """Read the response to a denied client. Without one, it is the default response."""
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


def read_scheme(node: Node, namespace: str) -> Scheme:
    """Read the scheme of a checked node. `namespace` is the policy's namespace, which has its Secrets."""
    named = node.get("patterns")
    patterns = named_patterns(named.items() if named is not None else ())
    identities = first_of(node, "identity", "authentication")
    deny_with, response = node.get("denyWith"), node.get("response")
    denials = response if response is not None and isinstance(response.value, dict) else deny_with
    return Scheme(
        namespace=namespace,
        hosts=texts(node.get("hosts")) or (ANY,),
        identities=tuple(read_identity(name, entry, patterns) for name, entry in entries(identities)),
        metadata=tuple(read_metadata(name, entry, patterns) for name, entry in entries(node.get("metadata"))),
        authorizations=tuple(
            read_authorization(name, entry, patterns) for name, entry in entries(node.get("authorization"))
        ),
        responses=tuple(read_responses(response, patterns)),
        callbacks=tuple(read_callback(name, entry, patterns) for name, entry in entries(node.get("callbacks"))),
        when=all_of(node.get("when"), patterns),
        unauthenticated=read_denial(denials.get("unauthenticated") if denials is not None else None),
        unauthorized=read_denial(denials.get("unauthorized") if denials is not None else None),
        span=node.span,
    )


class SchemeSection(enum.StrEnum):
    """A section of a scheme for separate entries. The last three are single entries without a name."""

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

    def path(self, metadata_field: str) -> tuple[str, ...]:
        """Return the fields that lead to the section. Dynamic metadata has another name in each kind."""
        *outer, last = self.split(".")
        return *outer, metadata_field if self is SchemeSection.DYNAMIC_METADATA else last


def scheme_from(
    parts: Mapping[tuple[str, str], Node], namespace: str, *, span: Span | None = None, authorino_compat: bool = False
) -> Scheme:
    """Build a scheme for all hosts from checked entries by section and name, possibly from several policies.

    A `patternRef` refers to the set of patterns with that name in any policy. A reference without a set errs; with
    `authorino_compat` it is left out, as in Authorino.
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
        identities=tuple(
            read_identity(name, entry, patterns) for name, entry in entries_of(SchemeSection.AUTHENTICATION)
        ),
        metadata=tuple(read_metadata(name, entry, patterns) for name, entry in entries_of(SchemeSection.METADATA)),
        authorizations=tuple(
            read_authorization(name, entry, patterns) for name, entry in entries_of(SchemeSection.AUTHORIZATION)
        ),
        responses=(
            *(read_response(name, entry, patterns, True) for name, entry in entries_of(SchemeSection.HEADERS)),
            *(
                read_response(name, entry, patterns, False)
                for name, entry in entries_of(SchemeSection.DYNAMIC_METADATA)
            ),
        ),
        when=at_gateway(single(SchemeSection.CONDITIONS)),
        unauthenticated=read_denial(single(SchemeSection.UNAUTHENTICATED)),
        unauthorized=read_denial(single(SchemeSection.UNAUTHORIZED)),
        span=span,
        callbacks=tuple(read_callback(name, entry, patterns) for name, entry in entries_of(SchemeSection.CALLBACKS)),
    )
