"""Metadata and label selectors of a policy: the accepted forms, and the objects that a selector selects."""

from __future__ import annotations

import pytest

from eastgate.basics.diagnostics import Code, Reporter
from eastgate.cluster.resources import is_audit, label_selector, resource, selector_of
from eastgate.ir.labels import Operator, Requirement, Selector
from eastgate.reading.manifests.shapes import Check, Field, Record, Text, check, codes
from tests.reading.manifests.shapes.test_shapes import node_of, said

_spec: Record[None] = Record("spec", {"rules": Field(Text())})
NAMESPACED: Record[None] = resource("Policy", _spec)
CLUSTER: Record[None] = resource("ClusterPolicy", _spec, cluster_scoped=True)
SELECTOR: Record[None] = label_selector()


def found_in(shape: Record[None], metadata: str, rest: str = "spec: {}") -> list[tuple[str, str]]:
    """Return the code and the underlined text of each error in a document with this metadata."""
    reporter = Reporter()
    check(shape, node_of(f"apiVersion: a/v1\nkind: Policy\nmetadata: {metadata}\n{rest}"), Check(reporter, None))
    return [(d.code.id, d.span.underlined if d.span else "") for d in reporter]


GOOD_METADATA = [
    "{name: a}",
    "{name: a.b-c.d1, namespace: shop-1}",
    "{name: a, labels: {app: web, team/x: ''}, annotations: {note: 'anything at all, ✓'}}",
    "{name: a, annotations: {eastgate.dev/mode: audit}}",
    "{name: a, annotations: {eastgate.dev/mode: enforce}}",
    "{name: a, uid: x, resourceVersion: '1', generation: 2, managedFields: [{}], creationTimestamp: null}",
]


@pytest.mark.parametrize("metadata", GOOD_METADATA)
def test_usual_metadata_is_accepted(metadata: str) -> None:
    assert found_in(NAMESPACED, metadata) == []


@pytest.mark.parametrize(
    ("shape", "metadata", "expected"),
    [
        (NAMESPACED, "{name: A}", (codes.BAD_NAME, "A")),
        (NAMESPACED, "{name: a/b}", (codes.BAD_NAME, "a/b")),
        (NAMESPACED, "{name: a, namespace: a.b}", (codes.BAD_NAME, "a.b")),
        (NAMESPACED, "{name: a, nmespace: b}", (codes.UNKNOWN_FIELD, "nmespace")),
        (NAMESPACED, "{name: a, labels: {v: 1}}", (codes.WRONG_TYPE, "1")),
        (NAMESPACED, "{name: a, annotations: {eastgate.dev/mode: AUDIT}}", (codes.BAD_MODE, "AUDIT")),
        (NAMESPACED, "{name: a, annotations: {eastgate.dev/mode: on}}", (codes.WRONG_TYPE, "on")),
        (NAMESPACED, "{namespace: b}", (codes.MISSING_FIELD, "metadata")),
        (CLUSTER, "{name: a, namespace: b}", (codes.NAMESPACE_ON_CLUSTER_SCOPED, "namespace")),
    ],
)
def test_metadata_that_an_api_server_rejects_or_drops_is_an_error(
    shape: Record[None], metadata: str, expected: tuple[Code, str]
) -> None:
    code, underlined = expected
    assert found_in(shape, metadata) == [(code.id, underlined)]


def test_a_status_is_not_ours_to_check() -> None:
    assert found_in(NAMESPACED, "{name: a}", "spec: {}\nstatus: [anything, {at: all}]") == []
    assert found_in(NAMESPACED, "{name: a}", "spec: {}\nstatus:") == []


def test_a_field_of_the_spec_beside_the_spec_is_sent_there() -> None:
    reporter = Reporter()
    check(NAMESPACED, node_of("metadata: {name: a}\nspec: {}\nrules: x"), Check(reporter, None))
    assert [d.help for d in reporter] == ["indent it: `rules` belongs in `spec`"]


@pytest.mark.parametrize(
    ("annotations", "audit"),
    [
        ("{}", False),
        ("{eastgate.dev/mode: enforce}", False),
        ("{eastgate.dev/mode: audit}", True),
        ("{other/mode: audit}", False),
    ],
)
def test_a_policy_is_only_reported_where_its_mode_says_audit(annotations: str, audit: bool) -> None:
    assert is_audit(node_of(f"metadata: {{name: a, annotations: {annotations}}}")) is audit
    assert not is_audit(node_of("metadata: {name: a}"))


SELECTORS = [
    ("{}", Selector.of()),
    ("{matchLabels: {}}", Selector.of()),
    ("{matchExpressions: []}", Selector.of()),
    ("{matchLabels: {app: web, tier: ''}}", Selector.of({"app": "web", "tier": ""})),
    (
        "{matchLabels: {app: web}, matchExpressions: [{key: team/x, operator: NotIn, values: [a, b]}]}",
        Selector.of({"app": "web"}, [Requirement("team/x", Operator.NOT_IN, frozenset({"a", "b"}))]),
    ),
    (
        "{matchExpressions: [{key: a, operator: Exists}, {key: b, operator: DoesNotExist, values: []}]}",
        Selector.of({}, [Requirement("a", Operator.EXISTS), Requirement("b", Operator.DOES_NOT_EXIST)]),
    ),
]


@pytest.mark.parametrize(("written", "selector"), SELECTORS)
def test_a_selector_has_the_meaning_of_kubernetes(written: str, selector: Selector) -> None:
    assert said(SELECTOR, written) == []
    assert selector_of(node_of(written)) == selector


def test_no_selector_selects_everything() -> None:
    assert selector_of(None) == Selector.of()


@pytest.mark.parametrize(
    ("written", "code", "underlined"),
    [
        ("{app: web}", codes.UNKNOWN_FIELD, "app"),
        ("{matchExpression: []}", codes.UNKNOWN_FIELD, "matchExpression"),
        ("{matchLabels: {a: 1}}", codes.WRONG_TYPE, "1"),
        ("{matchLabels: {a b: c}}", codes.BAD_LABEL, "a b"),
        ("{matchLabels: {a: b c}}", codes.BAD_LABEL, "b c"),
        ("{matchExpressions: [{key: a, operator: Is, values: [b]}]}", codes.BAD_OPERATOR, "Is"),
        ("{matchExpressions: [{key: a, operator: In, values: []}]}", codes.BAD_OPERATOR, "[]"),
        (
            "{matchExpressions: [{key: a, operator: NotIn}]}",
            codes.BAD_OPERATOR,
            "{key: a, operator: NotIn}",
        ),
        ("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}", codes.BAD_OPERATOR, "[b]"),
        ("{matchExpressions: [{key: a, operator: In, values: [b c]}]}", codes.BAD_LABEL, "b c"),
        ("{matchExpressions: [{operator: Exists}]}", codes.MISSING_FIELD, "{operator: Exists}"),
    ],
)
def test_a_selector_that_would_select_something_else_than_written_is_an_error(
    written: str, code: Code, underlined: str
) -> None:
    assert [(found, text) for found, _, text, _ in said(SELECTOR, written)] == [(code, underlined)]
