"""The schemes of AuthConfigs and of today's AuthPolicies accept the right field names."""

from __future__ import annotations

import pytest

from eastgate.dialects.kuadrant.schemes import (
    AUTH_CONFIG_SPEC,
    AUTH_CONFIG_SPEC_V1BETA1,
    NAMED_PATTERNS_ALL_OF,
    RULES,
    WHEN_PREDICATES,
)
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings
from tests.dialects.kuadrant.scheme_texts import NEW, OLD, content
from tests.dialects.kuadrant.schemes.reading import HOSTS, config, ids, problems

CALLBACK_OLD = "callbacks: [{name: log, http: {endpoint: 'http://log', method: POST}}]"
CALLBACK_NEW = "callbacks: {log: {http: {url: 'http://log', method: POST}}}"
WHOLE: Record[Settings] = Record("spec", {"patterns": AUTH_CONFIG_SPEC.fields["patterns"], "when": WHEN_PREDICATES})


def test_both_versions_of_an_auth_config_are_the_same_scheme() -> None:
    old = config(OLD.partition("\n")[2].partition("\n")[2] + CALLBACK_OLD, AUTH_CONFIG_SPEC_V1BETA1)
    new = config(NEW.partition("\n")[2].partition("\n")[2] + CALLBACK_NEW)
    assert content(old) == content(new)
    assert [callback.call.url for callback in new.callbacks] == ["http://log"]


@pytest.mark.parametrize("host", ["a.example", "'*.a.example'", "'*'", "a.example:8000"])
def test_a_host_may_have_a_port(host: str) -> None:
    assert problems(AUTH_CONFIG_SPEC, f"hosts: [{host}]") == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("authentication: {}", ["EG1203"]),
        ("hosts: []", ["EG5118"]),
        ("hosts: ['https://a.example']", ["EG5005"]),
        (HOSTS + "identity: []", ["EG5101"]),
        (HOSTS + "when: [{patternRef: none}]", ["EG5104"]),
        (HOSTS + "patterns: {a: [{predicate: 'true'}]}", ["EG1201", "EG5105"]),
        (HOSTS + "patterns: {a: {allOf: [{selector: a, operator: eq}]}}", ["EG1202"]),
        (HOSTS + "response: {success: {filters: {a: {plain: {value: b}}}}}", ["EG5101"]),
        (HOSTS + "authentication: {a: {hmac: {}}}", ["EG5132"]),
    ],
)
def test_mistakes_in_an_auth_config(text: str, codes: list[str]) -> None:
    assert ids(problems(AUTH_CONFIG_SPEC, text)) == codes


def test_an_auth_policy_says_filters() -> None:
    entry = "{a: {plain: {selector: auth.identity.sub}}}"
    assert problems(RULES, f"response: {{success: {{filters: {entry}, headers: {entry}}}}}") == []
    (diagnostic,) = problems(RULES, f"response: {{success: {{dynamicMetadata: {entry}}}}}")
    assert (diagnostic.code.id, diagnostic.help) == ("EG5101", "write filters: ..")


@pytest.mark.parametrize("word", ["hosts: [a]", "patterns: {}", "when: []", "identity: []"])
def test_rules_of_an_auth_policy_have_nothing_around_them(word: str) -> None:
    assert ids(problems(RULES, word)) == ["EG5101"]


def test_rules_may_refer_to_patterns_of_other_policies() -> None:
    assert problems(RULES, "authorization: {a: {patternMatching: {patterns: [{patternRef: elsewhere}]}}}") == []


@pytest.mark.parametrize(
    ("patterns", "codes"),
    [
        ("a: {allOf: [{selector: request.method, operator: eq, value: GET}]}", []),
        ("a: [{selector: request.method, operator: eq, value: GET}]", ["EG1202"]),
        ("a: {allOf: []}", ["EG5105"]),
        ("a: {}", ["EG1203"]),
        ("a: {all: [{selector: request.method, operator: eq, value: GET}]}", ["EG1201"]),
    ],
)
def test_named_patterns_of_an_auth_policy_are_under_all_of(patterns: str, codes: list[str]) -> None:
    assert sorted(ids(problems(NAMED_PATTERNS_ALL_OF, patterns))) == codes


@pytest.mark.parametrize(
    ("when", "codes"),
    [
        ("[{predicate: request.method == 'GET'}]", []),
        ("[{predicate: request.}]", ["EG5109"]),
        ("[{predicate: '1 + 1'}]", ["EG5109"]),
        ("[{patternRef: a}]", ["EG1201"]),
        ("[{selector: a, operator: eq, value: b}]", ["EG1201"]),
        ("[{any: [{predicate: 'true'}]}]", ["EG1201"]),
        ("[{predicate: 'true', operator: eq}]", ["EG1201"]),
        ("[{expression: 'true'}]", ["EG1201"]),
        ("[{}]", ["EG1203"]),
    ],
)
def test_when_of_an_auth_policy_has_predicates_only(when: str, codes: list[str]) -> None:
    assert sorted(ids(problems(WHOLE, f"when: {when}"))) == codes
