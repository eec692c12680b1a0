"""Single values are accepted or rejected (the messages of rejections are in tests/broken)."""

from __future__ import annotations

import json

import pytest

from eastgate.basics.diagnostics import Code
from eastgate.dialects.accesspolicy import codes
from tests.dialects.accesspolicy.reading import AUTHORIZER, BACKEND, CHECKOUT, GATEWAY, judge, manifest

ALLOW = f"{GATEWAY}action: Allow\n"


def inline(body: str) -> tuple[str, str]:
    return "v1alpha1", f"{ALLOW}rules: [{{name: r, authorization: {{type: Inline, {body}}}}}]"


PLACES = {
    "rule name": ("v1alpha1", f"{ALLOW}rules: [{{name: %s}}]"),
    "account": (
        "v0alpha0",
        f"{GATEWAY}rules: [{{name: r, source: {{type: ServiceAccount, serviceAccount: {{name: %s}}}}}}]",
    ),
    "identity": ("v0alpha0", f"{GATEWAY}rules: [{{name: r, source: {{type: SPIFFE, spiffe: %s}}}}]"),
    "tool": (
        "v0alpha0",
        f"{BACKEND}rules: [{{name: r, source: {CHECKOUT}, authorization: {{type: InlineTools, tools: [%s]}}}}]",
    ),
    "tool at a gateway": (
        "v0alpha0",
        f"{GATEWAY}rules: [{{name: r, source: {CHECKOUT}, authorization: {{type: InlineTools, tools: [%s]}}}}]",
    ),
    "param": inline("mcp: {methods: [{name: tools/call, params: [%s]}]}"),
    "prefix": inline("paths: [{value: %s}]"),
    "exact path": inline("paths: [{type: Exact, value: %s}]"),
    "path pattern": inline("paths: [{type: RegularExpression, value: %s}]"),
    "header name": inline("headers: [{name: %s, value: v}]"),
    "header value": inline("headers: [{name: x, value: %s}]"),
    "header pattern": inline("headers: [{name: x, type: RegularExpression, value: %s}]"),
    "host": inline("hosts: [%s]"),
    "expression": ("v1alpha1", f"{ALLOW}rules: [{{name: r, authorization: {{type: CEL, cel: {{expression: %s}}}}}}]"),
    "authorizer path": (
        "v1alpha1",
        f"{GATEWAY}action: ExternalAuth\nexternalAuth: "
        + AUTHORIZER.replace("protocol: GRPC, grpc: {}", "protocol: HTTP, http: {path: %s}"),
    ),
}
PATH = "/" + "a" * 1023

ACCEPTED = {
    "rule name": ["a", "a" * 63, "a.b-c", "0"],
    "account": ["checkout", "a.b", "0"],
    "identity": ["spiffe://td/x", "spiffe://a_b-c.d/X.y_Z-0/..."],
    "tool": ["a", "A_b-c.d", "get weather", "x" * 200, "a/b", "/a", "ü"],
    "tool at a gateway": ["a", "pay/a", "pay.v2/a/b"],
    "param": ["a", "x" * 20, "pay/charge"],
    "prefix": ["", "/", "/mcp", "/mcp/", PATH, "/.well-known"],
    "exact path": ["/", "/mcp", "/mcp/", PATH],
    "path pattern": ["/.*", ".*", "(a|b)", "/v[0-9]{1,3}"],
    "header name": ["x", "X-Team", "x_y", "a" * 256],
    "header value": ["a", " ", "a" * 4096, "*", "("],
    "header pattern": ["a.*", "(?i)a"],
    "host": ["a", "a.example", "*.example.com", "a" * 63 + ".example", "10.0.0.1"],
    "expression": ["true", "request.mcp.tool_name in ['a', 'b']", "has(request.headers.x) && request.method == 'GET'"],
    "authorizer path": ["/check", "check", "/a%20b"],
}
REJECTED: dict[str, dict[Code, list[str]]] = {
    "rule name": {codes.RULE_NAME: ["", "a" * 64, "A", "a b", "-a", "a_b"]},
    "account": {codes.ACCOUNT: ["", "*", "a/b", "A", "a*"]},
    "identity": {codes.SPIFFE_ID: ["", "a", "spiffe://td", "spiffe://td/", "spiffe://TD/x", "spiffe://td/a/../b"]},
    "tool": {codes.TOOL_NAME: ["", " ", "a ", "*", "a*", "a\tb", "a\u0000b"]},
    "tool at a gateway": {codes.TOOL_NAME: ["/a", "pay/", "Pay/a", "*/a", "/"]},
    "param": {codes.PARAM_LENGTH: ["x" * 21], codes.TOOL_NAME: ["", "a*", "x" * 30 + "*", "/a"]},
    "prefix": {codes.HTTP_VALUE: ["mcp", "/a*", "/a?b", "/a#b", "/a//b", "/a/..", "/%61", "/a%2fb", PATH + "a"]},
    "exact path": {codes.HTTP_VALUE: ["", "mcp", "/*", "/a?", "/./a"]},
    "path pattern": {codes.HTTP_VALUE: ["", "(", "(?=a)", "a" * 1025]},
    "header name": {codes.HTTP_VALUE: ["", "a b", "a:", "ü", "a" * 257]},
    "header value": {codes.HTTP_VALUE: ["", "a" * 4097]},
    "header pattern": {codes.HTTP_VALUE: ["", "(", "\\1"]},
    "host": {codes.HTTP_VALUE: ["", "*", "*.", "A.example", "a:80", "a/b", "*a.example", "a.*", "a..b", "a" * 254]},
    "expression": {codes.CEL_EXPRESSION: ["", "1", "request.user == 'a'", "request.mcp.tool_name ==", "a b", "("]},
    "authorizer path": {codes.AUTHORIZER: ["", "/a?b", "/a b", "/%zz", "/" + "a" * 1024]},
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
    assert [(d.code, bool(d.help)) for d in found] == [(code, True)]
    span = found[0].span
    assert span is not None
    assert span.underlined == written or (place == "expression" and span.underlined in written)
