"""A change affects exactly the workloads that it concerns. Workloads with equal decisions share a program."""

from __future__ import annotations

from typing import cast

import pytest

from eastgate import dialects
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.changes import Changes
from eastgate.authority.reading import Manifests
from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Manifest, WorldObject, interpret
from eastgate.cluster.points import Point
from eastgate.ir.attributes import MESH_NAME, PATH
from eastgate.reading.manifests import read_text
from tests.dialects.linkerd.cluster import (
    DEFAULT_POLICY,
    MESH_REF,
    ON_NAMESPACE,
    ON_SERVER,
    gateway_route,
    mesh,
    namespace,
    pod,
    policy,
    route,
    server,
)
from tests.dialects.linkerd.reading import DEFAULT, authority, mesh_name, outcome

WEB, TWIN, DB, PAY = "shop/web", "shop/twin", "shop/db", "pay/web"
PODS = pod() + pod("twin") + pod("db", app="db") + pod().replace("namespace: shop", "namespace: pay")
EVERY_POD = [WEB, TWIN, DB, PAY]
ON_WEB = "{matchLabels: {app: web}}"
ONE_SERVER = server(selector=ON_WEB)
CLIENTS = mesh("clients", mesh_name("web"))


def policy_of(text: str) -> dialects.Policy:
    (document,) = read_text("change.yaml", text, positioned=dialects.reads).documents
    read = dialects.read_policy(document, DEFAULT, Reporter())
    assert read is not None
    return read


def object_of(text: str) -> WorldObject:
    (document,) = read_text("change.yaml", text, positioned=dialects.reads).documents
    found = interpret(cast("Manifest", document), Reporter())
    assert found is not None
    return found


def put(of: Authority, policy: dialects.Policy) -> frozenset[Point]:
    """Put a policy, and return the affected points."""
    return of.apply(Changes(Manifests(of.settings, [], [policy]))).points


def decisions(of: Authority) -> dict[str, tuple[int, int]]:
    """Return the decisions about a client of the mesh at `/` and at `/api` of every pod."""
    return {
        point: (outcome(of, point).status, outcome(of, point, {PATH: "/api"}).status)
        for point in EVERY_POD
    }  # fmt: skip


def differing(before: dict[str, tuple[int, int]], of: Authority) -> list[str]:
    after = decisions(of)
    return [point for point in EVERY_POD if before[point] != after[point]]


# The existing objects, the new object, and the pods whose decisions change
PUT = [
    ("a Server closes its port", "", ONE_SERVER, [WEB, TWIN]),
    ("a Server of every pod", "", server(), [WEB, TWIN, DB]),
    ("a policy on a Server", ONE_SERVER, policy("p", ON_SERVER), [WEB, TWIN]),
    ("a policy on the namespace", server(), policy("p", ON_NAMESPACE), [WEB, TWIN, DB]),
    ("a policy without Servers", "", policy("p", ON_NAMESPACE), []),
    ("a policy on one workload", "", policy("p", "kind: ServiceAccount, name: db", MESH_REF), [DB]),
    ("an authentication that was missing", ONE_SERVER + policy("p", ON_SERVER, MESH_REF), CLIENTS, [WEB, TWIN]),
    ("an authentication that nobody names", ONE_SERVER + policy("p", ON_SERVER), CLIENTS, []),
    ("a route", ONE_SERVER, route("api", "/api"), [WEB, TWIN]),
]


@pytest.mark.parametrize(("text", "change", "changed"), [row[1:] for row in PUT], ids=[row[0] for row in PUT])
def test_what_is_put_changes_the_decisions_of_its_workloads_and_removing_it_changes_them_back(
    text: str, change: str, changed: list[str]
) -> None:
    of = authority(PODS + text)
    before = decisions(of)
    added = policy_of(change)
    touched = put(of, added)
    assert differing(before, of) == changed
    assert set(changed) <= touched
    assert decisions(of) == decisions(authority(PODS + text + change))
    of.update(remove=[added.ref])
    assert decisions(of) == before


def test_an_authentication_that_changes_is_felt_through_the_references_to_it_even_from_elsewhere() -> None:
    there = MESH_REF.replace("}", ", namespace: pay}")
    of = authority(PODS + ONE_SERVER + policy("p", ON_SERVER, there) + mesh("clients", mesh_name("web"), "pay"))
    before = decisions(of)
    assert before[WEB] == (200, 200)
    touched = put(of, policy_of(mesh("clients", mesh_name("vote"), "pay")))
    assert differing(before, of) == [WEB, TWIN]
    assert PAY not in touched


@pytest.mark.parametrize(
    ("text", "change", "changed"),
    [
        ("", namespace(f"{{{DEFAULT_POLICY}: deny}}"), [WEB, TWIN, DB]),
        ("", namespace(f"{{{DEFAULT_POLICY}: deny}}", "pay"), [PAY]),
        (ONE_SERVER, namespace(f"{{{DEFAULT_POLICY}: deny}}"), [DB]),
        ("", namespace(f"{{{DEFAULT_POLICY}: nonsense}}"), []),
        ("", pod(annotations=f"{{{DEFAULT_POLICY}: deny}}"), [WEB]),
        (ONE_SERVER, gateway_route("api", "/api"), [WEB, TWIN]),
        (ONE_SERVER, gateway_route("api", "/api", server="other"), []),
    ],
)
def test_what_changes_in_the_world_changes_the_decisions_of_its_workloads(
    text: str, change: str, changed: list[str]
) -> None:
    of = authority(PODS + text)
    before = decisions(of)
    added = object_of(change)
    replaced = of.world.objects.get(added.id)
    of.update(put=[added])
    assert differing(before, of) == changed
    of.update(put=[replaced] if replaced is not None else [], remove=[added.id])
    assert decisions(of) == before


# Sharing


def test_pods_with_the_same_policies_and_the_same_stance_share_a_program() -> None:
    of = authority(PODS + ONE_SERVER + policy("p", ON_SERVER, MESH_REF) + CLIENTS)
    assert programs_of(of).program(WEB) is programs_of(of).program(TWIN)
    assert programs_of(of).program(WEB) is not programs_of(of).program(DB)


def test_pods_of_which_linkerd_says_nothing_share_one_with_all_others() -> None:
    of = authority(PODS)
    assert programs_of(of).program(WEB) is programs_of(of).program(PAY)


@pytest.mark.parametrize(
    "twin",
    [
        pod("twin", annotations="{config.linkerd.io/opaque-ports: '80'}"),
        pod("twin", annotations=f"{{{DEFAULT_POLICY}: audit}}"),
        pod("twin", more="livenessProbe: {httpGet: {path: /healthz, port: 80}}"),
        pod("twin").replace("name: http, containerPort: 81", "name: http, containerPort: 82"),
    ],
)
def test_a_pod_with_another_stance_has_a_program_of_its_own(twin: str) -> None:
    of = authority(pod() + twin + ONE_SERVER)
    assert programs_of(of).program(WEB) is not programs_of(of).program(TWIN)


def test_an_annotation_that_changes_nothing_changes_no_program() -> None:
    of = authority(pod(annotations="{note: a}") + pod("twin", annotations="{note: b}") + ONE_SERVER)
    assert programs_of(of).program(WEB) is programs_of(of).program(TWIN)
    assert outcome(of, WEB, {MESH_NAME: None}) == outcome(of, TWIN, {MESH_NAME: None})
