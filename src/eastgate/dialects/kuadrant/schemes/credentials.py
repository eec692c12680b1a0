"""`credentials`, the place of a credential in a request, and `credentialsRef`, a Secret with a client's credentials."""

from __future__ import annotations

import re

from eastgate.basics.regexes import regex
from eastgate.cluster.resources import dns_subdomain
from eastgate.dialects.kuadrant.authorino.model import Credentials, Where
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, record
from eastgate.dialects.kuadrant.schemes.values import header_name
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, Record, Text, quoted
from eastgate.settings import Settings

LOCATIONS = {
    "authorizationHeader": Where.AUTHORIZATION_HEADER,
    "customHeader": Where.CUSTOM_HEADER,
    "queryString": Where.QUERY,
    "cookie": Where.COOKIE,
}
"""The locations of the credential fields in v1beta2."""
_NAMES = {Where.CUSTOM_HEADER: "a header", Where.QUERY: "a query parameter", Where.COOKIE: "a cookie"}
_COOKIE = regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def credentials(style: Style) -> Record[Settings]:
    """Return the shape in a style."""
    return _OLD if style is Style.OLD else _NEW


def read_credentials(node: Node | None) -> Credentials:
    """Read the credentials of a checked node. Without one, they are Bearer tokens."""
    if node is None:
        return Credentials()
    location, key = node.get("in"), node.get("keySelector")
    where = Where(location.text) if location is not None else Where.AUTHORIZATION_HEADER
    for field, field_where in LOCATIONS.items():
        if field in node:
            where, key = field_where, node[field].get("prefix") or node[field].get("name")
    return Credentials(where, key.text) if key is not None else Credentials(where)


# As in v1beta1


def _key_fits(node: Node, to: Checking) -> None:
    location, key = node.get("in"), node.get("keySelector")
    where = Where(location.text) if location is not None else Where.AUTHORIZATION_HEADER
    if where is Where.AUTHORIZATION_HEADER:
        if key is not None:
            _prefix(key, to)
    elif key is None:
        message = f"`in: {where}` needs `keySelector`"
        to.report(
            codes.CREDENTIALS, message, location or node, help=f"write keySelector: <the name of {_NAMES[where]}>"
        )
    else:
        _name(where, key, to)


_OLD: Record[Settings] = record(
    "credentials",
    {"in": Field(Choice(tuple(Where), codes.CREDENTIALS)), "keySelector": Field(Text("a prefix or a name"))},
    _key_fits,
    renamed={
        "authorizationHeader": "write in: authorization_header and keySelector: <the prefix>",
        "customHeader": "write in: custom_header and keySelector: <the name>",
        "queryString": "write in: query and keySelector: <the name>",
        "cookie": "write in: cookie and keySelector: <the name>",
    },
)


# As in v1beta2


def _one_location(node: Node, to: Checking) -> None:
    locations = [key for key, _ in node.items() if key in LOCATIONS]
    if len(locations) > 1:
        message = f"a credential is in one place, not in `{locations[0]}` and `{locations[1]}`"
        to.report(codes.CREDENTIALS, message, node.key_span(locations[1]), help="write an entry for each place")


def _named_location(where: Where) -> Field[Settings]:
    def rule(node: Node, to: Checking) -> None:
        _name(where, node, to)

    name: Field[Settings] = Field(
        Text("a name", rule),
        required=True,
        missing=codes.CREDENTIALS,
        help=f"write name: <the name of {_NAMES[where]}>",
    )
    return Field(
        record(next(field for field, field_where in LOCATIONS.items() if field_where is where), {"name": name})
    )


def _prefix(node: Node, to: Checking) -> None:
    if not node.text or re.search(r"\s", node.text):
        message = f"{quoted(node.text)} cannot be the prefix of a credential"
        way_out = "write a word such as APIKEY, or leave it out for Bearer"
        to.report(codes.CREDENTIALS, message, node, help=way_out)


def _name(where: Where, node: Node, to: Checking) -> None:
    if where is Where.CUSTOM_HEADER and node.text:
        header_name(node, to)
    elif not node.text or (where is Where.COOKIE and not _COOKIE.fullmatch(node.text)):
        message = f"{quoted(node.text)} is not the name of {_NAMES[where]}"
        to.report(codes.CREDENTIALS, message, node, help="write the name under which clients send the credential")


_NEW: Record[Settings] = record(
    "credentials",
    {
        "authorizationHeader": Field(
            record("authorizationHeader", {"prefix": Field(Text("a prefix", _prefix))}),
            help="write authorizationHeader: {prefix: ..}",
        ),
        "customHeader": _named_location(Where.CUSTOM_HEADER),
        "queryString": _named_location(Where.QUERY),
        "cookie": _named_location(Where.COOKIE),
    },
    _one_location,
    renamed={
        "in": "write authorizationHeader, customHeader, queryString or cookie",
        "keySelector": "write authorizationHeader: {prefix: ..}, or the name: in customHeader, queryString or cookie",
    },
)


# Credentials of a client

CLIENT_CREDENTIALS: Field[Settings] = Field(
    record("credentialsRef", {"name": Field(dns_subdomain("a name"), required=True, help="write name: <a Secret>")}),
    required=True,
    help="write credentialsRef: {name: <a Secret with clientID and clientSecret>}",
)
