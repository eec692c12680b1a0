"""The fields of RequestAuthentication and PeerAuthentication. v1 and v1beta1 are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from eastgate.basics.regexes import regex
from eastgate.dialects.istio import codes
from eastgate.dialects.istio.model import MtlsMode
from eastgate.dialects.istio.shapes import SELECTOR, TARGETS, istio_resource
from eastgate.dialects.istio.validation import Checking, at_most, one_way_to_choose
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, Flag, ListOf, MapOf, Record, Text, quoted
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.reading.strict_json import Json


# Checks of Istio's webhook and API definitions beyond the types of fields


_HEADER: Final = regex(r"[-_A-Za-z0-9]+")
_DURATION: Final = regex(r"(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_NANOSECONDS: Final = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_LAST_PORT: Final = 65535


# PeerAuthentication


def ports_of_workloads(spec: Node, to: Checking) -> None:
    """Reject modes of ports if no labels select workloads, and an empty mapping of ports."""
    ports = spec.get("portLevelMtls")
    if ports is None:
        return
    selector = spec.get("selector")
    labels = selector.get("matchLabels") if selector is not None else None
    if not dict(ports.items()):
        to.report(codes.PORT_MODES, "`portLevelMtls` has no port", ports, help="write a port, or remove it")
    elif labels is None or not dict(labels.items()):
        message = "`portLevelMtls` needs a selector: a namespace or a mesh has no ports"
        to.report(codes.PORT_MODES, message, spec.key_span("portLevelMtls"), help="write selector: {matchLabels: {..}}")


def named_ports(ports: Node, to: Checking) -> None:
    """Require numbers of ports as keys."""
    for key in dict(ports.items()):
        if not (key.isascii() and key.isdecimal() and 1 <= int(key) <= _LAST_PORT):
            help_ = f"write a number between 1 and {_LAST_PORT}"
            to.report(codes.PORT_NUMBER, f"{quoted(key)} is not a port", ports.key_span(key), help=help_)


# RequestAuthentication


def some_text(node: Node, to: Checking) -> None:
    """Reject an empty text."""
    if not node.text:
        to.report(codes.EMPTY_TEXT, "it is empty", node, help="write it, or remove it")


def issuer_or_keys(rule: Node, to: Checking) -> None:
    """Require an issuer or a URL of keys."""
    if not any(name in rule for name in ("issuer", "jwksUri", "jwks_uri")):
        message = "a rule for tokens needs `issuer` or `jwksUri`"
        to.report(codes.NO_ISSUER, message, rule, help="write issuer: <the `iss` of the tokens>")


def one_key_source(rule: Node, to: Checking) -> None:
    """Reject keys that are given in two ways."""
    given = [name for name in ("jwks", "jwksUri", "jwks_uri") if name in rule]
    if len(given) > 1:
        message = f"`{given[0]}` and `{given[1]}` cannot be used together"
        to.report(codes.KEYS, message, rule.key_span(given[1]), help=f"keep `{given[0]}`, or `{given[1]}`")


def key_url(node: Node, to: Checking) -> None:
    """Require a URL with the scheme http or https."""
    try:
        url = urlsplit(node.text)
        valid = url.scheme in ("http", "https") and bool(url.hostname) and (url.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        to.report(codes.KEYS, f"{quoted(node.text)} is not a URL of keys", node, help="write https://<host>/<path>")


def key_set(node: Node, to: Checking) -> None:
    """Require the JSON of a key set, or of a key."""
    if keys_in(node.text) is None:
        to.report(codes.KEYS, "it is not a JSON Web Key Set", node, help="""write '{"keys": [..]}'""")


def keys_in(text: str) -> list[dict[str, Json]] | None:
    """Return the keys in the text of a key set, or of a single key; None if other parsers could read other keys."""
    from eastgate.reading.strict_json import read_object

    try:
        content = read_object(text.encode()) if text else {"keys": []}
    except ValueError:
        return None
    entries = content.get("keys", [content])
    keys = (
        [key for key in entries if isinstance(key, dict) and isinstance(key.get("kty"), str)]
        if isinstance(entries, list)
        else None
    )
    return keys if keys is not None and keys == entries else None


def private_keys(rule: Node, to: Checking) -> None:
    """Warn about private keys. The message does not show the keys."""
    jwks = rule.get("jwks")
    if jwks is not None and any(_PRIVATE & key.keys() for key in keys_in(jwks.text) or ()):
        message = "the key set contains private keys; only public keys are used"
        help_ = "remove the private members, and create new keys"
        to.report(codes.PRIVATE_KEY, message, rule.key_span("jwks"), help=help_)


def claim_header(node: Node, to: Checking) -> None:
    """Require the name of a header."""
    if _HEADER.fullmatch(node.text) is None:
        help_ = "write letters, digits, - and _"
        to.report(codes.CLAIM_HEADER, f"{quoted(node.text)} is not a header for a claim", node, help=help_)


def duration(node: Node, to: Checking) -> None:
    """Require a duration, as Go writes it, of a millisecond or more."""
    parts = list(_DURATION.finditer(node.text))
    whole = "".join(part[0] for part in parts) == node.text and parts
    if not whole or sum(float(part[1]) * _NANOSECONDS[part[3]] for part in parts) < _NANOSECONDS["ms"]:
        to.report(codes.DURATION, f"{quoted(node.text)} is not a timeout", node, help="write 5s")


def presence(rule: Node, to: Checking) -> None:
    """Warn about `presence: REQUIRED`, which Istio does not enforce."""
    node = rule.get("presence")
    if node is not None and node.value == "REQUIRED":
        help_ = "allow only `requestPrincipals: ['*']` in an AuthorizationPolicy"
        to.report(codes.PRESENCE, "requests without a token are still allowed", node, help=help_)


_MAX_RULES = 4096
_MAX_CLAIMS = 64

_mtls: Record[Settings] = Record(
    "mtls",
    {
        "mode": Field(
            Choice(tuple(MtlsMode), codes.MTLS_MODE),
            about="STRICT refuses plaintext, PERMISSIVE accepts both, DISABLE has no mTLS. UNSET inherits the mode.",
        )
    },
    otherwise="write mode: STRICT, PERMISSIVE or DISABLE",
)

PEER_AUTHENTICATION: Record[Settings] = istio_resource(
    "PeerAuthentication",
    Record(
        "spec",
        {
            "selector": SELECTOR,
            "mtls": Field(
                _mtls, about="The mode of the workloads. If left out, it is inherited; the last default is PERMISSIVE."
            ),
            "portLevelMtls": Field(
                MapOf(_mtls, "a mapping of ports to modes", named_ports),
                about="The modes of single ports of the workloads. They override `mtls`.",
            ),
        },
        rules=(ports_of_workloads,),
        misspelt={"portLevelMTLS": "portLevelMtls", "mTLS": "mtls"},
    ),
    about="Whether workloads of an Istio mesh accept plaintext, or only mTLS.",
)


def _texts(what: str, about: str, whole: Callable[[Node, Checking], None] | None = None) -> Field[Settings]:
    return Field(ListOf(Text(what, some_text), f"a list: {what} in each entry", whole), about=about)


_header: Record[Settings] = Record(
    "a header with a token",
    {
        "name": Field(Text("a name", some_text), required=True, about="The name of the header."),
        "prefix": Field(Text("a prefix"), about="The text before the token, with its space."),
    },
)
_copied: Record[Settings] = Record(
    "a claim that is copied",
    {
        "header": Field(Text("a name", claim_header), required=True, about="The header for the copy."),
        "claim": Field(Text("a claim", some_text), required=True, about="The name of the claim."),
    },
)
_rule: Record[Settings] = Record(
    "a rule of tokens",
    {
        "issuer": Field(Text("an issuer", some_text), about="The `iss` of accepted tokens."),
        "audiences": _texts("an audience", "A token must have any of these audiences. If left out, any audience."),
        "jwks": Field(Text("a key set", key_set), about="The keys of the issuer, as JSON."),
        "jwksUri": Field(Text("a URL", key_url), about="The URL of the keys of the issuer."),
        "jwks_uri": Field(Text("a URL", key_url), about="The old name of jwksUri."),
        "fromHeaders": Field(
            ListOf(_header, "a list of headers"),
            about="Headers with tokens. Without any location, it is `Authorization: Bearer <token>`, or "
            "the parameter `access_token`.",
        ),
        "fromParams": _texts("a parameter", "Parameters of queries that hold tokens."),
        "fromCookies": _texts("a cookie", "Cookies that hold tokens."),
        "outputPayloadToHeader": Field(Text("a header"), about="The header in which the application gets the payload."),
        "outputClaimToHeaders": Field(
            ListOf(_copied, "a list of claims"), about="Claims that the application gets in headers."
        ),
        "forwardOriginalToken": Field(Flag(), about="Whether the application gets the token."),
        "timeout": Field(Text("a duration", duration), about="The timeout for fetching keys."),
        "spaceDelimitedClaims": _texts(
            "a claim",
            "Claims to split at spaces, as for `scope` and `permission`.",
            at_most(_MAX_CLAIMS, "claims"),
        ),
        "presence": Field(
            Choice(("OPTIONAL", "REQUIRED")), about="It has no effect: requests without a token are always allowed."
        ),
    },
    rules=(issuer_or_keys, one_key_source, private_keys, presence),
    misspelt={"jwksURI": "jwksUri", "audience": "audiences", "fromHeader": "fromHeaders"},
)

REQUEST_AUTHENTICATION: Record[Settings] = istio_resource(
    "RequestAuthentication",
    Record(
        "spec",
        {
            "selector": SELECTOR,
            **TARGETS,
            "jwtRules": Field(
                ListOf(_rule, "a list of rules", at_most(_MAX_RULES, "rules"), served=_MAX_RULES),
                about="Rules for accepted tokens. Other tokens are refused. Requests without a token are allowed.",
            ),
        },
        rules=(one_way_to_choose,),
        misspelt={"rules": "jwtRules", "jwtRule": "jwtRules", "jwt": "jwtRules"},
    ),
    about="Tokens that workloads of an Istio mesh accept.",
)
