"""Single values of a rule are accepted or rejected (the messages of rejections are in tests/broken)."""

from __future__ import annotations

import json

import pytest

from eastgate.basics.diagnostics import Code
from eastgate.dialects.gep3779 import codes
from tests.dialects.reading import judge, manifest

PODS = "targetRefs: [{kind: Pod, selector: {}}]\naction: ALLOW\n"
PLACES = {
    "v1alpha2 account": ("v1alpha2", PODS + "rules: [{authorizationSource: {serviceAccounts: [%s]}}]"),
    "v1alpha1 account": ("v1alpha1", PODS + "tcpRules: [{sources: [{serviceAccounts: [%s]}]}]"),
    "cluster account": (
        "cluster",
        "tier: Admin\npriority: 1\naction: ALLOW\nrules: [{authorizationSource: {serviceAccounts: [%s]}}]",
    ),
    "x account": (
        "x",
        PODS + "enforcementLevel: Network\nrules: [{sources: [{type: ServiceAccount, serviceAccount: {name: %s}}]}]",
    ),
    "identity": ("v1alpha2", PODS + "rules: [{authorizationSource: {identities: [%s]}}]"),
    "x identity": ("x", PODS + "enforcementLevel: Network\nrules: [{sources: [{type: SPIFFE, spiffe: %s}]}]"),
    "path": ("v1alpha2", PODS + "enforcementLevel: APPLICATION\nrules: [{applicationAttributes: {paths: [%s]}}]"),
    "method": ("v1alpha2", PODS + "enforcementLevel: APPLICATION\nrules: [{applicationAttributes: {methods: [%s]}}]"),
}
LONG = "spiffe://cluster.local/" + "a" * (2048 - len("spiffe://cluster.local/"))

ACCEPTED = {
    "v1alpha2 account": ["web", "shop/web", "shop/*", "shop/web.v1", "0/0", "a" * 63 + "/" + "b" * 63],
    "v1alpha1 account": ["shop/web", "shop/web.v1"],
    "cluster account": ["shop/web", "shop/*"],
    "x account": ["web", "web.v1", "*"],
    "identity": [
        "spiffe://cluster.local/ns/shop/sa/web",
        "spiffe://td/x",
        "spiffe://a_b-c.d/X.y_Z-0/...",
        LONG,
    ],
    "x identity": ["spiffe://td/x", LONG],  # upstream's AbsoluteURI has 253 at most; SPIFFE has 2048
    "path": ["/", "/api", "/api/", "/api/*", "/api*", "*", "/*", "*/health", "*.php", "/a.b", "/.well-known/*", "/.*"],
    "method": ["GET", "POST", "PATCH", "PROPFIND", "x-custom"],
}
REJECTED = {
    "v1alpha2 account": {
        codes.EVERY_SERVICE_ACCOUNT: ["*"],
        codes.SERVICE_ACCOUNT: ["", "/", "*/*", "*/web", "shop/", "/web", "a/b/c", "shop/w*", "Shop/web", "shop/Web"],
    },
    "v1alpha1 account": {
        codes.SERVICE_ACCOUNT_V1ALPHA1: ["", "*", "web", "shop/*", "*/web", "shop/", "/web", "a/b/c", "shop/Web"]
    },
    "cluster account": {
        codes.EVERY_SERVICE_ACCOUNT: ["*"],
        codes.BARE_SERVICE_ACCOUNT: ["web"],
        codes.SERVICE_ACCOUNT: ["", "*/web", "a/b/c", "Web"],
    },
    "x account": {codes.SERVICE_ACCOUNT: ["", "shop/web", "web*", "Web"]},
    "identity": {
        codes.SPIFFE_ID: [
            "",
            "web",
            "spiffe://",
            "spiffe://td",  # the CEL of upstream accepts it
            "spiffe://td/",
            "spiffe:///x",
            "spiffe://TD/x",
            "spiffe://td/x/",
            "spiffe://td//x",
            "spiffe://td/./x",
            "spiffe://td/../x",
            "spiffe://td/x?y",
            "spiffe://td/x#y",
            "spiffe://td/é",
            "spiffe://user@td/x",
            "spiffe://td:443/x",
            "SPIFFE://td/x",
            " spiffe://td/x",
            LONG + "a",
        ]
    },
    "x identity": {codes.SPIFFE_ID: ["", "spiffe://td", "https://td/x", LONG + "a"]},
    "path": {
        codes.PATH_PATTERN: [
            "",
            "api",
            "/a*b",
            "*/a*",
            "**",
            "/a?b",
            "/a#b",
            "/a//b",
            "/a/./b",
            "/a/..",
            "/%61",
            "/a%2fb",
            "/a%5Cb",
            "/a\\b",
            "/a//*",
        ]
    },
    "method": {codes.METHOD: ["", "*", "GET POST", "GET,POST", "GÉT"]},
}


@pytest.mark.parametrize(("place", "value"), [(place, value) for place in ACCEPTED for value in ACCEPTED[place]])
def test_a_value_is_accepted(place: str, value: str) -> None:
    form, spec = PLACES[place]
    read, found = judge(manifest(form, spec % json.dumps(value, ensure_ascii=False)))
    assert (found, read is not None) == ([], True)


@pytest.mark.parametrize(
    ("place", "code", "value"),
    [(place, code, value) for place, table in REJECTED.items() for code, values in table.items() for value in values],
)
def test_a_value_that_nothing_could_match_is_rejected_where_it_stands(place: str, code: Code, value: str) -> None:
    form, spec = PLACES[place]
    written = json.dumps(value, ensure_ascii=False)
    read, found = judge(manifest(form, spec % written))
    assert read is None
    assert [(d.code, d.span.underlined if d.span else None, bool(d.help)) for d in found] == [(code, written, True)]


@pytest.mark.parametrize("value", ["get", "Post", "oPTIONS"])
def test_a_known_method_in_the_wrong_letter_case_is_accepted_with_a_warning(value: str) -> None:
    form, spec = PLACES["method"]
    read, found = judge(manifest(form, spec % value))
    assert read is not None
    assert [(d.code, d.help) for d in found] == [(codes.METHOD_CASE, f"write {value.upper()}")]
