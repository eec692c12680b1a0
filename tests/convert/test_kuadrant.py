"""Conversions between the kinds of Kuadrant and Authorino, proven for all requests and for those of tables."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from eastgate.authority.authority import Authority
from eastgate.authority.questions import QuestionError
from eastgate.authority.reading import Manifests, sort_documents
from eastgate.cluster.ends import Gateway, Host
from eastgate.convert import Conversion, convert, from_authconfigs, proposal_authconfigs
from eastgate.convert.policy_writing import rules_of_policy
from eastgate.convert.verifying import verify
from eastgate.dialects import reads
from eastgate.dialects.kuadrant.hosts import host_problem
from eastgate.ir.attributes import query_of
from eastgate.ir.paths import handed_path
from eastgate.reach.comparison import AuthorityComparison, DoubtReason
from eastgate.reach.hosts import host_names
from eastgate.reading.manifests import ReadResult, read_text
from eastgate.reports.tables import Table, read_tables
from eastgate.settings import Settings

GOLDENS = Path(__file__).parent / "goldens"
SUITE = Path(__file__).parents[2] / "conformance"


@cache
def tables(feature: str) -> dict[str, Table]:
    read, reporter = read_tables([SUITE / feature], Settings())
    assert reporter.errors == []
    return {table.name: table for table in read if not table.rejects and not _read(table)[0].reporter.errors}


def _read(table: Table) -> tuple[Manifests, ReadResult]:
    assert table.objects is not None
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": table.objects.plain()})
    reading = read_text("table.json", text, positioned=reads, namespace=table.settings.namespace)
    return sort_documents(reading.documents, table.settings, reading.reporter), reading


def converted(table: Table, to: str) -> tuple[Conversion, AuthorityComparison, Authority, Authority]:
    """Convert the objects of a table; also return the two sides."""
    _, reading = _read(table)
    manifests, conversion = convert(reading, to, table.settings)
    comparison = verify(manifests, reading.documents, conversion, table.settings)
    return conversion, comparison, comparison.old, comparison.new


def is_allowed(side: Authority, question: object) -> bool | None:
    try:
        return side.decide(question).allowed  # type: ignore[arg-type] # tables have questions
    except QuestionError:
        return None


def check(table: Table, to: str) -> Conversion:
    """Assert that a conversion is correct for every request, and for the questions of the table."""
    conversion, comparison, old, new = converted(table, to)
    losses = {loss.code.id for loss in conversion.losses}
    assert [each for each in comparison.differences if each.new.allowed] == []
    doubts = [doubt for doubt in comparison.doubts if doubt.reason is not DoubtReason.SHARED_SERVER]
    assert losses or not (comparison.differences or doubts), (comparison.differences, doubts)
    for case in table.cases:
        was, now = is_allowed(old, case.question), is_allowed(new, case.question)
        is_vague = "unknown" in table.name or "iss" not in (case.question.claims or {"iss": ""})
        assert was == now or ((losses or is_vague) and not now), (case.name, losses)
    return conversion


@pytest.mark.parametrize("name", tables("AuthConfig"))
def test_authconfigs_of_earlier_versions(name: str) -> None:
    conversion = check(tables("AuthConfig")[name], "authconfig-v1beta3")
    assert {m["apiVersion"] for m in conversion.manifests if m["kind"] == "AuthConfig"} <= {
        "authorino.kuadrant.io/v1beta3"
    }


@pytest.mark.parametrize("name", tables("Kuadrant"))
def test_authpolicies_of_v1beta3(name: str) -> None:
    check(tables("Kuadrant")[name], "authpolicy-v1")


@pytest.mark.parametrize("name", tables("AuthPolicy"))
def test_authpolicies_of_2022(name: str) -> None:
    check(tables("AuthPolicy")[name], "authpolicy-v1")


@pytest.mark.parametrize("name", tables("Kuadrant"))
def test_authpolicies_of_today_to_2022(name: str) -> None:
    check(tables("Kuadrant")[name], "authpolicy-v1alpha1")


@pytest.mark.parametrize("name", tables("Kuadrant"))
def test_authconfigs_for_authpolicies_of_today(name: str) -> None:
    table = tables("Kuadrant")[name]
    check(table, "authconfig-v1beta3")
    _, comparison, old, new = converted(table, "authconfig-v1beta3")
    assert {doubt.reason for doubt in comparison.doubts} <= {DoubtReason.SHARED_SERVER}
    for question in (case.question for case in table.cases if case.question.host in _hosts(new)):
        is_let_in = is_allowed(new, replace(question, destination=Host(str(question.host))))
        assert is_let_in or not is_allowed(old, question), question.arguments


@pytest.mark.parametrize("name", tables("AuthPolicy"))
def test_authconfigs_for_authpolicies_of_2022(name: str) -> None:
    table = tables("AuthPolicy")[name]
    check(table, "authconfig-v1beta3")
    _, comparison, old, new = converted(table, "authconfig-v1beta3")
    doubts = {doubt.subject for doubt in comparison.doubts if doubt.reason is not DoubtReason.SHARED_SERVER}
    assert doubts <= {"host:property.example.com"}  # its properties come in another order
    for question in (case.question for case in table.cases if case.question.host in _hosts(new)):
        was, now = is_allowed(old, question), is_allowed(new, replace(question, destination=Host(str(question.host))))
        is_vague = "iss" not in (question.claims or {})  # the AuthConfig compares the issuer
        assert was == now or (is_vague and not now), question.arguments


EDGE = [
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "edge", "namespace": "edge"},
        "spec": {"gatewayClassName": "istio", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
    }
]


def route(number: int, host: str) -> dict[str, object]:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": f"route-{number}", "namespace": "edge"},
        "spec": {
            "parentRefs": [{"name": "edge"}],
            "hostnames": [host],
            "rules": [{"backendRefs": [{"name": "backend", "port": 80}]}],
        },
    }


@pytest.mark.parametrize("name", tables("AuthConfig"))
def test_authpolicies_for_authconfigs(name: str) -> None:
    """Each host of a table gets a route. The AuthPolicies of the route decide as the AuthConfig of the host does.

    The gateway normalizes the path before.
    """
    table = tables("AuthConfig")[name]
    assert table.objects is not None
    plain = json.loads(json.dumps(table.objects.plain()))
    by_name = {
        f"authconfig:{m['metadata'].get('namespace', 'default')}/{m['metadata']['name']}": m["spec"]["hosts"]
        for m in plain
        if m["kind"] == "AuthConfig"
    }
    asked = [
        (case.question.host or by_name.get(str(case.question.destination), [""])[0], case.question)
        for case in table.cases
    ]
    names = sorted({host for host, _ in asked if host_problem(host) is None})
    objects = [*plain, *EDGE, *(route(number, host) for number, host in enumerate(names))]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    reading = read_text("table.json", text, positioned=reads, namespace=table.settings.namespace)
    manifests, conversion = convert(reading, "authpolicy-v1", table.settings)
    comparison = verify(manifests, reading.documents, conversion, table.settings)
    assert [each for each in comparison.differences if each.new.allowed] == []
    assert {doubt.reason for doubt in comparison.doubts} <= {DoubtReason.SHARED_SERVER}
    written = json.loads(json.dumps(conversion.manifests))
    targets = [m["spec"]["targetRef"]["name"] for m in written if m["kind"] == "AuthPolicy"]
    is_moved = "EG7203" in {loss.code.id for loss in conversion.losses}
    for host, question in asked:
        if host in names and f"route-{names.index(host)}" in targets:
            path = handed_path(question.path) + query_of(question.path) if question.path is not None else None
            was = is_allowed(comparison.old, replace(question, host=host, destination=Host(host), path=path))
            now = is_allowed(comparison.new, replace(question, host=host, destination=Gateway("edge", "edge")))
            assert was == now or (is_moved and not now), question.arguments


def outcome(path: str, to: str, *more: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str], set[str]]:
    """Return the result of a golden input beside other objects, the codes of the losses, and the doubts."""
    objects = [*yaml.safe_load_all((GOLDENS / path).read_text(encoding="utf-8")), *more]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    reading = read_text("a.json", text, positioned=reads)
    manifests, conversion = convert(reading, to, Settings())
    assert manifests.reporter.errors == []
    comparison = verify(manifests, reading.documents, conversion, Settings())
    assert [each for each in comparison.differences if each.new.allowed] == []
    doubts = {each.subject for each in comparison.doubts}
    written = [m for m in json.loads(json.dumps(conversion.manifests)) if "converted-from" in json.dumps(m)]
    return written, [loss.code.id for loss in conversion.losses], doubts


def policy_of_today(kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "kuadrant.io/v1",
        "kind": "AuthPolicy",
        "metadata": {"name": "there", "namespace": "shop"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": kind, "name": name},
            "rules": {"authentication": {"tokens": {"jwt": {"issuerUrl": "https://idp.example"}}}},
        },
    }


def auth_config(name: str, *hosts: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "authorino.kuadrant.io/v1beta3",
        "kind": "AuthConfig",
        "metadata": {"name": name, "namespace": "auth", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"hosts": list(hosts), "authentication": {"anybody": {"anonymous": {}}}, **spec},
    }


@pytest.mark.parametrize(
    ("more", "left", "code"),
    [
        (policy_of_today("HTTPRoute", "toys"), {"calls", "keys"}, "EG7212"),
        (policy_of_today("Gateway", "edge"), set(), "EG7212"),
        (auth_config("older", "toys.example.com"), {"calls", "keys", "toys"}, "EG7222"),
        (auth_config("older", "toys.example.com:8080"), {"calls", "keys"}, "EG7223"),
        (auth_config("older", "*"), {"books", "calls", "keys", "toys"}, "EG7223"),
        (auth_config("older", "TOYS.example.com"), {"calls", "keys"}, "EG7223"),
    ],
    ids=["its own policy", "a policy of its Gateway", "another AuthConfig", "a port", "all hosts", "letter case"],
)
def test_an_authpolicy_is_written_only_where_it_decides_alone(more: dict[str, Any], left: set[str], code: str) -> None:
    written, losses, doubts = outcome("authconfig-to-authpolicy-in.yaml", "authpolicy-v1", more)
    assert {m["spec"]["targetRef"]["name"] for m in written} == left
    assert code in losses
    assert doubts == set()


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ({"selector": "auth.identity.sub", "operator": "eq", "value": "alice"}, "EG7216"),
        ({"predicate": "request.headers['x-a'] == 'b'"}, "EG7216"),
        ({"selector": "request.method", "operator": "incl", "value": "GET"}, "EG7216"),
    ],
    ids=["identity", "header", "operator"],
)
def test_a_when_that_a_gateway_sees_otherwise_is_not_written(when: dict[str, Any], code: str) -> None:
    config = auth_config("older", "keys.example.com", when=[when])
    written, losses, doubts = outcome("authconfig-to-authpolicy-in.yaml", "authpolicy-v1", config)
    assert {m["spec"]["targetRef"]["name"] for m in written} == {"toys", "calls"}
    assert code in losses
    assert doubts == set()


@pytest.mark.parametrize(
    ("more", "left", "code"),
    [
        (auth_config("older", "*.toys.example.com"), {"books"}, "EG7205"),
        (policy_of_today("HTTPRoute", "books"), {"toys"}, "EG7221"),
        (route(1, "deeper.toys.example.com") | {"kind": "HTTPRoute"}, {"books", "toys"}, "EG7222"),
    ],
    ids=["another AuthConfig", "a policy of today", "a route of nobody"],
)
def test_an_authconfig_is_written_only_where_it_decides_alone(more: dict[str, Any], left: set[str], code: str) -> None:
    written, losses, doubts = outcome("authpolicy-2022-to-authconfig-in.yaml", "authconfig-v1beta3", more)
    assert {m["metadata"]["name"] for m in written} == left
    assert code in losses
    assert doubts == set()


def test_hosts_without_a_scheme_that_are_let_in_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    written, losses, doubts = outcome("authpolicy-2022-hosts-to-v1-in.yaml", "authpolicy-v1")
    assert [m["metadata"]["name"] for m in written] == ["toys"]
    assert (losses, doubts) == (["EG7214", "EG7214"], set())
    monkeypatch.setattr("eastgate.convert.from_proposal.with_host_check", lambda config, _: config)
    with pytest.raises(AssertionError, match="VerdictDifference"):
        outcome("authpolicy-2022-hosts-to-v1-in.yaml", "authpolicy-v1")


@pytest.mark.parametrize("lost", ["when", "authorization"])
def test_what_an_authconfig_leaves_out_of_a_policy_of_2022_is_noticed(
    lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = proposal_authconfigs._manifest

    def without(*arguments: Any) -> dict[str, Any]:
        manifest: Any = write(*arguments)
        return {**manifest, "spec": {name: value for name, value in manifest["spec"].items() if name != lost}}

    monkeypatch.setattr(proposal_authconfigs, "_manifest", without)
    _, _, doubts = outcome("authpolicy-2022-to-authconfig-in.yaml", "authconfig-v1beta3")
    assert {"host:toys.example.com", "host:*.toys.example.com"} <= doubts


@pytest.mark.parametrize("lost", ["when", "authorization"])
def test_what_an_authpolicy_leaves_out_of_an_authconfig_is_noticed(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def without(*arguments: Any) -> dict[str, Any]:
        rules: Any = rules_of_policy(*arguments)
        return {
            name: {each: part for each, part in value.items() if each != lost} if name == "rules" else value
            for name, value in rules.items()
            if name != lost
        }

    monkeypatch.setattr(from_authconfigs, "rules_of_policy", without)
    _, _, doubts = outcome("authconfig-to-authpolicy-in.yaml", "authpolicy-v1")
    assert doubts == {"host:calls.toys.example.com", "host:toys.example.com"}


def _hosts(side: Authority) -> set[str]:
    return {name.removeprefix("host:") for name in host_names(side)}
