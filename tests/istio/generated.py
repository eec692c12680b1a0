"""Generated policies and requests: Istio's answers, and the differences of Eastgate."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import yaml

from eastgate import Settings
from eastgate.reports.tables import Result, read_tables, run_tables
from tests.istio.differences import difference
from tests.istio.drawn_policies import HOME, PROVIDERS, ROOT, PolicyDraw
from tests.istio.drawn_requests import RequestDraw
from tests.istio.gateways import GATEWAY_NAME, WAYPOINT_CLASS
from tests.istio.oracle import Answers
from tests.istio.tables import DecisionTable, Manifest

_REQUESTS = 40
_GATEWAY_GROUP = "gateway.networking.k8s.io"


def draw_tables(seed: int, count: int) -> Iterator[DecisionTable]:
    """Draw tables without expectations. Each depends only on the seed and its number."""
    for number in range(count):
        yield draw_table(seed, number)


def draw_table(seed: int, number: int) -> DecisionTable:
    """Draw one table."""
    chosen = random.Random(f"{seed}/{number}")  # noqa: S311 - not for secrets
    data_plane = chosen.choices(("sidecar", "ambient"), (4, 1))[0]
    has_waypoint = data_plane == "ambient" and chosen.random() < 0.5
    plaintext, ipv6 = not has_waypoint and chosen.random() < 0.7, chosen.random() < 0.5
    # A plaintext connection has no server name. An IPv6 caller reaches a pod at an address that only the test adds.
    without = [key for key, is_unknown in {"connection.sni": plaintext, "destination.ip": ipv6}.items() if is_unknown]
    draw = PolicyDraw(chosen, without=without)
    policies = draw.policies()
    if has_waypoint:
        targets = (
            {"group": "", "kind": "Service", "name": "web"},
            {"group": _GATEWAY_GROUP, "kind": "Gateway", "name": "waypoint"},
        )
        policies = [draw.targeting(policy, chosen.choice(targets)) for policy in policies]
    settings: Manifest = {"istioDataPlane": data_plane}
    if chosen.random() < 0.2:
        settings["trustDomainAliases"] = ["td2"]
    if chosen.random() < 0.3:
        settings["pathNormalization"] = chosen.choice(("none", "base", "merge-slashes", "decode-and-merge-slashes"))
    requests = RequestDraw(chosen, plaintext=plaintext, ipv6=ipv6, long_identities=data_plane == "sidecar")
    return DecisionTable(
        name=f"generated-{seed}-{number}",
        origin=f"seed {seed}, table {number}",
        objects=[*_world(number, has_waypoint=has_waypoint), *policies],
        cases=requests.cases(_REQUESTS),
        settings=settings,
        external_auth={f"{name}.authz:9000": verdict for name, verdict in PROVIDERS.items()},
    )


def write_table(answers: Answers, cases: list[int] | None = None) -> str:
    """Return a DecisionTest that expects Istio's answers for all cases or some."""
    table = answers.table
    chosen = range(len(table.cases)) if cases is None else cases
    spec = {
        "settings": dict(table.settings),
        "externalAuth": dict(table.external_auth),
        "objects": table.objects,
        "cases": [{**table.cases[number], "expect": answers.cases[number].verdict} for number in chosen],
    }
    document = {
        "apiVersion": "eastgate.dev/v1alpha1",
        "kind": "DecisionTest",
        "metadata": {"name": table.name},
        "spec": spec,
    }
    return yaml.safe_dump(document, sort_keys=False, width=120)


def differences_of_eastgate(answers: Answers, folder: Path) -> list[str]:
    """Return every case of a table with another decision of Eastgate, each as its own table."""
    file = folder / f"{answers.table.name}.yaml"
    file.write_text(write_table(answers), encoding="utf-8")
    tables, reporter = read_tables([file], Settings())
    assert reporter.errors == [], [error.message for error in reporter.errors]
    results = run_tables(tables).results
    decided = {result.name: result for result in results}
    problems = []
    for number, (case, answer) in enumerate(zip(answers.table.cases, answers.cases, strict=True)):
        problem = difference(_row(decided[case["name"]]), answer)
        if problem is not None:
            problems.append(
                f"# {answers.table.origin}: Eastgate: {problem} ({answer.detail})\n{write_table(answers, [number])}"
            )
    return problems


def _row(result: Result) -> Manifest:
    """Return Eastgate's decision, as a row for comparison with Istio."""
    decision = result.decision
    assert decision is not None, result.problem
    return {"expect": decision.verdict, "status": decision.status, "by": str(decision.policy or "none")}


def _world(number: int, *, has_waypoint: bool) -> Iterator[Manifest]:
    """Yield the pods and Services of all tables. Each table has its own addresses of pods."""
    providers = [
        {"name": name, "envoyExtAuthzGrpc": {"service": f"{name}.authz.svc.cluster.local", "port": 9000}}
        for name in PROVIDERS
    ]
    mesh = yaml.safe_dump({"extensionProviders": providers})
    yield {**_named("ConfigMap", "istio", ROOT), "data": {"mesh": mesh}}
    for name in PROVIDERS:
        yield {**_named("Service", name, "authz"), "spec": {"ports": [{"name": "grpc", "port": 9000}]}}
    for last, name in enumerate(("web", "db"), start=1):
        labels = {"app": name, "tier": "back" if name == "db" else "front"}
        yield _pod(name, labels, _address(100, number, last))
    targets = {"http": (80, 8080), "tcp": (90, 9090)}
    open_ports = [{"name": name, "port": port, "targetPort": target} for name, (port, target) in targets.items()]
    service = {"clusterIP": _address(200, number, 1), "selector": {"app": "web"}, "ports": open_ports}
    yield {**_named("Service", "web", HOME), "spec": service}
    if has_waypoint:
        yield _named("Namespace", HOME, None, labels={"istio.io/use-waypoint": "waypoint"})
        gateway = _named("Gateway", "waypoint", HOME, labels={"istio.io/waypoint-for": "all"})
        listeners = [{"name": "mesh", "port": 15008, "protocol": "HBONE"}]
        waypoint = {"gatewayClassName": WAYPOINT_CLASS, "listeners": listeners}
        yield {**gateway, "apiVersion": f"{_GATEWAY_GROUP}/v1", "spec": waypoint}
        yield _pod("waypoint", {GATEWAY_NAME: "waypoint"}, _address(100, number, 3))


def _pod(name: str, labels: dict[str, str], address: str) -> Manifest:
    ports = [{"containerPort": port} for port in (8080, 9090, 7000)]
    spec = {"serviceAccountName": name, "containers": [{"name": "c", "image": "i", "ports": ports}]}
    status = {"podIP": address, "podIPs": [{"ip": address}]}
    return {**_named("Pod", name, HOME, labels=labels), "spec": spec, "status": status}


def _address(network: int, number: int, last: int) -> str:
    """Return an address that no other table of a batch has."""
    return f"10.{network}.{number % 250}.{last + number // 250 % 80 * 3}"


def _named(kind: str, name: str, namespace: str | None, labels: dict[str, str] | None = None) -> Manifest:
    metadata: Manifest = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}
