"""Sets of callers and decision lists are equivalent."""

from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Authority, Settings
from eastgate.reach.caller_sets import CallerSet
from eastgate.reach.destinations import DestinationKind, Entrance
from eastgate.reach.matrix import reach_matrix
from eastgate.reach.reachability import Reachability
from eastgate.settings import DataPlane
from tests.worlds import linkerd_generate
from tests.worlds.linkerd_oracle import ALL_POLICIES, Manifest
from tests.worlds.test_generated_clusters import authority_of, situations

PORTS = (80, 8080, 9090, 12345)


def entrance_at(entrances: tuple[Entrance, ...], port: int) -> Entrance:
    addressed = [entrance for entrance in entrances if entrance.service is None]
    named = [entrance for entrance in addressed if port in entrance.ports]
    return named[0] if named else next(entrance for entrance in addressed if entrance.others)


def check_matrix(authority: Authority) -> None:
    matrix = reach_matrix(authority, PORTS)
    reach = Reachability(authority)
    rows = {workload: row for row in matrix.rows for workload in row.workloads}
    for destination in reach.destinations:
        if destination.kind is not DestinationKind.POD:
            continue
        for number, port in enumerate(PORTS):
            allowed: CallerSet = 0
            denied: CallerSet = 0
            for answer in reach.answers(entrance_at(destination.entrances, port)):
                allowed |= answer.callers if answer.allowed is True else 0
                denied |= answer.callers if answer.allowed is False else 0
            held = rows[destination.members[0]].at[number]
            event("something depends" if held.sure != held.possible else "nothing depends")
            assert not set(matrix.callers.cells_in(held.sure)) - set(reach.callers.cells_in(allowed))
            never = matrix.callers.everybody & ~held.possible
            assert not set(matrix.callers.cells_in(never)) - set(reach.callers.cells_in(denied))
            if allowed | denied == reach.callers.everybody and held.sure == held.possible:
                assert set(matrix.callers.cells_in(held.sure)) <= set(reach.callers.cells_in(allowed))


@settings(max_examples=60, deadline=None)
@given(situations())
def test_of_policies_on_workloads(situation: tuple[list[Manifest], Settings]) -> None:
    check_matrix(authority_of(*situation))


@settings(max_examples=60, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
)
def test_of_linkerds_resources(
    pods: list[Manifest], namespace: Manifest, resources: list[Manifest], default: str, plane: DataPlane
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane})
    check_matrix(authority_of([namespace, *pods, *resources], chosen))
