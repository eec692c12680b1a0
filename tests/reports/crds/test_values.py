"""Single values: the pattern in the schema and the rule in Python agree on every value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster.resources import dns_label, dns_subdomain, label_selector
from eastgate.dialects.accesspolicy import attributes
from eastgate.dialects.accesspolicy import values as access
from eastgate.dialects.gep3779 import values as gep
from eastgate.reading.manifests import read_nodes_text
from eastgate.reading.manifests.shapes import Check, Choice, Record, Shape, Text, check
from eastgate.reports.crds.openapi import structural
from eastgate.settings import Settings
from tests.reports.crds.api_server import schema_errors

TEXTS: dict[str, Text[Any]] = {
    "service account": Text("", gep.service_account),
    "service account anywhere": Text("", gep.service_account_anywhere),
    "service account of v1alpha1": Text("", gep.service_account_v1alpha1),
    "account name": Text("", gep.account_name),
    "SPIFFE ID": Text("", gep.spiffe_id),
    "path": Text("", gep.path),
    "method": Text("", gep.method),
    "namespace": dns_label(""),
    "name": dns_subdomain(""),
    "rule name": Text("", access.rule_name),
    "account of AccessPolicy": Text("", access.account_name),
    "prefix": Text("", access.prefix),
    "backend path": Text("", access.backend_path),
    "header name": Text("", access.header_name),
    "host name": Text("", access.hostname),
    "tool": Text("", attributes.tool),
}
LENGTHS = st.sampled_from([0, 1, 62, 63, 64, 252, 253, 254, 255, 1024, 1025, 2048, 2049])
WRITTEN = st.one_of(
    st.text("abzAZ09-._*/%25fFeE~?#\\\\: \n'", max_size=24),
    st.text("/.a*%2", max_size=12).map("/".__add__),
    st.text("/.aZ-", max_size=12).map("spiffe://td/".__add__),
    st.builds(lambda a, sign, b: "a" * a + sign + "b" * b, LENGTHS, st.sampled_from(["", "/", ".", "-"]), LENGTHS),
)


def is_accepted(shape: Shape[Any], value: object) -> bool:
    (node,) = read_nodes_text("value.json", json.dumps(value)).nodes
    reporter = Reporter()
    check(shape, node, Check(reporter, Settings()))
    return not reporter.errors


@pytest.mark.parametrize("what", TEXTS)
@given(WRITTEN)
@example("")
@example("a/" + "b" * 254)
@example("a" * 63 + "/" + "b" * 253)
@example("spiffe://td/...")
@example("spiffe://td/a\n")
@example("/a/.*")
@example("*/..")
@example("/%2e")
@example("/%7E")
@example("/a%5C")
def test_a_pattern_agrees_with_its_rule(what: str, written: str) -> None:
    refused = schema_errors(structural(TEXTS[what]), written)
    assert is_accepted(TEXTS[what], written) == (not refused)


SELECTOR: Record[Any] = label_selector()
KEYS = st.one_of(
    st.text("aZ0-._/", max_size=12),
    st.builds(lambda a, sign, b: "a" * a + sign + "b" * b, LENGTHS, st.sampled_from(["", "/"]), LENGTHS),
)
REQUIREMENTS = st.fixed_dictionaries(
    {"key": KEYS, "operator": st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "in"])},
    optional={"values": st.lists(KEYS, max_size=2), "value": KEYS},
)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "matchLabels": st.dictionaries(KEYS, KEYS, max_size=2),
            "matchExpressions": st.lists(REQUIREMENTS, max_size=2),
            "matchExpression": st.lists(REQUIREMENTS, max_size=1),
        },
    )
)
def test_a_selector_is_refused_by_both_or_by_none(selector: dict[str, object]) -> None:
    assert is_accepted(SELECTOR, selector) == (not schema_errors(structural(SELECTOR), selector))


@pytest.mark.parametrize(
    "written", ["network", "NetWork", "NETWOR\u212a", "networks", "", "APPLICATION", "appl\u0131cation"]
)
def test_a_word_in_any_letter_case_is_in_plain_letters(written: str) -> None:
    level = Choice(("NETWORK", "APPLICATION"), any_case=True)
    accepted = written.isascii() and written.lower() in ("network", "application")
    assert is_accepted(level, written) == (not schema_errors(structural(level), written)) == accepted
