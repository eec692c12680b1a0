"""A rule matches the right requests.

In v0alpha0 missing tools match nothing, in v1alpha1 a missing list matches everything.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from eastgate.engine.reference import holds
from eastgate.ir import ALWAYS, And, Is, Known, OneOf, Request
from eastgate.ir.attributes import BACKEND as BEHIND
from eastgate.ir.attributes import (
    HOST,
    IDENTITY,
    MCP_METHOD,
    MCP_TOOL,
    METHOD,
    PATH,
    PORT,
    TIME,
    Attribute,
    header,
)
from eastgate.settings import Settings
from tests.dialects.accesspolicy.reading import AUTHORIZER, BACKEND, CHECKOUT, CHECKOUT_ID, GATEWAY, manifest, policy

TEAM, SESSION = header("x-team"), header("mcp-session-id")
CALL: Mapping[Attribute, Known] = {
    IDENTITY: CHECKOUT_ID,
    METHOD: "POST",
    PATH: "/mcp",
    HOST: "api.example.com",
    PORT: 443,
    BEHIND: "prod/pay",
    MCP_METHOD: "tools/call",
    MCP_TOOL: "charge",
    TEAM: "pay",
    SESSION: None,
    TIME: "2026-01-01T00:00:00Z",
}
Change = dict[Attribute, Known]


def message(method: str | None, name: str | None = None, http: str = "POST") -> Change:
    return {MCP_METHOD: method, MCP_TOOL: name, METHOD: http}


def tool(name: str) -> Change:
    return {MCP_TOOL: name}


def sent_by(identity: str | None) -> Change:
    return {IDENTITY: identity}


OTHER = sent_by("spiffe://cluster.local/ns/prod/sa/other")
INITIALIZE, LIST, PING = message("initialize"), message("tools/list"), message("ping")
INITIALIZED, PROMPT = message("notifications/initialized"), message("prompts/get", "charge")
STREAM, NO_SESSION = message(None, http="GET"), message(None, http="DELETE")
END = {**NO_SESSION, SESSION: "s"}
PLAIN = message(None)  # a POST that is no JSON-RPC message
OF_A_SESSION = [INITIALIZE, INITIALIZED, LIST, PING, STREAM, END]
COMPLETE, LOG = message("completion/complete"), message("logging/setLevel")


def matched(form: str, targets: str, action: str, rule: str, change: Change, settings: Settings | None = None) -> bool:
    spec = f"{targets}{action}rules: [{rule}]"
    (one,) = policy(manifest(form, spec), settings or Settings()).rules
    return holds(one.when, Request({**CALL, **change}))


# The proposal's form (rulings 21, 22, 23, 25)

Row = tuple[str, list[Change], list[Change]]  # authorization; matching requests; other requests
OLD_ALLOW: list[Row] = [
    # a named caller may use the base protocol, and call the named tools
    (
        ", authorization: {type: InlineTools, tools: [charge, refund]}",
        [{}, tool("refund"), *OF_A_SESSION],
        [
            tool("quote"),
            tool("Charge"),
            PROMPT,
            COMPLETE,
            LOG,
            PLAIN,
            NO_SESSION,
            message("tools/call"),
            OTHER,
            {**LIST, **OTHER},
        ],
    ),
    (", authorization: {type: InlineTools, tools: []}", OF_A_SESSION, [{}, PROMPT, NO_SESSION, OTHER]),
    ("", OF_A_SESSION, [{}, PROMPT, NO_SESSION, OTHER]),
]
OLD_DENY: list[Row] = [
    (", authorization: {type: InlineTools, tools: [charge]}", [{}], [tool("refund"), PROMPT, OTHER, *OF_A_SESSION]),
    (", authorization: {type: InlineTools, tools: []}", [], [{}, OTHER, *OF_A_SESSION]),
    ("", [{}, PROMPT, PLAIN, *OF_A_SESSION], [OTHER, sent_by(None)]),
]


def rows(table: list[Row]) -> list[tuple[str, Change, bool]]:
    return [
        (one, change, yes)
        for one, some, none in table
        for changes, yes in ((some, True), (none, False))
        for change in changes
    ]


@pytest.mark.parametrize("form", ["v0alpha0", "v0alpha0-cel"])
@pytest.mark.parametrize(("authorization", "change", "expected"), rows(OLD_ALLOW))
def test_v0alpha0_allows_named_tools_and_what_calling_them_needs(
    form: str, authorization: str, change: Change, expected: bool
) -> None:
    rule = f"{{name: r, source: {CHECKOUT}{authorization}}}"
    assert matched(form, BACKEND, "", rule, change) is expected
    assert matched(form, BACKEND, "action: Allow\n", rule, change) is expected


@pytest.mark.parametrize(("authorization", "change", "expected"), rows(OLD_DENY))
def test_v0alpha0_denies_named_tools_and_without_a_list_everything(
    authorization: str, change: Change, expected: bool
) -> None:
    rule = f"{{name: r, source: {CHECKOUT}{authorization}}}"
    assert matched("v0alpha0", BACKEND, "action: Deny\n", rule, change) is expected


@pytest.mark.parametrize("change", [{}, PROMPT, PLAIN, *OF_A_SESSION])
def test_v0alpha0_asks_about_everything_from_the_source_and_nothing_else(change: Change) -> None:
    rule = f"{{name: r, source: {CHECKOUT}, authorization: {{type: ExternalAuth, externalAuth: {AUTHORIZER}}}}}"
    assert matched("v0alpha0", BACKEND, "", rule, change)
    assert not matched("v0alpha0", BACKEND, "", rule, {**change, **OTHER})


@pytest.mark.parametrize(
    ("targets", "name", "change", "expected"),
    [
        (GATEWAY, "charge", {}, True),
        (GATEWAY, "charge", {BEHIND: "prod/quote"}, True),
        (GATEWAY, "pay/charge", {}, True),
        (GATEWAY, "pay/charge", {BEHIND: "prod/quote"}, False),
        (GATEWAY, "pay/charge", {BEHIND: None}, False),
        (GATEWAY, "pay/charge", {BEHIND: "prod/prepay"}, False),
        (GATEWAY, "pay/charge", tool("pay/charge"), False),
        (BACKEND, "other/charge", {}, False),
        (BACKEND, "other/charge", tool("other/charge"), True),
    ],
)
def test_a_qualified_name_is_one_backends_tool_at_a_gateway_only(
    targets: str, name: str, change: Change, expected: bool
) -> None:
    old = f"{{name: r, source: {CHECKOUT}, authorization: {{type: InlineTools, tools: [{name}]}}}}"
    assert matched("v0alpha0", targets, "", old, change) is expected
    mcp = f"{{methods: [{{name: tools/call, params: [{name}]}}]}}"
    new = f"{{name: r, authorization: {{type: Inline, mcp: {mcp}}}}}"
    assert matched("v1alpha1", targets, "action: Allow\n", new, change) is expected


def test_the_uri_of_a_resource_is_no_qualified_name() -> None:
    rule = "{name: r, authorization: {type: Inline, mcp: {methods: [{name: resources/read, params: [pay/a]}]}}}"
    change = message("resources/read", "pay/a")
    assert matched("v1alpha1", GATEWAY, "action: Allow\n", rule, change)


# Today's form: a missing list matches anything, an explicit empty list nothing (ruling 21)


def inline(body: str) -> str:
    return f", authorization: {{type: Inline, {body}}}"


def cel(expression: str) -> str:
    return f", authorization: {{type: CEL, cel: {{expression: {expression}}}}}"


NEW: list[Row] = [
    ("", [{}, OTHER, PROMPT, STREAM, PLAIN, sent_by(None)], []),
    (f", source: {CHECKOUT}", [{}, PROMPT, STREAM, PLAIN], [OTHER, sent_by(None)]),
    (", authorization: {type: Inline}", [{}, OTHER, PROMPT, PLAIN], []),
    *((inline(f"{name}: []"), [], [{}, PROMPT, STREAM]) for name in ("methods", "paths", "headers", "hosts", "ports")),
    (inline("mcp: {methods: []}"), [], [{}, PROMPT, STREAM, INITIALIZE]),
    (inline("mcp: {methods: [{name: tools/call, params: []}]}"), [], [{}, LIST]),
    # ALL of the parts, ANY of the entries of one
    (inline("methods: [GET, POST]"), [{}, {METHOD: "GET"}], [{METHOD: "PUT"}, {METHOD: "post"}]),
    (inline("methods: [GET], ports: [443]"), [{METHOD: "GET"}], [{}, {METHOD: "GET", PORT: 80}]),
    (inline("ports: [443, 8443]"), [{}, {PORT: 8443}], [{PORT: 80}, {PORT: None}]),
    (
        inline("hosts: [api.example.com, '*.example.org']"),
        [{}, {HOST: "a.example.org"}, {HOST: "a.b.example.org"}],
        [{HOST: "example.org"}, {HOST: "evilexample.org"}, {HOST: "x.api.example.com"}, {HOST: None}],
    ),
    (inline("paths: [{value: /mcp}]"), [{}, {PATH: "/mcp/"}, {PATH: "/mcp/x"}], [{PATH: "/mcpx"}, {PATH: "/"}]),
    (inline("paths: [{value: /mcp/}]"), [{}, {PATH: "/mcp/"}, {PATH: "/mcp/x"}], [{PATH: "/mcpx"}]),
    (inline("paths: [{}]"), [{}, {PATH: "/"}, {PATH: "/x"}], [{PATH: None}]),
    (inline("paths: [{value: /}]"), [{}, {PATH: "/"}, {PATH: "/x"}], [{PATH: None}]),
    (inline("paths: [{type: Exact, value: /mcp}]"), [{}], [{PATH: "/mcp/"}, {PATH: "/mcp/x"}]),
    (
        inline("paths: [{type: RegularExpression, value: '/v[0-9]+'}, {type: Exact, value: /mcp}]"),
        [{}, {PATH: "/v12"}],
        [{PATH: "/v1/x"}, {PATH: "/a/v1"}, {PATH: None}],
    ),
    (inline("headers: [{name: X-Team, value: pay}]"), [{}], [{TEAM: "Pay"}, {TEAM: None}]),
    (
        inline("headers: [{name: x-team, value: 'p.*', type: RegularExpression}, {name: x-user, value: a}]"),
        [{header("x-user"): "a"}, {header("x-user"): "a", TEAM: "p"}],
        [{header("x-user"): None}, {header("x-user"): "b"}, {header("x-user"): "a", TEAM: "xp"}],
    ),
    # MCP: no method passes by itself; `mcp` without methods and base protocol counts as absent (ruling 29)
    (inline("mcp: {}"), [{}, PROMPT, PLAIN, NO_SESSION, *OF_A_SESSION], []),
    (
        inline("mcp: {mcpBaseProtocolMethodsOption: SKIP_BASE_PROTOCOL_METHODS}"),
        [{}, PROMPT, PLAIN, NO_SESSION, *OF_A_SESSION],
        [],
    ),
    (
        inline("mcp: {mcpBaseProtocolMethodsOption: MATCH_BASE_PROTOCOL_METHODS}"),
        [*OF_A_SESSION, COMPLETE, LOG],
        [{}, tool("x"), PROMPT, PLAIN, NO_SESSION, {**PLAIN, SESSION: "s"}],
    ),
    (
        inline("mcp: {methods: [{name: tools/call, params: [charge]}]}"),
        [{}],
        [tool("refund"), INITIALIZE, LIST, STREAM, PROMPT],
    ),
    (inline("mcp: {methods: [{name: tools}]}"), [{}, LIST, tool("x")], [PROMPT, message("toolsmith")]),
    (
        inline("mcp: {methods: [{name: prompts/get, params: [charge]}, {name: tools/list}]}"),
        [PROMPT, LIST],
        [{}, message("prompts/get", "other"), message("prompts/list")],
    ),
    (
        inline("mcp: {methods: [], mcpBaseProtocolMethodsOption: MATCH_BASE_PROTOCOL_METHODS}"),
        [*OF_A_SESSION, COMPLETE, LOG],
        [{}, PROMPT, PLAIN, NO_SESSION],
    ),
    (
        inline("mcp: {methods: [], mcpBaseProtocolMethodsOption: SKIP_BASE_PROTOCOL_METHODS}"),
        [],
        [{}, *OF_A_SESSION],
    ),
    # expressions are about tool calls only
    (
        cel("request.mcp.tool_name == 'charge'"),
        [{}, OTHER],
        [tool("refund"), LIST, PROMPT, STREAM],
    ),
    (cel("'true'"), [{}, tool("x")], [LIST, PROMPT]),
]


@pytest.mark.parametrize("action", ["Allow", "Deny"])
@pytest.mark.parametrize(("rule", "change", "expected"), rows(NEW))
def test_v1alpha1_matches_what_it_says_whatever_the_action(
    action: str, rule: str, change: Change, expected: bool
) -> None:
    assert matched("v1alpha1", BACKEND, f"action: {action}\n", f"{{name: r{rule}}}", change) is expected


@pytest.mark.parametrize("action", ["Allow", "Deny", "ExternalAuth"])
def test_v1alpha1_without_rules_is_about_every_request_and_with_none_about_no_request(action: str) -> None:
    asked = f"externalAuth: {AUTHORIZER}\n" if action == "ExternalAuth" else ""
    (rule,) = policy(manifest("v1alpha1", f"{GATEWAY}action: {action}\n{asked}")).rules
    assert rule.when == ALWAYS
    if action == "Allow":
        assert policy(manifest("v1alpha1", f"{GATEWAY}action: {action}\nrules: []")).rules == ()


# Sources


@pytest.mark.parametrize("form", ["v0alpha0", "v1alpha1"])
@pytest.mark.parametrize(
    ("source", "identity"),
    [
        (CHECKOUT, "spiffe://prod.example/ns/prod/sa/checkout"),
        (
            "{type: ServiceAccount, serviceAccount: {name: checkout, namespace: shop}}",
            "spiffe://prod.example/ns/shop/sa/checkout",
        ),
        ("{type: SPIFFE, spiffe: spiffe://other.example/agent}", "spiffe://other.example/agent"),
    ],
)
def test_service_accounts_are_of_the_trust_domain_of_the_target(form: str, source: str, identity: str) -> None:
    action = "action: Deny\n"
    text = manifest(form, f"{GATEWAY}{action}rules: [{{name: r, source: {source}}}]")
    (rule,) = policy(text, Settings(trust_domain="prod.example")).rules
    assert rule.when == And((Is(IDENTITY, OneOf(frozenset({identity}))),))


@pytest.mark.parametrize("form", ["v0alpha0", "v1alpha1"])
def test_the_callers_of_a_policy_are_the_sources_of_its_rules(form: str) -> None:
    action = "action: Allow\n" if form == "v1alpha1" else ""
    text = manifest(form, f"{GATEWAY}{action}rules: [{{name: a, source: {CHECKOUT}}}, {{name: b, source: {CHECKOUT}}}]")
    caller = Is(IDENTITY, OneOf(frozenset({CHECKOUT_ID})))
    assert policy(text).callers == (caller, caller)


def test_in_v1alpha1_a_rule_without_source_names_everyone() -> None:
    assert policy(manifest("v1alpha1", f"{GATEWAY}action: Allow\nrules: [{{name: a}}]")).callers == (ALWAYS,)
    assert policy(manifest("v1alpha1", f"{GATEWAY}action: Allow")).callers == (ALWAYS,)
    assert policy(manifest("v1alpha1", f"{GATEWAY}action: Allow\nrules: []")).callers == ()
