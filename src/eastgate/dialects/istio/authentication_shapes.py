"""RequestAuthentication and PeerAuthentication, field by field; v1 and v1beta1 are the same."""

from __future__ import annotations

from collections.abc import Callable

from eastgate.dialects.istio import authentication_codes as codes
from eastgate.dialects.istio import authentication_validation as demands
from eastgate.dialects.istio.authentications import MtlsMode
from eastgate.dialects.istio.shapes_common import SELECTOR, TARGETS, istio_resource
from eastgate.dialects.istio.validation import Checking, at_most, one_way_to_choose
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Choice, Field, Flag, ListOf, MapOf, Record, Text
from eastgate.settings import Settings

_MOST_RULES = 4096
_MOST_CLAIMS = 64

_mtls: Record[Settings] = Record(
    "mtls",
    {
        "mode": Field(
            Choice(tuple(MtlsMode), codes.MTLS_MODE),
            about="STRICT refuses plaintext, PERMISSIVE takes both, DISABLE has no mTLS. UNSET is inherited.",
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
            "mtls": Field(_mtls, about="The mode of the workloads. Left out it is inherited: PERMISSIVE, in the end."),
            "portLevelMtls": Field(
                MapOf(_mtls, "a mapping of ports to modes", demands.named_ports),
                about="The modes of certain ports of the workloads, which count instead of `mtls`.",
            ),
        },
        rules=(demands.ports_of_workloads,),
        misspelt={"portLevelMTLS": "portLevelMtls", "mTLS": "mtls"},
    ),
    about="Whether workloads of an Istio mesh take plaintext, or mTLS alone.",
)


def _texts(what: str, about: str, whole: Callable[[Node, Checking], None] | None = None) -> Field[Settings]:
    return Field(ListOf(Text(what, demands.some_text), f"a list: {what} in each entry", whole), about=about)


_header: Record[Settings] = Record(
    "a header with a token",
    {
        "name": Field(Text("a name", demands.some_text), required=True, about="The name of the header."),
        "prefix": Field(Text("a prefix"), about="The text before the token, with its space."),
    },
)
_copied: Record[Settings] = Record(
    "a claim that is copied",
    {
        "header": Field(Text("a name", demands.claim_header), required=True, about="The header that it is copied to."),
        "claim": Field(Text("a claim", demands.some_text), required=True, about="The name of the claim."),
    },
)
_rule: Record[Settings] = Record(
    "a rule of tokens",
    {
        "issuer": Field(Text("an issuer", demands.some_text), about="The `iss` of the tokens that are accepted."),
        "audiences": _texts("an audience", "Audiences, any of which a token must have. Left out it is any."),
        "jwks": Field(Text("a key set", demands.key_set), about="The keys of the issuer, as JSON."),
        "jwksUri": Field(Text("a URL", demands.key_url), about="The URL of the keys of the issuer."),
        "jwks_uri": Field(Text("a URL", demands.key_url), about="The old name of jwksUri."),
        "fromHeaders": Field(
            ListOf(_header, "a list of headers"),
            about="Headers that hold tokens. Where no location is written, it is `Authorization: Bearer <token>`, or "
            "the parameter `access_token`.",
        ),
        "fromParams": _texts("a parameter", "Parameters of queries that hold tokens."),
        "fromCookies": _texts("a cookie", "Cookies that hold tokens."),
        "outputPayloadToHeader": Field(Text("a header"), about="The header that the payload is handed on in."),
        "outputClaimToHeaders": Field(
            ListOf(_copied, "a list of claims"), about="Claims that are handed on in headers."
        ),
        "forwardOriginalToken": Field(Flag(), about="Whether the token is handed on."),
        "timeout": Field(Text("a duration", demands.duration), about="How long fetching keys may take."),
        "spaceDelimitedClaims": _texts(
            "a claim",
            "Claims that are split at spaces, as `scope` and `permission` always are.",
            at_most(_MOST_CLAIMS, "claims"),
        ),
        "presence": Field(
            Choice(("OPTIONAL", "REQUIRED")), about="It has no effect: requests without a token pass either way."
        ),
    },
    rules=(demands.whose_tokens, demands.one_source_of_keys, demands.private_keys, demands.presence),
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
                ListOf(_rule, "a list of rules", at_most(_MOST_RULES, "rules"), served=_MOST_RULES),
                about="The tokens that are accepted. A token that no rule accepts is refused; no token at all passes.",
            ),
        },
        rules=(one_way_to_choose,),
        misspelt={"rules": "jwtRules", "jwtRule": "jwtRules", "jwt": "jwtRules"},
    ),
    about="Which tokens workloads of an Istio mesh accept.",
)
