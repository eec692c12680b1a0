"""Every rule has its line in the manifest, and for each of its attributes the text that names it."""

from __future__ import annotations

import pytest

from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT, Attribute
from tests.dialects.reading import manifest, policy

V1ALPHA2 = """
targetRefs: [{kind: Pod, selector: {}}]
action: ALLOW
enforcementLevel: APPLICATION
rules:
- authorizationSource:
    serviceAccounts: [web]
    identities: [spiffe://td/x]
  networkAttributes:
    ports: [80]
  applicationAttributes:
    paths: [/api]
    methods:
    - GET
- {}
- authorizationSource: {}
"""
V1ALPHA1 = """
targetRefs: {kind: Pod, selector: {}}
action: ALLOW
tcpRules:
- sources:
  - namespaces: [pay]
  attributes:
  - ports: [80]
- attributes: [{}]
"""
X = """
targetRefs: [{kind: Pod, selector: {}}]
action: ALLOW
enforcementLevel: Network
rules:
- sources: []
- networkAttributes: {ports: []}
"""
CLUSTER = """
tier: Admin
priority: 1
action: DENY
rules:
- authorizationSource: {serviceAccounts: [pay/*]}
"""

Where = tuple[int, str]  # line, and the text that is underlined
ORIGINS: list[tuple[str, str, int, Where, dict[Attribute, Where]]] = [
    (
        "v1alpha2",
        V1ALPHA2,
        0,
        (9, "authorizationSource:"),
        {
            IDENTITY: (10, "serviceAccounts: [web]"),
            PORT: (13, "[80]"),
            PATH: (15, "[/api]"),
            METHOD: (17, "- GET"),
        },
    ),
    ("v1alpha2", V1ALPHA2, 1, (18, "{}"), {}),
    ("v1alpha2", V1ALPHA2, 2, (19, "authorizationSource: {}"), {IDENTITY: (19, "{}")}),
    ("v1alpha1", V1ALPHA1, 0, (8, "sources:"), {IDENTITY: (9, "- namespaces: [pay]"), PORT: (11, "- ports: [80]")}),
    ("v1alpha1", V1ALPHA1, 1, (12, "attributes: [{}]"), {}),
    ("x", X, 0, (9, "sources: []"), {IDENTITY: (9, "[]")}),
    ("x", X, 1, (10, "networkAttributes: {ports: []}"), {PORT: (10, "[]")}),
    (
        "cluster",
        CLUSTER,
        0,
        (9, "authorizationSource: {serviceAccounts: [pay/*]}"),
        {IDENTITY: (9, "{serviceAccounts: [pay/*]}")},
    ),
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


def test_an_attribute_that_the_rule_does_not_name_is_shown_by_the_whole_rule() -> None:
    origin = policy(manifest("v1alpha2", V1ALPHA2)).rules[2].origin
    assert origin.part(PORT) == origin.span
    assert origin.part(IDENTITY) != origin.span


def test_a_policy_knows_where_it_begins_in_a_file_of_several() -> None:
    read = policy("# a comment\n---\n" + manifest("x", X))
    assert (read.span.line, read.span.file) == (3, "policy.yaml")


def test_rules_of_a_json_document_have_places_too() -> None:
    read = policy(
        '{"apiVersion": "gateway.networking.x-k8s.io/v1alpha2", "kind": "AuthorizationPolicy",\n'
        ' "metadata": {"name": "p"},\n'
        ' "spec": {"targetRefs": [{"kind": "Pod", "selector": {}}], "action": "ALLOW",\n'
        '  "rules": [{},\n'
        '   {"networkAttributes": {"ports": [80]}}]}}\n'
    )
    origin = read.rules[1].origin
    assert origin.span is not None
    assert (origin.span.line, origin.span.underlined) == (5, '{"networkAttributes": {"ports": [80]}}')
    assert [(span.line, span.underlined) for _, span in origin.parts] == [(5, "[80]")]
