"""The sections `metadata` (JSON from HTTP requests) and `callbacks` (requests after a decision)."""

from __future__ import annotations

from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster.resources import dns_subdomain
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.credentials import CLIENT_CREDENTIALS, credentials
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.styles import Style, entries
from eastgate.dialects.kuadrant.schemes.validation import Checking, exactly_one, needs, record
from eastgate.dialects.kuadrant.schemes.values import EXPRESSION, TEMPLATE_URL, TIMEOUT, URL, named_values, value
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, Flag, ListOf, MapOf, Record, Text, quoted
from eastgate.settings import Settings

_SENT = ("GET", "POST")
_OTHER_METHODS = ("PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE")
_METHOD = Choice(
    _SENT,
    reasons=dict.fromkeys(
        _OTHER_METHODS,
        (codes.METADATA_UNSUPPORTED, "metadata is fetched: write GET, or POST for a request with a body"),
    ),
)
_ANY_METHOD = Choice((*_SENT, *_OTHER_METHODS))
_BODIES = ("body", "bodyParameters")
FORM = "application/x-www-form-urlencoded"


def _secret_key(node: Node, to: Checking) -> None:
    if not node.text:
        to.report(codes.NAME, f"{quoted(node.text)} is not a key of a Secret", node, help="write the key of the value")


def secret_reference(what: str) -> Record[Settings]:
    """Return the shape of a reference to one value in a Secret."""
    key = Text("a key", _secret_key)
    return record(
        what,
        {
            "name": Field(dns_subdomain("a name"), required=True, help="write name: <a Secret>"),
            "key": Field(key, required=True, help="write key: <the key of the value in the Secret>"),
        },
    )


_SHARED_SECRET: Record[Settings] = secret_reference("sharedSecretRef")


def _client_name(node: Node, to: Checking) -> None:
    if not node.text:
        to.report(codes.NAME, "the name of the client is empty", node, help="write clientId: ..")


_CLIENT: Record[Settings] = record(
    "oauth2",
    {
        "tokenUrl": Field(URL, required=True, help="write tokenUrl: <the URL of the token endpoint>"),
        "clientId": Field(Text("the name of a client", _client_name), required=True, help="write clientId: .."),
        "clientSecretRef": Field(
            secret_reference("clientSecretRef"), required=True, help="write clientSecretRef: {name: .., key: ..}"
        ),
        "scopes": Field(ListOf(Text("a scope"), "a list of scopes")),
        "extraParams": Field(MapOf(Text("a parameter"), "a mapping of parameters")),
        "cache": Field(Flag()),
        "timeout": TIMEOUT,
    },
    misspelt={"tokenURL": "tokenUrl", "clientID": "clientId", "clientSecret": "clientSecretRef", "scope": "scopes"},
)


def _one_body(node: Node, to: Checking) -> None:
    """Reject `body` together with `bodyParameters`, and either of them in a GET."""
    fields = [name for name in (*_BODIES, "contentType") if name in node and not _is_default(name, node[name])]
    if all(name in node for name in _BODIES):
        message = "`body` and `bodyParameters` cannot both be sent"
        to.report(codes.HTTP_CALL, message, node.key_span("bodyParameters"), help="remove one of them")
    elif fields and ("method" not in node or node["method"].text == "GET"):
        message = "a GET request has no body"
        to.report(codes.HTTP_CALL, message, node.key_span(fields[0]), help="write method: POST, or remove it")


def _method_is_sent(node: Node, to: Checking) -> None:
    """Warn of a method that the CRD accepts and Authorino does not send."""
    method = node.get("method")
    if method is not None and method.text not in _SENT:
        message = f"Authorino sends no request with the method {method.text}"
        to.report(codes.METHOD_NOT_SENT, message, method, help="write GET, or POST for a request with a body")


def _is_default(name: str, node: Node) -> bool:
    """Return whether the field has a default value, which an API server may have written and which changes nothing."""
    return name == "contentType" and node.value == FORM


def _credentials_of_a_secret(node: Node, to: Checking) -> None:
    location = node.get("credentials")
    if location is not None and location.value and "sharedSecretRef" not in node and "oauth2" not in node:
        message = "there is no secret to send as `credentials`"
        way_out = "write sharedSecretRef: {name: .., key: ..}, or remove `credentials`"
        to.report(codes.CREDENTIALS, message, node.key_span("credentials"), help=way_out)


def _http(style: Style, complete: bool) -> Record[Settings]:
    mine, other = ("endpoint", "url") if style is Style.OLD else ("url", "endpoint")
    computed = complete and style is Style.NEW
    needs_url = (
        exactly_one(codes.URL, "http", (mine, "urlExpression"), (other,))
        if computed
        else needs(codes.URL, "http", mine, "<a URL>", other, "urlExpression")
    )

    return record(
        "http",
        {
            mine: Field(TEMPLATE_URL),
            "method": Field(_ANY_METHOD if computed else _METHOD),
            "body": Field(value(style, "body")),
            "bodyParameters": Field(named_values(style, "a mapping of parameters")),
            "contentType": Field(Choice((FORM, "application/json"))),
            "headers": Field(named_values(style, "a mapping of headers", headers=True)),
            "sharedSecretRef": Field(_SHARED_SECRET),
            "credentials": Field(credentials(style)),
            **({} if style is Style.OLD else {"timeout": TIMEOUT}),
            **({"urlExpression": EXPRESSION} if computed else {}),
            **({"oauth2": Field(_CLIENT)} if complete else {}),
        },
        needs_url,
        _one_body,
        _method_is_sent,
        _credentials_of_a_secret,
        unsupported=() if complete else ("oauth2", "urlExpression"),
        renamed={other: f"write {mine}: .."},
        misspelt={"uri": mine, "sharedSecret": "sharedSecretRef"},
    )


def metadata(style: Style, *, complete: bool = False) -> Field[Settings]:
    """Return the shape of the section. `complete`: with all features of Authorino, which the kind of 2022 lacks."""
    methods = {"http": _http_method(style, complete)}
    if complete:
        methods |= {"userInfo": Field(_user_info(style)), "uma": Field(_uma(style))}
    unsupported = () if complete else ("userInfo", "uma")
    return section(style, "sources of metadata", entry(style, "a source of metadata", methods, unsupported=unsupported))


def _http_method(style: Style, complete: bool) -> Field[Settings]:
    return Field(_http(style, complete), help=f"write http: {{{style.pick('endpoint', 'url')}: ..}}")


def _timeout(style: Style) -> dict[str, Field[Settings]]:
    return {} if style is Style.OLD else {"timeout": TIMEOUT}


def _user_info(style: Style) -> Record[Settings]:
    """Return the shape of a source of claims about the bearer of a token."""
    source: dict[str, Field[Settings]] = {"identitySource": Field(Text("the name of an authentication"))}
    if style is Style.OLD:
        rule = needs(codes.ISSUER, "userInfo", "identitySource", "<the name of an identity with oidc>")
        return record("userInfo", source, rule)
    return record(
        "userInfo",
        {**source, "userInfoUrl": Field(URL), **_timeout(style)},
        exactly_one(codes.ISSUER, "userInfo", ("identitySource", "userInfoUrl")),
    )


def identity_sources(scheme: Node, to: Checking) -> None:
    """Require that each identitySource names an authentication of the same scheme that verifies tokens of an issuer."""
    identities = scheme.get("authentication") or scheme.get("identity")
    issuers = [name for name, entry in entries(identities) if _has_issuer(entry)]
    for _, entry_ in entries(scheme.get("metadata")):
        info = entry_.get("userInfo")
        source = info.get("identitySource") if info is not None else None
        if source is None or not isinstance(source.value, str) or source.text in issuers:
            continue
        near = did_you_mean(source.text, issuers)
        message = f"no authentication by tokens of an issuer has the name {quoted(source.text)}"
        way_out = f"did you mean `{near}`?" if near else "write the name of one with `issuerUrl`, or userInfoUrl: .."
        to.report(codes.NO_SUCH_IDENTITY, message, source, help=way_out)


def _has_issuer(entry_: Node) -> bool:
    return any(name in entry_ and field in entry_[name] for name, field in (("jwt", "issuerUrl"), ("oidc", "endpoint")))


def _uma(style: Style) -> Record[Settings]:
    return record(
        "uma",
        {
            "endpoint": Field(URL, required=True, help="write endpoint: <the URL of the UMA server>"),
            "credentialsRef": CLIENT_CREDENTIALS,
            **_timeout(style),
        },
    )


def callbacks(style: Style) -> Field[Settings]:
    """Return the shape of the section."""
    return section(style, "callbacks", entry(style, "a callback", {"http": _http_method(style, complete=True)}))
