"""The sections `metadata`, JSON that is fetched with HTTP requests, and `callbacks`, requests after a decision."""

from __future__ import annotations

from eastgate.cluster.resources import dns_subdomain
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.credentials import credentials
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, needs, record
from eastgate.dialects.kuadrant.schemes.values import TEMPLATE_URL, TIMEOUT, named_values, value
from eastgate.manifests.node import Node
from eastgate.manifests.shapes import Choice, Field, Record, Text, quoted
from eastgate.settings import Settings

__all__ = ["callbacks", "metadata"]

_OTHER_METHODS = ("PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE")
_METHOD = Choice(
    ("GET", "POST"),
    reasons=dict.fromkeys(
        _OTHER_METHODS,
        (codes.METADATA_UNSUPPORTED, "metadata is fetched: write GET, or POST for a request with a body"),
    ),
)
_BODIES = ("body", "bodyParameters")


def _secret_key(node: Node, to: Checking) -> None:
    if not node.text:
        to.report(codes.NAME, f"{quoted(node.text)} is not a key of a Secret", node, help="write the key of the value")


_SHARED_SECRET: Record[Settings] = record(
    "sharedSecretRef",
    {
        "name": Field(dns_subdomain("a name"), required=True, help="write name: <a Secret>"),
        "key": Field(Text("a key", _secret_key), required=True, help="write key: <the key of the value in the Secret>"),
    },
)


def _one_body(node: Node, to: Checking) -> None:
    """Reject both of `body` and `bodyParameters`, and either in a GET."""
    fields = [name for name in (*_BODIES, "contentType") if name in node]
    if all(name in node for name in _BODIES):
        message = "`body` and `bodyParameters` cannot both be sent"
        to.report(codes.HTTP_CALL, message, node.key_span("bodyParameters"), help="remove one of them")
    elif fields and ("method" not in node or node["method"].text == "GET"):
        message = "a GET request has no body"
        to.report(codes.HTTP_CALL, message, node.key_span(fields[0]), help="write method: POST, or remove it")


def _credentials_of_a_secret(node: Node, to: Checking) -> None:
    if "credentials" in node and "sharedSecretRef" not in node and "oauth2" not in node:
        message = "there is no secret to send as `credentials`"
        way_out = "write sharedSecretRef: {name: .., key: ..}, or remove `credentials`"
        to.report(codes.CREDENTIALS, message, node.key_span("credentials"), help=way_out)


def _http(style: Style) -> Record[Settings]:
    mine, other = ("endpoint", "url") if style is Style.OLD else ("url", "endpoint")

    return record(
        "http",
        {
            mine: Field(TEMPLATE_URL),
            "method": Field(_METHOD),
            "body": Field(value(style, "body")),
            "bodyParameters": Field(named_values(style, "a mapping of parameters")),
            "contentType": Field(Choice(("application/x-www-form-urlencoded", "application/json"))),
            "headers": Field(named_values(style, "a mapping of headers", headers=True)),
            "sharedSecretRef": Field(_SHARED_SECRET),
            "credentials": Field(credentials(style)),
            **({} if style is Style.OLD else {"timeout": TIMEOUT}),
        },
        needs(codes.URL, "http", mine, "<a URL>", other, "urlExpression"),
        _one_body,
        _credentials_of_a_secret,
        unsupported=("oauth2", "urlExpression"),
        renamed={other: f"write {mine}: .."},
        misspelt={"uri": mine, "sharedSecret": "sharedSecretRef"},
    )


def metadata(style: Style) -> Field[Settings]:
    """Return the shape of the section."""
    method = {"http": Field(_http(style), help=f"write http: {{{style.pick('endpoint', 'url')}: ..}}")}
    return section(
        style, "sources of metadata", entry(style, "a source of metadata", method, unsupported=("userInfo", "uma"))
    )


def callbacks(style: Style) -> Field[Settings]:
    """Return the shape of the section."""
    method = {"http": Field(_http(style), help=f"write http: {{{style.pick('endpoint', 'url')}: ..}}")}
    return section(style, "callbacks", entry(style, "a callback", method))
