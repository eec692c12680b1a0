"""Conversions between the kinds of Kuadrant and Authorino: proven for all requests, and asked what the tables ask."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eastgate.api.authority import Authority
from eastgate.api.questions import QuestionError
from eastgate.api.reading import Manifests, sort_documents
from eastgate.convert import Conversion, convert, from_authconfigs
from eastgate.convert.verifying import verify
from eastgate.dialects import reads
from eastgate.dialects.kuadrant.hosts import host_problem
from eastgate.manifests import ReadResult, read_text
from eastgate.reach.differences import AuthorityComparison, DoubtReason
from eastgate.reach.hosts import host_names
from eastgate.reports.tables import Table, read_tables
from eastgate.settings import Settings

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
    """Convert the objects of a table; returns also the two sides."""
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
    """Assert that a conversion is right about every request, and about those that the table asks."""
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
        is_let_in = is_allowed(new, replace(question, to=f"host:{question.host}"))
        assert is_let_in or not is_allowed(old, question), question.arguments


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
    """Each host that a table has gets a route. What is written there decides as the AuthConfig of the host does."""
    table = tables("AuthConfig")[name]
    assert table.objects is not None
    plain = json.loads(json.dumps(table.objects.plain()))
    by_name = {
        f"authconfig:{m['metadata'].get('namespace', 'default')}/{m['metadata']['name']}": m["spec"]["hosts"]
        for m in plain
        if m["kind"] == "AuthConfig"
    }
    asked = [(case.question.host or by_name.get(case.question.to, [""])[0], case.question) for case in table.cases]
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
            was = is_allowed(comparison.old, replace(question, host=host, to=f"host:{host}"))
            now = is_allowed(comparison.new, replace(question, host=host, to="gateway:edge/edge"))
            assert was == now or (is_moved and not now), question.arguments


@pytest.mark.parametrize("lost", ["when", "authorization"])
def test_what_an_authpolicy_leaves_out_of_an_authconfig_is_noticed(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(__file__).parent / "goldens" / "authconfig-to-authpolicy-in.yaml"
    reading = read_text("a.yaml", path.read_text(encoding="utf-8"), positioned=reads)

    def doubts() -> set[str]:
        manifests, conversion = convert(reading, "authpolicy-v1", Settings())
        return {each.subject for each in verify(manifests, reading.documents, conversion, Settings()).doubts}

    assert doubts() == set()
    rules_of_policy = from_authconfigs.rules_of_policy

    def without(*arguments: Any) -> dict[str, Any]:
        rules: Any = rules_of_policy(*arguments)
        return {
            name: {each: part for each, part in value.items() if each != lost} if name == "rules" else value
            for name, value in rules.items()
            if name != lost
        }

    monkeypatch.setattr(from_authconfigs, "rules_of_policy", without)
    assert doubts() == {"host:calls.toys.example.com", "host:toys.example.com"}


def _hosts(side: Authority) -> set[str]:
    return {name.removeprefix("host:") for name in host_names(side)}
