"""On generated Linkerd resources the engine, the reference evaluator and the oracle give the same answers."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.authority.authority import Authority, programs_of
from eastgate.engine import reference
from eastgate.ir import Request
from eastgate.ir.attributes import (
    ADDRESS,
    HOST,
    IDENTITY,
    MESH_NAME,
    METHOD,
    PATH,
    PORT,
    SENT_PATH,
    SERVICE,
    header,
)
from eastgate.settings import DataPlane
from tests.worlds import linkerd_generate as generate
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, Manifest, Mesh
from tests.worlds.test_generated_clusters import authority_of


def request_of(call: Call, plane: DataPlane) -> Request:
    """Return the request with the path that this data plane compares. No layer may read the path of the other one."""
    is_http = call.method is not None
    return Request(
        {
            IDENTITY: None,
            SERVICE: None,
            MESH_NAME: call.name,
            ADDRESS: call.address,
            PORT: call.port,
            METHOD: call.method,
            SENT_PATH if plane is DataPlane.NATIVE else PATH: call.path if is_http else None,
            HOST: call.host if is_http else None,
            header("k"): dict(call.headers).get("k") if is_http else None,
        }
    )


def compared(calls: list[Call], plane: DataPlane) -> list[Call]:
    """Return the calls whose path is in the form that the data plane compares. Linkerd's proxy accepts every form."""
    return [call for call in calls if plane is DataPlane.NATIVE or call.path in generate.PATHS]


def decided(authority: Authority, pod: Manifest, call: Call) -> tuple[int, str | None]:
    program = programs_of(authority).program(f"n/{pod['metadata']['name']}")
    request = request_of(call, authority.settings.data_plane)
    outcome = program.outcome(program.decide(request))
    assert outcome == reference.decide(program.layers, request)
    rule = outcome.rule
    return outcome.status, str(rule.origin) if rule else None


@settings(max_examples=400, deadline=None)
@given(
    generate.pods,
    generate.namespace,
    generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
    generate.calls,
)
def test_engine_reference_and_oracle_agree(
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    default: str,
    plane: DataPlane,
    calls: list[Call],
) -> None:
    manifests = [namespace, *pods, *resources]
    authority = authority_of(manifests, Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane}))
    mesh = Mesh(manifests, default, native=plane is DataPlane.NATIVE)
    for pod in pods:
        for call in compared(calls, plane):
            status, by = decided(authority, pod, call)
            expected = mesh.status(pod, call)
            assert expected is None or status == expected, (pod["metadata"]["name"], call, by)


@settings(max_examples=60, deadline=None)
@given(generate.pods, generate.resources, generate.calls, st.randoms(use_true_random=False))
def test_the_order_of_resources_changes_nothing(
    pods: list[Manifest], resources: list[Manifest], calls: list[Call], random: st.DataObject
) -> None:
    shuffled = list(resources)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (authority_of([*pods, *some], Settings()) for some in (resources, shuffled))
    for pod in pods:
        for call in calls:
            assert decided(one, pod, call) == decided(other, pod, call)
