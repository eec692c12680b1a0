"""Valid callers of a question: names that a caller can have. Any other name is a mistake, and not a denied caller."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eastgate import Authority, Question, QuestionError, dialects
from eastgate.authority.reading import sort_documents
from eastgate.ir import AccountsOf
from eastgate.ir.spiffe import account_of, spiffe_problem
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings

MANIFESTS = """
apiVersion: v1
kind: Pod
metadata: {namespace: a, name: p}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {namespace: a, name: all-of-a}
spec:
  targetRefs: [{kind: Pod, selector: {}}]
  action: ALLOW
  rules: [{authorizationSource: {serviceAccounts: [a/*]}}]
"""
STEM = "spiffe://cluster.local/ns/a/sa/"
LONG = STEM + "x" * (2048 - len(STEM))


@pytest.fixture(scope="module")
def authority() -> Authority:
    reading = read_text("manifests.yaml", MANIFESTS, positioned=dialects.reads)
    return Authority(sort_documents(reading.documents, Settings(), reading.reporter))


@pytest.mark.parametrize("name", ["x", "X", "x.y", "x-y", "x_y", "...", "..x", ".x", "0"])
def test_an_account_of_the_namespace_is_allowed(authority: Authority, name: str) -> None:
    assert authority.decide(Question.of(STEM + name, "pod:a/p", port=80)).allowed


def test_the_longest_is_allowed_and_a_longer_one_is_none(authority: Authority) -> None:
    assert authority.decide(Question.of(LONG, "pod:a/p", port=80)).allowed
    assert not AccountsOf("cluster.local", "a").contains(LONG + "x")


SPIFFE = [
    STEM + name for name in ("*", "", "x?x=1", "x#x", "~", "x~", ".", "..", "x/", "x//y", "%78", "x%2fy", "é", "a b")
]
SPIFFE += [
    LONG + "x",
    "spiffe://",
    "spiffe://cluster.local",
    "spiffe://cluster.local/",
    "spiffe://Cluster.Local/ns/a/sa/x",
]
SPIFFE += ["spiffe://u@cluster.local/ns/a/sa/x", "spiffe://cluster.local:80/ns/a/sa/x", "spiffe:///ns/a/sa/x"]
SPIFFE += [f"{STEM}x\n", f"{STEM}x,{STEM}y", "spiffe://cluster.local/ns//sa/x", "spiffe://cluster.local/../ns/a/sa/x"]
OTHERS = [
    "SPIFFE://cluster.local/ns/a/sa/x",
    "spiffe:/cluster.local/x",
    "spiffe:x",
    " spiffe://cluster.local/ns/a/sa/x",
]
NAMED = [
    "sa:a/*",
    "sa:A/x",
    "sa:a/X",
    "sa:a/x_y",
    "sa:a/.",
    "sa:a/..",
    "sa:a/x/y",
    "sa:a.b/x",
    "sa:a/",
    "sa:/x",
    "sa:a/-x",
]
NAMED += ["sa:a/" + "x" * 254, "sa:" + "a" * 64 + "/x", "sa:a/x\n", "sa:a/é"]
DNS = [
    "id:",
    "id:*",
    "id:*.example.com",
    "id:Example.com",
    "id:a..b",
    "id:.a",
    "id:a.",
    "id:a b",
    "id:spiffe://td/x",
    "id:a_b",
]


@pytest.mark.parametrize("source", [*SPIFFE, *OTHERS, *NAMED, *DNS])
def test_a_name_that_no_caller_can_have_is_no_source(authority: Authority, source: str) -> None:
    with pytest.raises(QuestionError) as raised:
        authority.decide(Question.of(source, "pod:a/p", port=80))
    assert raised.value.diagnostic.code.id == "EG0101"
    assert raised.value.diagnostic.help


@given(
    st.text(st.sampled_from("spiffe://td/ns/a/sa/xX._-*~?#%é\n, "), max_size=12).map(STEM.__add__)
    | st.text(st.sampled_from("spife:/tdna.x_-*"), max_size=40)
)
def test_accounts_are_those_of_the_grammar(text: str) -> None:
    found = account_of(text)
    assert AccountsOf("cluster.local", "a").contains(text) == (
        found is not None and found[:2] == ("cluster.local", "a")
    )
    if found is not None:
        assert spiffe_problem(text) is None
        assert text == "spiffe://{}/ns/{}/sa/{}".format(*found)
    elif text.startswith(STEM) and "/" not in text.removeprefix(STEM):
        assert spiffe_problem(text) is not None
