"""Each row of the effective table agrees with the engine about concrete requests in it."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Settings
from eastgate.authority.authority import programs_of
from eastgate.authority.questions import arrivals
from eastgate.cluster import BackendNamed, GatewayNamed
from eastgate.engine import reference
from eastgate.ir import Layer, Request
from eastgate.ir.attributes import BACKEND, IDENTITY, MESH_NAME, METHOD, PATH, PORT, SERVICE, header
from eastgate.ir.paths import is_refused
from eastgate.ir.symbolic.partial import Facts
from eastgate.reach.endings import EnforcementPoint
from eastgate.reach.table import EffectiveDestination, EffectiveTable, effective_table
from eastgate.reports.cluster import Cluster
from eastgate.reports.describe.pods import pod_tables
from eastgate.reports.describe.subjects import service_table
from eastgate.settings import DataPlane
from tests.reports.finding import branch_of, row_of
from tests.worlds import access_generate, generate, kuadrant_generate, linkerd_generate
from tests.worlds.kuadrant_oracle import Call as HttpCall
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, Manifest
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, situations
from tests.worlds.test_generated_kuadrant import accepted, decided
from tests.worlds.test_generated_linkerd import compared, request_of

PATHS = [path for path in generate.PATHS if not is_refused(path)]


def agrees(table: EffectiveTable, layers: tuple[Layer, ...], request: Request) -> None:
    row = row_of(table, request)
    if row.cell.too_many:
        return
    branch = branch_of(row, request)
    outcome = reference.decide(layers, request)
    assert branch.end.allowed == outcome.allowed, (branch, outcome)
    assert branch.end.origin == (outcome.rule.origin if outcome.rule else None), (branch, outcome)
    verdicts = {"allow": [True], "deny": [False], "if": [True, False]}
    assert outcome.allowed in verdicts[row.cell.verdict]


def requests() -> list[Request]:
    http = itertools.cycle(itertools.product(generate.METHODS, PATHS))
    return [
        Request({IDENTITY: identity, MESH_NAME: identity, PORT: port, METHOD: method, PATH: path, SERVICE: None})
        for identity in [None, *generate.IDENTITIES, "spiffe://td/ns/z/sa/z", "spiffe://other/x"]
        for port in [*generate.PORTS, 8080]
        for method, path in itertools.islice(http, 3)
    ]


@settings(max_examples=60, deadline=None)
@given(situations())
def test_rows_of_a_pod_agree_with_the_engine(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    cluster = Cluster(authority_of(manifests, chosen))
    for key, workload in cluster.authority.world.workloads.items():
        layers = cluster.layers(key)
        for about, table in pod_tables(cluster, workload):
            service = about.partition("addressed to Service ")[2] or None
            for request in requests():
                agrees(table, layers, request.with_value(SERVICE, service))


@settings(max_examples=40, deadline=None)
@given(situations())
def test_rows_of_a_service_are_allowed_only_where_every_pod_allows(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    cluster = Cluster(authority_of(manifests, chosen))
    world = cluster.authority.world
    for key, service in world.services.items():
        pods = [world.workloads[pod] for pod in world.pods_of(key)]
        table = service_table(cluster, service)
        if table is None:
            continue
        for request in requests():
            if request.port not in generate.PORTS:
                continue
            asked = request.with_value(SERVICE, key)
            outcomes = [reference.decide(cluster.layers(pod.key), asked) for pod in pods]
            row = row_of(table, asked)
            assert branch_of(row, asked).end.allowed == all(one.allowed for one in outcomes)
            refusing = {pod.key for pod, one in zip(pods, outcomes, strict=True) if not one.allowed}
            assert set(row.cell.refusing) <= refusing


@settings(max_examples=150, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
    linkerd_generate.calls,
)
def test_rows_of_a_pod_in_linkerds_mesh_agree_with_the_engine(
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    default: str,
    plane: DataPlane,
    calls: list[Call],
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane})
    cluster = Cluster(authority_of([namespace, *pods, *resources], chosen))
    for key, workload in cluster.authority.world.workloads.items():
        ((_, table),) = pod_tables(cluster, workload)
        for call in compared(calls, plane):
            if call.address != "127.0.0.1":  # the pod itself, which is not in the table
                agrees(table, cluster.layers(key), _named(request_of(call, plane)))


def _named(request: Request) -> Request:
    """Return the caller of a question. A caller with a SPIFFE ID in the mesh has it everywhere."""
    name = request.values[MESH_NAME]
    if isinstance(name, str) and name.startswith("spiffe://"):
        return request.with_value(IDENTITY, name)
    if isinstance(name, str) and ".serviceaccount." in name:
        account, namespace = name.split(".")[:2]
        return request.with_value(IDENTITY, f"spiffe://cluster.local/ns/{namespace}/sa/{account}")
    return request


@settings(max_examples=60, deadline=None)
@given(access_generate.policies, access_generate.answers, st.sampled_from(["deny", "proceed"]))
def test_rows_of_gateways_and_backends_agree_with_the_engine(
    policies: list[Manifest], answers: dict[str, str], unlisted: str
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    for backend in access_generate.BACKENDS:
        behind = BackendNamed("n", backend)
        for points in ((behind,), (GatewayNamed("n", "g"), behind)):
            layers = tuple(layer for point in points for layer in programs_of(authority).program(point).layers)
            facts = Facts({BACKEND: f"n/{backend}"})
            table = effective_table([EffectiveDestination("", (EnforcementPoint((backend,), layers, facts),))], chosen)
            for request in _calls(authority, backend, answers):
                agrees(table, layers, request)


def _calls(authority: Authority, backend: str, answers: dict[str, str]) -> list[Request]:
    asked = [question(call, f"backend:n/{backend}", answers) for call in every_call(backend)]
    found = [arrivals(one, authority.world, authority.settings)[0].request for one in asked]
    return [Request({header("mcp-session-id"): None, **one.values}, one.answers) for one in found]


@settings(max_examples=80, deadline=None)
@given(kuadrant_generate.clusters(), kuadrant_generate.calls)
def test_rows_of_gateways_with_auth_policies_agree_with_the_engine(
    manifests: list[Manifest], calls: list[HttpCall]
) -> None:
    authority = authority_of(accepted(manifests), Settings())
    for call in calls:
        decision = decided(authority, call, None)
        table = effective_table([EffectiveDestination("", (EnforcementPoint(("g",), decision.layers),))], Settings())
        known = {attribute: None for layer in decision.layers for attribute in layer.looks_at}
        asked = decision.arrival.request
        agrees(table, decision.layers, Request({**known, **asked.values}, asked.answers))
