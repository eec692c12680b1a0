"""The sections `response` and `denyWith`: headers and metadata for the application, and responses to denied clients."""

from __future__ import annotations

from eastgate.cluster.resources import dns_subdomain
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.entries import entry, section
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.validation import Checking, exactly_one, record
from eastgate.dialects.kuadrant.schemes.values import MAX_TTL_SECONDS, header_name, named_values, value
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Text, Whole, not_empty
from eastgate.settings import Settings

HEADER_WRAPPER = "httpHeader"
METADATA_FIELDS = ("dynamicMetadata", "filters")  # AuthConfig's name, and AuthPolicy's


def _key(node: Node, to: Checking) -> None:
    if not node.text:
        to.report(codes.NAME, "the key is empty", node, help="write a key, or leave it out: it is the name then")


def _json(style: Style) -> Field[Settings]:
    properties = named_values(style, "a mapping of properties")
    example = style.pick("[{name: .., value: ..}]", "{<name>: {selector: ..}}")
    return Field(record("json", {"properties": Field(properties, required=True, help=f"write properties: {example}")}))


def _methods(style: Style, complete: bool) -> dict[str, Field[Settings]]:
    methods = {"plain": Field(value(style, "plain")), "json": _json(style)}
    return {**methods, "wristband": _wristband(style)} if complete else methods


def _unsupported(complete: bool) -> tuple[str, ...]:
    return () if complete else ("wristband",)


# Issued tokens

_ALGORITHMS = ("ES256", "ES384", "ES512", "RS256", "RS384", "RS512")
_KEYS_HELP = "write signingKeyRefs: [{name: <a Secret with key.pem>, algorithm: ES256}]"


def _wristband(style: Style) -> Field[Settings]:
    key: Record[Settings] = record(
        "a signing key",
        {
            "name": Field(dns_subdomain("a name"), required=True, help="write name: <a Secret with key.pem>"),
            "algorithm": Field(Choice(_ALGORITHMS), required=True, help="write algorithm: ES256"),
        },
    )
    keys = ListOf(key, "a list of signing keys", not_empty(codes.NAME, "there is no signing key", _KEYS_HELP))
    return Field(
        record(
            "wristband",
            {
                "issuer": Field(Text("a URL", _key), required=True, help="write issuer: <the URL of the issuer>"),
                "customClaims": Field(named_values(style, "a mapping of claims")),
                "tokenDuration": Field(Whole(1, MAX_TTL_SECONDS, codes.TTL, "a number of seconds")),
                "signingKeyRefs": Field(keys, required=True, help=_KEYS_HELP),
            },
        )
    )


# Denials


def denials(style: Style) -> dict[str, Field[Settings]]:
    """Return the fields for the responses to a client that is not recognized, or not allowed."""
    denial: Record[Settings] = record(
        "a denial",
        {
            "code": Field(Whole(300, 599, codes.STATUS, "a status")),
            "message": Field(value(style, "message")),
            "headers": Field(named_values(style, "a mapping of headers", headers=True)),
            "body": Field(value(style, "body")),
        },
        misspelt={"status": "code", "statusCode": "code"},
    )
    return {"unauthenticated": Field(denial), "unauthorized": Field(denial)}


# As in v1beta1


def _wrapped_in_a_header(node: Node, to: Checking) -> None:
    wrapper, key = node.get("wrapper"), node.get("wrapperKey") or node["name"]
    if (wrapper is None or wrapper.text == HEADER_WRAPPER) and key.text:
        header_name(key, to)


def old_responses(*, complete: bool = False) -> Field[Settings]:
    """Return the shape of a list of responses, in headers or in metadata."""
    item = entry(
        Style.OLD,
        "a response",
        _methods(Style.OLD, complete),
        _wrapped_in_a_header,
        extra={
            "wrapper": Field(Choice((HEADER_WRAPPER, "envoyDynamicMetadata"))),
            "wrapperKey": Field(Text("a key", _key)),
        },
        unsupported=_unsupported(complete),
        moved={"key": "write wrapperKey: .."},
    )
    return section(Style.OLD, "responses", item)


# As in v1beta2


def _header_keys(items: Node, to: Checking) -> None:
    """Check the names of headers: the key of an item, or its name if it has no key."""
    for name, item in items.items():
        key = item.get("key")
        if key is not None and isinstance(key.value, str):
            if key.text:
                header_name(key, to)
        elif key is None and name.strip():
            header_name(items.keys[name], to)


def new_response(*metadata_fields: str, complete: bool = False) -> Field[Settings]:
    """Return the shape of a mapping of responses to admitted and to denied callers.

    `metadata_fields` are the allowed names for metadata of the proxy. If it is empty, all known names are allowed.
    """
    names = metadata_fields or METADATA_FIELDS
    others = [name for name in METADATA_FIELDS if name not in names]
    item = entry(
        Style.NEW,
        "a response",
        _methods(Style.NEW, complete),
        extra={"key": Field(Text("a key", _key))},
        unsupported=_unsupported(complete),
        moved={
            "wrapperKey": "write key: ..",
            "wrapper": f"write it in headers: {{..}} or in {names[0]}: {{..}}",
        },
    )
    success: Record[Settings] = record(
        "success",
        {
            "headers": section(Style.NEW, "responses", item, _header_keys),
            **{name: section(Style.NEW, "responses", item) for name in names},
        },
        *((_one_word_for_metadata,) if len(names) > 1 else ()),
        renamed=dict.fromkeys(others, f"write {names[0]}: .."),
        misspelt={"metadata": names[0]},
    )
    return Field(
        record(
            "response",
            {**denials(Style.NEW), "success": Field(success)},
            misspelt=dict.fromkeys(("headers", *METADATA_FIELDS), "success"),
        )
    )


def _one_word_for_metadata(node: Node, to: Checking) -> None:
    if all(name in node for name in METADATA_FIELDS):
        exactly_one(codes.MIXED_VERSIONS, "success", METADATA_FIELDS)(node, to)
