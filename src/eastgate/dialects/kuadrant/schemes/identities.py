"""The section `identity`, or `authentication`: the methods to recognize a caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eastgate.cluster.resources import label_selector, selector_of
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.credentials import CLIENT_CREDENTIALS, LOCATIONS, credentials
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, exactly_one, needs, record
from eastgate.dialects.kuadrant.schemes.values import (
    EXPRESSION,
    MAX_TTL_SECONDS,
    SELECTED,
    TIMEOUT,
    URL,
    header_name,
    named_values,
)
from eastgate.ir.labels import Selector
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import (
    Cel,
    Field,
    Flag,
    ListOf,
    Record,
    Text,
    Whole,
    constraint,
    not_empty,
    quoted,
)
from eastgate.settings import Settings

Shape = Record[Settings]


# Secrets

_SELECTOR: Shape = label_selector()
_EXAMPLE = "write selector: {matchLabels: {<label>: <value>}}"
_EMPTY: dict[str, object] = {"matchLabels": {}, "matchExpressions": []}


def secrets_of(node: Node) -> Selector:
    """Return the Secret selector of a checked `apiKey` or `x509`."""
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
    """Return the check of `_selects_some` for an API server."""
    parts = ["self.selector.matchLabels", "self.selector.matchExpressions"]
    by_labels = "!has(self.selector) || " + " || ".join(f"has({part}) && size({part}) > 0" for part in parts)
    plain = " && (!has(self.labelSelectors) || size(self.labelSelectors) > 0)" if "labelSelectors" in fields else ""
    return Cel(f"({by_labels}){plain}", "every Secret of the namespace would be selected")


def _secrets(
    style: Style, what: str, extra: Mapping[str, Field[Settings]] | None = None, unsupported: tuple[str, ...] = ()
) -> Field[Settings]:
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
            {**fields, "allNamespaces": Field(Flag()), **(extra or {})},
            one_selector,
            _selects_some,
            unsupported=unsupported,
            renamed=renamed,
            misspelt={"matchLabels": "selector", "labels": "selector"},
            advice={"matchLabels": _EXAMPLE, "labels": _EXAMPLE},
        ),
        help=f"write {what}: {{selector: {{matchLabels: {{..}}}}}}",
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
_KEYS_KEPT: Field[Settings] = Field(Whole(0, MAX_TTL_SECONDS, codes.TTL, "a number of seconds"))

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
                "credentialsRef": CLIENT_CREDENTIALS,
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


def _plain(style: Style, complete: bool) -> Field[Settings]:
    mine, other = ("authJSON", "selector") if style is Style.OLD else ("selector", "authJSON")
    renamed = {other: f"write {mine}: .."}
    if complete and style is Style.NEW:
        rule = exactly_one(codes.VALUE, "plain", (mine, "expression"), (other,))
        return Field(record("plain", {mine: Field(SELECTED), "expression": EXPRESSION}, rule, renamed=renamed))
    return Field(
        record(
            "plain",
            {mine: Field(SELECTED)},
            needs(codes.VALUE, "plain", mine, "<a selector>", other, "expression"),
            unsupported=() if complete else ("expression",),
            renamed=renamed,
        )
    )


# Certificates

_SOURCES = ("xfccHeader", "clientCertHeader", "expression")


def _at_most_one_source(node: Node, to: Checking) -> None:
    sources = [name for name in _SOURCES if name in node]
    if len(sources) > 1:
        message = f"a certificate has one of `{sources[0]}` and `{sources[1]}`, not both"
        to.report(codes.VALUE, message, node.key_span(sources[1]), help="remove one of them")


_HEADER: Field[Settings] = Field(Text("the name of a header", header_name))
_CERTIFICATE_SOURCE: Field[Settings] = Field(
    record(
        "source",
        {"xfccHeader": _HEADER, "clientCertHeader": _HEADER, "expression": EXPRESSION},
        _at_most_one_source,
    )
)


# Entries


def _no_idle_credentials(node: Node, to: Checking) -> None:
    """Reject credentials of a method that reads none, because they would have no effect."""
    idle = [name for name in ("mtls", "x509", "plain", "anonymous") if name in node]
    if idle and "credentials" in node and node["credentials"].value != {}:
        message = f"`{idle[0]}` does not read credentials"
        to.report(codes.CREDENTIALS, message, node.key_span("credentials"), help="remove `credentials`")


def _old(complete: bool) -> Shape:
    return entry(
        Style.OLD,
        "an identity",
        {
            "oidc": Field(_OIDC, help="write oidc: {endpoint: ..}"),
            "apiKey": _secrets(Style.OLD, "apiKey"),
            "mtls": _secrets(Style.OLD, "mtls"),
            "kubernetes": Field(_review(), help="write kubernetes: {}"),
            "oauth2": _introspection(Style.OLD),
            "plain": _plain(Style.OLD, complete),
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


def _new(complete: bool) -> Shape:
    certificates = (
        _secrets(Style.NEW, "x509", {"source": _CERTIFICATE_SOURCE})
        if complete
        else _secrets(Style.NEW, "x509", unsupported=("source",))
    )
    return entry(
        Style.NEW,
        "an authentication",
        {
            "jwt": Field(_JWT, help="write jwt: {issuerUrl: ..}"),
            "apiKey": _secrets(Style.NEW, "apiKey", unsupported=("keySelector",)),
            "x509": certificates,
            "kubernetesTokenReview": Field(_review(timeout=TIMEOUT), help="write kubernetesTokenReview: {}"),
            "oauth2Introspection": _introspection(Style.NEW),
            "plain": _plain(Style.NEW, complete),
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
        misplaced={name: f"write credentials: {{{name}: ..}} into the entry that has the method" for name in LOCATIONS},
    )


def identities(style: Style, *, complete: bool = False) -> Field[Settings]:
    """Return the shape of the section. `complete`: with all features of Authorino, which the kind of 2022 lacks."""
    if style is Style.OLD:
        return section(style, "identities", _old(complete))
    return section(style, "authentications", _new(complete))
