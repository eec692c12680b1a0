"""Eastgate denies requests that the reference implementation allows by mistake: one test for each mistake."""

from __future__ import annotations

import pytest

from eastgate import Question, Settings
from eastgate.authority.authority import Authority
from eastgate.authority.reading import ManifestError, sort_documents
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from tests.dialects.accesspolicy.reading import (
    AUTHORIZER,
    BACKEND,
    CHECKOUT,
    CHECKOUT_ID,
    GATEWAY,
    backend_manifest,
    manifest,
    refusals,
)


def authority(*specs: str, form: str = "v1alpha1") -> Authority:
    """Return an authority with a Backend and policies on it."""
    policies = [
        manifest(form, BACKEND + spec, f"{{name: p{number}, namespace: prod}}") for number, spec in enumerate(specs)
    ]
    text = "---\n".join([backend_manifest("{serviceName: pay, port: 8080}"), *policies])
    reading = read_text("all.yaml", text, positioned=reads)
    return Authority(sort_documents(reading.documents, Settings(), reading.reporter))


def may(
    asked: Authority,
    tool: str = "charge",
    *,
    source: str = CHECKOUT_ID,
    path: str = "/mcp",
    headers: dict[str, str] | None = None,
    answers: dict[str, str] | None = None,
) -> bool:
    """Return whether a tool may be called."""
    question = Question.of(
        source,
        "backend:prod/pay",
        port=8080,
        method="POST",
        path=path,
        host="api.example.com",
        headers=headers,
        mcp_method="tools/call",
        tool=tool,
        external_auth=answers or {},
    )
    return asked.decide(question).allowed


def test_without_a_policy_everything_passes() -> None:
    assert may(authority())


@pytest.mark.parametrize("form", ["v0alpha0", "v1alpha1"])
@pytest.mark.parametrize("kind", ["SPIFFE", "ServiceAccount"])
def test_a_source_without_its_member_is_not_anyone(form: str, kind: str) -> None:
    action = "action: Allow\n" if form == "v1alpha1" else ""
    spec = f"{GATEWAY}{action}rules: [{{name: r, source: {{type: {kind}}}}}]"
    assert refusals(manifest(form, spec)) == ["EG3010"]


@pytest.mark.parametrize(
    "ignored",
    [
        "paths: [{value: /other}]",
        "methods: [GET]",
        "hosts: [other.example.com]",
        "ports: [443]",
        "headers: [{name: x-team, value: pay}]",
    ],
)
def test_an_http_attribute_is_never_ignored(ignored: str) -> None:
    rule = f"{{name: r, authorization: {{type: Inline, {ignored}}}}}"
    assert not may(authority(f"action: Allow\nrules: [{rule}]"), headers={"x-team": "shop"})


@pytest.mark.parametrize("empty", ["methods", "paths", "hosts", "ports", "headers"])
def test_an_explicitly_empty_list_allows_nothing(empty: str) -> None:
    rule = f"{{name: r, authorization: {{type: Inline, {empty}: []}}}}"
    assert not may(authority(f"action: Allow\nrules: [{rule}]"))


@pytest.mark.parametrize("mcp", ["{methods: []}", "{methods: [{name: tools/call, params: []}]}"])
def test_explicitly_empty_methods_and_params_allow_nothing(mcp: str) -> None:
    rule = f"{{name: r, authorization: {{type: Inline, mcp: {mcp}}}}}"
    assert not may(authority(f"action: Allow\nrules: [{rule}]"))


def test_an_allow_policy_with_no_rules_in_it_enforces() -> None:
    assert not may(authority("action: Allow\nrules: []"))


def test_rules_of_the_same_name_in_two_policies_do_not_overwrite_each_other() -> None:
    rule = "{name: same, authorization: {type: Inline, mcp: {methods: [{name: tools/call, params: [%s]}]}}}"
    both = authority(*(f"action: Allow\nrules: [{rule % tool}]" for tool in ("charge", "refund")))
    assert (may(both, "charge"), may(both, "refund"), may(both, "quote")) == (True, True, False)


def test_a_section_name_does_not_make_a_policy_wider() -> None:
    targets = GATEWAY.replace("name: gw", "name: gw, sectionName: mcp")
    assert refusals(manifest("v1alpha1", f"{targets}action: Allow")) == ["EG3004"]


def test_a_policy_that_cannot_be_read_keeps_everything_from_being_decided() -> None:
    with pytest.raises(ManifestError):
        authority("action: Allow\nrules: [{name: r, source: {type: SPIFFE}}]")


CEL_ERRS = "{type: CEL, cel: {expression: \"request.headers['x-team'] == 'pay'\"}}"  # an absent header is an error


@pytest.mark.parametrize("headers", [{"x-team": "shop"}, {}])
def test_an_expression_that_errs_allows_nothing(headers: dict[str, str]) -> None:
    asked = authority(f"action: Allow\nrules: [{{name: r, authorization: {CEL_ERRS}}}]")
    assert may(asked, headers={"x-team": "pay"})
    assert not may(asked, headers=headers)


PATH_IS_NO_TIME = "timestamp(request.path) == timestamp('2026-01-01T00:00:00Z')"


def errs(condition: str) -> str:
    return f'{{type: CEL, cel: {{expression: "{condition}"}}}}'


def test_an_expression_that_errs_is_no_way_round_a_denial() -> None:
    expression = errs(f"request.mcp.tool_name == 'charge' && {PATH_IS_NO_TIME}")
    asked = authority(f"action: Deny\nrules: [{{name: r, authorization: {expression}}}]")
    assert not may(asked, "charge")
    assert may(asked, "refund")


def test_an_expression_that_errs_is_no_way_round_an_authorizer() -> None:
    rule = f"{{name: r, authorization: {errs(PATH_IS_NO_TIME)}}}"
    asked = authority(f"action: ExternalAuth\nexternalAuth: {AUTHORIZER}\nrules: [{rule}]")
    assert not may(asked, answers={"fraud.prod:9000": "deny"})
    assert may(asked, answers={"fraud.prod:9000": "allow"})


@pytest.mark.parametrize("answer", [None, "deny", "error"])
def test_an_authorizer_that_does_not_allow_denies(answer: str | None) -> None:
    rule = f"{{name: r, source: {CHECKOUT}, authorization: {{type: ExternalAuth, externalAuth: {AUTHORIZER}}}}}"
    asked = authority(f"rules: [{rule}]", form="v0alpha0")
    assert not may(asked, answers={"fraud.prod:9000": answer} if answer else {})
    assert may(asked, answers={"fraud.prod:9000": "allow"})
    assert may(asked, source="anonymous")  # if no rule names the caller, no authorizer is asked


def test_a_prepared_question_looks_at_the_answer_of_an_authorizer_each_time() -> None:
    asked = authority(f"action: ExternalAuth\nexternalAuth: {AUTHORIZER}")
    answers = {"fraud.prod:9000": "allow"}
    prepared = asked.prepare(
        Question.of(CHECKOUT_ID, "backend:prod/pay", port=8080, method="POST", path="/mcp", external_auth=answers)
    )
    assert prepared.decide().allowed
    answers["fraud.prod:9000"] = "deny"
    assert not prepared.decide().allowed


def test_an_authorizer_that_may_not_be_referred_to_denies_whatever_it_would_say() -> None:
    elsewhere = AUTHORIZER.replace("name: fraud", "name: fraud, namespace: security")
    asked = authority(f"action: ExternalAuth\nexternalAuth: {elsewhere}")
    assert not may(asked, answers={"fraud.security:9000": "allow"})


def test_a_rule_without_authorization_beside_an_authorizer_is_not_dropped() -> None:
    ask = f"{{name: a, source: {CHECKOUT}, authorization: {{type: ExternalAuth, externalAuth: {AUTHORIZER}}}}}"
    assert refusals(manifest("v0alpha0", f"{GATEWAY}rules: [{ask}, {{name: b, source: {CHECKOUT}}}]")) == ["EG3009"]


def test_a_client_without_identity_is_nobody_whom_a_source_names() -> None:
    asked = authority(f"action: Allow\nrules: [{{name: r, source: {CHECKOUT}}}]")
    assert may(asked)
    assert not may(asked, source="anonymous")


def test_an_encoded_slash_is_no_way_round_a_path() -> None:
    rule = "{name: r, authorization: {type: Inline, paths: [{value: /admin}]}}"
    asked = authority(f"action: Deny\nrules: [{rule}]")
    assert (may(asked, path="/mcp"), may(asked, path="/admin"), may(asked, path="/%2fadmin")) == (True, False, False)
