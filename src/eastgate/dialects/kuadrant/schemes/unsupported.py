"""Features of Authorino that Eastgate does not evaluate. Each is an error with advice, and never ignored.

In schemes of the AuthPolicy of 2022, these are all features. In schemes of today's kinds, they are the features that
Authorino itself no longer has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.responses import METADATA_FIELDS
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.dialects.kuadrant.schemes.validation import Checking
from eastgate.reading.manifests.node import Node


@dataclass(frozen=True, slots=True)
class Feature:
    """A field at a path in an entry. A flag counts only if it is true."""

    path: tuple[str, ...]
    code: Code
    message: str
    help: str
    flag: bool = False


_ALL_NAMESPACES = [
    Feature(
        (method, "allNamespaces"),
        codes.ALL_NAMESPACES,
        "Secrets are only looked up in the namespace of the policy",
        "remove it, and keep the Secrets beside the policy",
        flag=True,
    )
    for method in ("apiKey", "mtls", "x509")
]
_TELL = "remove it: only the proxy gets the decision"

FEATURES: dict[str, tuple[Feature, ...]] = {
    "identity": (
        *_ALL_NAMESPACES,
        Feature(
            ("hmac",),
            codes.IDENTITY_UNSUPPORTED,
            "signatures with a shared secret (HMAC) are not evaluated",
            "recognize callers by API keys, by tokens or by client certificates",
        ),
        Feature(
            ("openshift",),
            codes.IDENTITY_UNSUPPORTED,
            "OpenShift's own tokens are not evaluated",
            "let the API server review them: `kubernetes` in v1beta1, `kubernetesTokenReview` in v1beta2",
        ),
        Feature(
            ("apiKey", "keySelector"),
            codes.IDENTITY_UNSUPPORTED,
            "an API key is only read from `api_key` in its Secret",
            "remove `keySelector`, and write a Secret with `api_key` for each key",
        ),
        Feature(
            ("x509", "source"),
            codes.IDENTITY_UNSUPPORTED,
            "only the certificate of the connection is evaluated",
            "remove `source`: a certificate in a header is only a claim",
        ),
        Feature(
            ("plain", "expression"),
            codes.IDENTITY_UNSUPPORTED,
            "a plain identity is selected, not computed",
            "write a selector: `authJSON` in v1beta1, `selector` in v1beta2",
        ),
    ),
    "metadata": (
        Feature(
            ("userInfo",),
            codes.METADATA_UNSUPPORTED,
            "UserInfo of OpenID Connect is not fetched",
            "fetch it with `http` from the issuer's userinfo endpoint, and pass the token on in `headers`",
        ),
        Feature(
            ("uma",),
            codes.METADATA_UNSUPPORTED,
            "resources are not fetched by User-Managed Access (UMA)",
            "fetch the resource with `http`",
        ),
        Feature(
            ("http", "oauth2"),
            codes.METADATA_UNSUPPORTED,
            "Eastgate does not log in (OAuth2 client credentials) to fetch metadata",
            "write sharedSecretRef: {name: .., key: ..}, with a token that the service takes",
        ),
        Feature(
            ("http", "urlExpression"),
            codes.METADATA_UNSUPPORTED,
            "a URL is not computed with CEL",
            "write url: .., with selectors in braces",
        ),
    ),
    "authorization": (
        *(
            Feature(
                (name,),
                codes.AUTHORIZATION_UNSUPPORTED,
                "SpiceDB is not asked",
                "ask its HTTP API in `metadata`, and compare the answer in an authorization",
            )
            for name in ("authzed", "spicedb")
        ),
        *(
            Feature(
                ("opa", name),
                codes.AUTHORIZATION_UNSUPPORTED,
                "Rego policies are not fetched from servers",
                f"write the policy itself: `{inline}`",
            )
            for name, inline in (("externalRegistry", "inlineRego"), ("externalPolicy", "rego"))
        ),
        *(
            Feature(
                (name, "authorizationGroups"),
                codes.AUTHORIZATION_UNSUPPORTED,
                "groups are not selected from the request",
                "write groups: [..]",
            )
            for name in ("kubernetes", "kubernetesSubjectAccessReview")
        ),
    ),
    "response": (
        Feature(
            ("wristband",),
            codes.RESPONSE_UNSUPPORTED,
            "no tokens (festival wristbands) are issued",
            "send the data to the application in a `json` response",
        ),
    ),
    "": (
        Feature(("callbacks",), codes.CALLBACKS, "callbacks after a decision are not made", _TELL),
        Feature(("notify",), codes.CALLBACKS, "notifications of a decision are not sent", _TELL),
    ),
}


_REMOVED_FEATURES = (("hmac",), ("openshift",), ("apiKey", "keySelector"))


def report_removed(scheme: Node, to: Checking) -> None:
    """Report features that Authorino no longer has, or does not have yet."""
    _report_in(scheme, {"identity": tuple(each for each in FEATURES["identity"] if each.path in _REMOVED_FEATURES)}, to)


def report_unsupported(scheme: Node, to: Checking) -> None:
    """Report each unsupported feature that a scheme uses."""
    _report_in(scheme, FEATURES, to)


def _report_in(scheme: Node, features_by_section: Mapping[str, tuple[Feature, ...]], to: Checking) -> None:
    for section, features in features_by_section.items():
        for entry in _entries(scheme, section):
            for feature in features:
                _report(feature, entry, to)


def _entries(scheme: Node, section: str) -> Iterator[Node]:
    if not section:
        yield scheme
    for name in ("identity", "authentication") if section == "identity" else (section,):
        yield from (entry for _, entry in entries(scheme.get(name)))
    success = scheme.nearest("response", "success") if section == "response" else None
    for name in ("headers", *METADATA_FIELDS):
        if success is not None:
            yield from (entry for _, entry in entries(success.get(name)))


def _report(feature: Feature, entry: Node, to: Checking) -> None:
    *way, last = feature.path
    node: Node | None = entry
    for step in way:
        node = node.get(step) if node is not None else None
    asked = node.get(last) if node is not None else None
    if node is None or asked is None or (feature.flag and asked.value is not True):
        return
    to.report(feature.code, feature.message, node.key_span(last), help=feature.help)
