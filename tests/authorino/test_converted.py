"""Converted AuthPolicies on a real Authorino are never wider than their sources, and narrower only with a loss."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import pytest

from eastgate.convert import Assumption, Options
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.ir.attributes import PATH, header_values
from tests.authorino.requests import Issuers, answered, check_request, with_real_token
from tests.authorino.rows import Recorder, Row, in_namespace
from tests.authorino.running import Authorino, Manifest
from tests.convert.conversions import Outcome, converted
from tests.convert.istio_semantics import Call, Istio

pytestmark = pytest.mark.authorino


def convert(row: Row) -> Outcome:
    return converted(row.objects, "istio", row.table.settings, Options(frozenset({Assumption.ISTIO_PATHS})))


def gateways(row: Row) -> list[str]:
    """Return the Gateways that a request of this row may come through."""
    kind, _, name = str(row.case.question.destination).partition(":")
    if kind == "gateway":
        return [name]
    (route,) = [
        one
        for one in row.objects
        if one["kind"] == "HTTPRoute"
        and name == f"{one['metadata'].get('namespace', 'default')}/{one['metadata']['name']}"
    ]
    own = name.partition("/")[0]
    return [f"{parent.get('namespace', own)}/{parent['name']}" for parent in route["spec"].get("parentRefs", ())]


def is_tls(row: Row, gateway: str) -> bool:
    (found,) = [
        one
        for one in row.objects
        if one["kind"] == "Gateway"
        and f"{one['metadata'].get('namespace', 'default')}/{one['metadata']['name']}" == gateway
    ]
    return any(listener["protocol"] in ("HTTPS", "TLS") for listener in found["spec"]["listeners"])


def facts_of(row: Row) -> RequestFacts | None:
    """Return the request of a row, or None if it lacks a value that Envoy always sends."""
    question = row.case.question
    if None in (question.host, question.method, question.path, question.headers):
        return None
    if row.evaluated:
        one = next((one for one in row.evaluated if not one.judgement.allowed), row.evaluated[0])
        return with_real_token(one.facts, one.scheme, complete=True)
    return RequestFacts(
        time=time.time(),
        host=question.host or "",
        method=question.method or "",
        path=question.path or "",
        headers={name: ",".join(every) for name, every in header_values(question.headers or {}).items()},
        protocol="HTTP/1.1",
    )


def set_up(number: int, row: Row, outcome: Outcome, authorino: Authorino, issuers: Issuers) -> dict[str, list[str]]:
    """Create the results, each in a namespace of this table. Return the hosts by namespace."""
    hosts: dict[str, list[str]] = {}
    owners = {one["metadata"].get("namespace", "default") for one in row.objects if one["kind"] == "AuthPolicy"}
    for config in outcome.written:
        if config["kind"] != "AuthConfig":
            continue
        metadata = config["metadata"]
        namespace = f"converted-{number}-{metadata['namespace']}"
        if namespace not in hosts:
            authorino.create_namespace(namespace, [one for owner in sorted(owners) for one in row.secrets(owner)])
        spec = issuers.in_place(config["spec"], row.table.jwks)
        for owner in owners:
            spec = in_namespace(spec, owner, namespace)
        problem = authorino.create_config(namespace, metadata["name"], spec)
        assert problem is None, f"{row.table.name}: {problem}"
        hosts.setdefault(namespace, []).extend(spec["hosts"])
    return hosts


def verdict(row: Row, facts: RequestFacts, gateway: str, policies: list[Manifest], authorino: Authorino) -> bool:
    """Return whether Istio and Authorino allow a request."""
    question = row.case.question
    sni = question.sni or (str(facts.host) if is_tls(row, gateway) else None)
    path = row.decision.arrival.request.get(PATH)  # normalized, as the conversion assumes of the mesh
    sni = sni.lower() if sni is not None else None  # in the form that Envoy stores
    call = Call(None, question.port or 80, question.method, str(path), str(facts.host), sni)
    istio = Istio(policies, "cluster.local")
    if istio.asks(gateway, call) and answered(authorino.check(check_request(facts))).status != 200:
        return False
    return not istio.denies(gateway, call)


def problems_of(rows: list[Row], outcome: Outcome, authorino: Authorino, counts: Counter[str]) -> Iterator[str]:
    policies = [one for one in outcome.written if one["kind"] == "AuthorizationPolicy"]
    kept = {
        f"{one['kind']}/{one['metadata'].get('namespace', 'default')}/{one['metadata']['name']}" for one in outcome.kept
    }
    for row in rows:
        facts = facts_of(row)
        ours = row.decision
        if facts is None or any(one.judgement.is_undecided for one in row.evaluated):
            counts["about something unknown"] += 1
            continue
        if not ours.allowed and (ours.policy is None or ours.policy in kept):
            counts["denied by what stays in force"] += 1
            continue
        request = row.decision.arrival.request
        if request.refused_path or (request.respelled_path and not ours.allowed):
            counts["refused by the mesh for its path"] += 1
            continue
        theirs = all(verdict(row, facts, gateway, policies, authorino) for gateway in gateways(row))
        if theirs == ours.allowed:
            counts["equal"] += 1
        elif ours.allowed and (outcome.losses or "ruling 53" in (row.case.cites or "")):
            counts["narrower, with a loss or by a ruling"] += 1
        else:
            counts["wrong"] += 1
            yield f"{row.case.span}: {row.name}: {ours.verdict} becomes {'allow' if theirs else 'deny'} ({ours.policy})"


def _is_expected(problem: str) -> bool:
    """Return whether `convert` reports the problem (Rego with functions), or the table lacks the Secret."""
    return "=> boolean" in problem or problem.startswith("Invalid: Secret")


def test_what_is_converted_is_never_wider(
    authorino: Authorino, issuers: Issuers, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    tables = groupby(Recorder(monkeypatch).rows(), key=lambda row: id(row.table))
    for number, rows in enumerate([list(rows) for _, rows in tables]):
        outcome = convert(rows[0])
        hosts = set_up(number, rows[0], outcome, authorino, issuers)
        unready = authorino.wait_for_configs()
        counts["rows"] += len(rows)
        counts["AuthConfigs"] += sum(one["kind"] == "AuthConfig" for one in outcome.written)
        counts["AuthConfigs that Authorino cannot load"] += len(unready)
        wrong += [f"{rows[0].table.name}: {name}: {one}" for name, one in unready.items() if not _is_expected(one)]
        wrong += problems_of(rows, outcome, authorino, counts)
        authorino.delete_configs(hosts, [host for each in hosts.values() for host in each])
    print("".join(f"\n{number:6} {what}" for what, number in counts.items()))
    assert wrong == [], "\n".join(wrong)
