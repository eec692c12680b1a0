"""The section `identity`, or `authentication`: the ways to recognize a caller."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.cluster.resources import dns_subdomain, label_selector, selector_of
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.credentials import credentials
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, exactly_one, needs, not_empty, record
from eastgate.dialects.kuadrant.schemes.values import LONGEST_KEPT, SELECTED, TIMEOUT, URL, named_values
from eastgate.ir.labels import Selector
from eastgate.manifests.node import Node
from eastgate.manifests.shapes import Cel, Field, Flag, ListOf, Record, Text, Whole, constraint, quoted
from eastgate.settings import Settings

__all__ = ["identities", "secrets_of"]

Shape = Record[Settings]


# Secrets

_SELECTOR: Shape = label_selector()
_EXAMPLE = "write selector: {matchLabels: {<label>: <value>}}"
_EMPTY: dict[str, object] = {"matchLabels": {}, "matchExpressions": []}


def secrets_of(node: Node) -> Selector:
    """Return the selector of Secrets of a checked `apiKey` or `x509`."""
    labels = node.get("labelSelectors")
    if labels is not None:
        return Selector.of({key: value.text for key, value in labels.items()})
    return selector_of(node["selector"])


def _selects_some(node: Node, to: Checking) -> None:
    """Reject an empty selector, which selects every Secret."""
    selector, labels = node.get("selector"), node.get("labelSelectors")
    empty = labels is not None and labels.value == {}
    if selector is not None:
        empty = all(part.value == _EMPTY.get(key) for key, part in selector.items())
    if empty:
        message = "every Secret of the namespace would be selected"
        to.report(codes.SECRETS, message, selector or labels or node, help=_EXAMPLE)


def _some_label(fields: Iterable[str]) -> Cel:
    """Write the demand of `_selects_some` for an API server."""
    parts = ["self.selector.matchLabels", "self.selector.matchExpressions"]
    by_labels = "!has(self.selector) || " + " || ".join(f"has({part}) && size({part}) > 0" for part in parts)
    plain = " && (!has(self.labelSelectors) || size(self.labelSelectors) > 0)" if "labelSelectors" in fields else ""
    return Cel(f"({by_labels}){plain}", "every Secret of the namespace would be selected")


def _secrets(style: Style, what: str, unsupported: tuple[str, ...] = ()) -> Field[Settings]:
    fields: dict[str, Field[Settings]] = {"selector": Field(_SELECTOR, help=_EXAMPLE)}
    renamed: dict[str, str] = {}
    if what == "apiKey" and style is Style.OLD:
        labels = _SELECTOR.fields["matchLabels"].shape
        fields["labelSelectors"] = Field(labels, help="write labelSelectors: {<label>: <value>}")
    else:
        renamed["labelSelectors"] = _EXAMPLE
    demand = exactly_one(codes.SECRETS, what, tuple(fields), tuple(renamed))
    one_selector = constraint(_some_label(fields), oneOf=[{"required": [name]} for name in fields])(demand)
    return Field(
        record(
            what,
            {**fields, "allNamespaces": Field(Flag())},
            one_selector,
            _selects_some,
            unsupported=unsupported,
            renamed=renamed,
            misspelt={"matchLabels": "selector", "labels": "selector"},
            advice={"matchLabels": _EXAMPLE, "labels": _EXAMPLE},
        ),
        help=f"write {what}: {{selector: {{matchLabels: {{..}}}}}}",
    )


_CLIENT_CREDENTIALS: Field[Settings] = Field(
    record("credentialsRef", {"name": Field(dns_subdomain("a name"), required=True, help="write name: <a Secret>")}),
    required=True,
    help="write credentialsRef: {name: <a Secret with clientID and clientSecret>}",
)


# Tokens


def _not_blank(node: Node, to: Checking) -> None:
    if not node.text.strip():
        to.report(codes.NAME, f"{quoted(node.text)} is not an audience", node, help="write the audience, or remove it")


_AUDIENCES: Field[Settings] = Field(
    ListOf(
        Text("an audience", _not_blank),
        "a list of audiences",
        not_empty(codes.NAME, "there is no audience in the list", "write an audience, or leave `audiences` out"),
    )
)
_KEYS_KEPT: Field[Settings] = Field(Whole(0, LONGEST_KEPT, codes.TTL, "a number of seconds"))

_OIDC: Shape = record(
    "oidc",
    {
        "endpoint": Field(URL),
        "ttl": _KEYS_KEPT,
        "audiences": _AUDIENCES,
    },
    needs(codes.ISSUER, "oidc", "endpoint", "<the URL of the issuer>", "issuerUrl", "jwksUrl"),
    renamed={
        "issuerUrl": "write endpoint: ..",
        "jwksUrl": "write endpoint: <the URL of the issuer>; a key set alone stands beside `authentication`",
    },
    misspelt={"issuer": "endpoint", "url": "endpoint", "audience": "audiences", "aud": "audiences"},
    advice={"audience": "write audiences: [..]", "aud": "write audiences: [..]"},
)


_JWT: Shape = record(
    "jwt",
    {"issuerUrl": Field(URL), "jwksUrl": Field(URL), "ttl": _KEYS_KEPT, "audiences": _AUDIENCES, "timeout": TIMEOUT},
    exactly_one(codes.ISSUER, "jwt", ("issuerUrl", "jwksUrl"), ("endpoint",)),
    renamed={"endpoint": "write issuerUrl: .."},
    misspelt={"issuer": "issuerUrl", "jwksUri": "jwksUrl", "audience": "audiences", "aud": "audiences"},
    advice={"audience": "write audiences: [..]", "aud": "write audiences: [..]"},
)


def _introspection(style: Style) -> Field[Settings]:
    old, new = "tokenIntrospectionUrl", "endpoint"
    mine, other = (old, new) if style is Style.OLD else (new, old)
    what = style.pick("oauth2", "oauth2Introspection")
    timeout = {} if style is Style.OLD else {"timeout": TIMEOUT}
    return Field(
        record(
            what,
            {
                mine: Field(URL),
                "tokenTypeHint": Field(Text("a hint")),
                "credentialsRef": _CLIENT_CREDENTIALS,
                **timeout,
            },
            needs(codes.URL, what, mine, "<the URL of the introspection endpoint>", other),
            renamed={other: f"write {mine}: .."},
            misspelt={"url": mine},
        )
    )


def _review(**more: Field[Settings]) -> Shape:
    return record("a review of tokens", {"audiences": _AUDIENCES, **more}, misspelt={"audience": "audiences"})


_NOTHING: Field[Settings] = Field(record("anonymous", {}), help="write anonymous: {}")


def _plain(style: Style) -> Field[Settings]:
    mine, other = ("authJSON", "selector") if style is Style.OLD else ("selector", "authJSON")
    return Field(
        record(
            "plain",
            {mine: Field(SELECTED)},
            needs(codes.VALUE, "plain", mine, "<a selector>", other, "expression"),
            unsupported=("expression",),
            renamed={other: f"write {mine}: .."},
        )
    )


# Entries


def _no_idle_credentials(node: Node, to: Checking) -> None:
    """Reject credentials of a method that looks at none: they would have no effect."""
    idle = [name for name in ("mtls", "x509", "plain", "anonymous") if name in node]
    if idle and "credentials" in node:
        message = f"`{idle[0]}` does not look at credentials"
        to.report(codes.CREDENTIALS, message, node.key_span("credentials"), help="remove `credentials`")


_OLD: Shape = entry(
    Style.OLD,
    "an identity",
    {
        "oidc": Field(_OIDC, help="write oidc: {endpoint: ..}"),
        "apiKey": _secrets(Style.OLD, "apiKey"),
        "mtls": _secrets(Style.OLD, "mtls"),
        "kubernetes": Field(_review(), help="write kubernetes: {}"),
        "oauth2": _introspection(Style.OLD),
        "plain": _plain(Style.OLD),
        "anonymous": _NOTHING,
    },
    _no_idle_credentials,
    extra={
        "credentials": Field(credentials(Style.OLD)),
        "extendedProperties": Field(named_values(Style.OLD, "a mapping of properties", overwrite=True)),
    },
    unsupported=("hmac", "openshift"),
    renamed={
        "jwt": "write oidc: {endpoint: ..}",
        "x509": "write mtls: {selector: {..}}",
        "kubernetesTokenReview": "write kubernetes: {audiences: [..]}",
        "oauth2Introspection": "write oauth2: {tokenIntrospectionUrl: .., credentialsRef: {..}}",
    },
    moved={
        "defaults": "write extendedProperties: [{name: .., value: ..}]",
        "overrides": "write extendedProperties: [{name: .., value: .., overwrite: true}]",
    },
)
_NEW: Shape = entry(
    Style.NEW,
    "an authentication",
    {
        "jwt": Field(_JWT, help="write jwt: {issuerUrl: ..}"),
        "apiKey": _secrets(Style.NEW, "apiKey", unsupported=("keySelector",)),
        "x509": _secrets(Style.NEW, "x509", unsupported=("source",)),
        "kubernetesTokenReview": Field(_review(timeout=TIMEOUT), help="write kubernetesTokenReview: {}"),
        "oauth2Introspection": _introspection(Style.NEW),
        "plain": _plain(Style.NEW),
        "anonymous": _NOTHING,
    },
    _no_idle_credentials,
    extra={
        "credentials": Field(credentials(Style.NEW)),
        "defaults": Field(named_values(Style.NEW, "a mapping of properties")),
        "overrides": Field(named_values(Style.NEW, "a mapping of properties")),
    },
    unsupported=("hmac", "openshift"),
    renamed={
        "oidc": "write jwt: {issuerUrl: ..}",
        "mtls": "write x509: {selector: {..}}",
        "kubernetes": "write kubernetesTokenReview: {audiences: [..]}",
        "oauth2": "write oauth2Introspection: {endpoint: .., credentialsRef: {..}}",
    },
    moved={
        "extendedProperties": "write defaults: {<name>: {value: ..}}, or overrides: {..}",
    },
)


def identities(style: Style) -> Field[Settings]:
    """Return the shape of the section."""
    if style is Style.OLD:
        return section(style, "identities", _OLD)
    return section(style, "authentications", _NEW)
