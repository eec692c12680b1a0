"""Every rule has its line in the manifest, and for each of its attributes the text that names it."""

from __future__ import annotations

import pytest

from eastgate.ir.attributes import HOST, IDENTITY, MCP_TOOL, METHOD, PATH, PORT, Attribute, header
from tests.dialects.accesspolicy.reading import AUTHORIZER, BACKEND, CHECKOUT, GATEWAY, manifest, policy

V0ALPHA0 = f"""
{BACKEND.strip()}
rules:
- name: some
  source: {CHECKOUT}
  authorization:
    type: InlineTools
    tools:
    - charge
    - refund
- {{name: none, source: {CHECKOUT}}}
"""
ASKS = f"""
{BACKEND.strip()}
rules:
- name: ask
  source: {CHECKOUT}
  authorization:
    type: ExternalAuth
    externalAuth: {AUTHORIZER}
"""
CEL = f"""
{BACKEND.strip()}
rules:
- name: some
  source: {CHECKOUT}
  authorization: {{type: CEL, cel: {{expression: request.mcp.tool_name == 'x'}}}}
"""
V1ALPHA1 = f"""
{GATEWAY.strip()}
action: Deny
rules:
- name: all
  source: {CHECKOUT}
  authorization:
    type: Inline
    methods: [POST]
    paths: [{{value: /mcp}}]
    hosts:
    - api.example.com
    ports: [443]
    headers:
    - {{name: x-team, value: pay}}
    - {{name: x-user, value: a}}
    mcp: {{methods: []}}
- name: empty
  authorization: {{type: Inline, headers: []}}
- name: cel
  authorization:
    type: CEL
    cel:
      expression: request.mcp.tool_name == 'x'
"""
WITHOUT_RULES = f"{GATEWAY}action: Allow"

Where = tuple[int, str]  # line, and the text that is underlined
ORIGINS: list[tuple[str, str, int, Where, dict[Attribute, Where]]] = [
    ("v0alpha0", V0ALPHA0, 0, (7, "name: some"), {IDENTITY: (8, CHECKOUT), MCP_TOOL: (12, "- charge")}),
    (
        "v0alpha0",
        V0ALPHA0,
        1,
        (14, f"{{name: none, source: {CHECKOUT}}}"),
        {IDENTITY: (14, CHECKOUT), MCP_TOOL: (14, "none")},
    ),
    ("v0alpha0", ASKS, 0, (7, "name: ask"), {IDENTITY: (8, CHECKOUT)}),
    (
        "v0alpha0-cel",
        CEL,
        0,
        (7, "name: some"),
        {IDENTITY: (8, CHECKOUT), MCP_TOOL: (9, "request.mcp.tool_name == 'x'")},
    ),
    (
        "v1alpha1",
        V1ALPHA1,
        0,
        (8, "name: all"),
        {
            IDENTITY: (9, CHECKOUT),
            METHOD: (12, "[POST]"),
            PATH: (13, "[{value: /mcp}]"),
            HOST: (15, "- api.example.com"),
            PORT: (16, "[443]"),
            header("x-team"): (18, "{name: x-team, value: pay}"),
            header("x-user"): (19, "{name: x-user, value: a}"),
            MCP_TOOL: (20, "{methods: []}"),
        },
    ),
    ("v1alpha1", V1ALPHA1, 1, (21, "name: empty"), {header(""): (22, "[]")}),
    ("v1alpha1", V1ALPHA1, 2, (23, "name: cel"), {MCP_TOOL: (27, "request.mcp.tool_name == 'x'")}),
    ("v1alpha1", WITHOUT_RULES, 0, (6, "Allow"), {}),
]


@pytest.mark.parametrize(("form", "spec", "index", "where", "parts"), ORIGINS)
def test_a_rule_knows_its_line_and_the_lines_of_its_parts(
    form: str, spec: str, index: int, where: Where, parts: dict[Attribute, Where]
) -> None:
    read = policy(manifest(form, spec))
    origin = read.rules[index].origin
    assert (origin.policy, origin.index) == (read.ref, index)
    assert origin.span is not None
    assert (origin.span.line, origin.span.underlined) == where
    assert {attribute: (span.line, span.underlined) for attribute, span in origin.parts} == parts


def test_a_policy_knows_where_it_begins_in_a_file_of_several() -> None:
    read = policy("# a comment\n---\n" + manifest("v1alpha1", WITHOUT_RULES))
    assert (read.span.line, read.span.file) == (3, "policy.yaml")
