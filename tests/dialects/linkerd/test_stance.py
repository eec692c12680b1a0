"""The stance of a workload: annotations of the pod and of its namespace, ports and probes."""

from __future__ import annotations

import pytest

from eastgate.authority.authority import programs_of
from eastgate.dialects.base import Scene
from eastgate.dialects.linkerd import DIALECT
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.dialects.linkerd.stance import Stance
from eastgate.ir.attributes import MESH_NAME, METHOD, PORT
from eastgate.settings import Settings
from tests.dialects.linkerd.cluster import (
    DEFAULT_POLICY,
    IDENTITY_PORTS,
    OPAQUE_PORTS,
    gateway_route,
    grpc_route,
    namespace,
    pod,
    server,
)
from tests.dialects.linkerd.reading import DEFAULT, authority, outcome


def stance(text: str, settings: Settings = DEFAULT) -> Stance | None:
    """Return the stance of the pod `web`."""
    of = authority(text, settings)
    found = DIALECT.stance_of(
        of.world.workloads["shop/web"], programs_of(of).attached("shop/web"), Scene(settings, of.world)
    )
    assert found is None or isinstance(found, Stance)
    return found


DENY = Settings(sections=(LinkerdSettings(linkerd_default_policy=InboundPolicy.DENY),))
ON_POD, ON_NAMESPACE = f"annotation {DEFAULT_POLICY} of the pod", f"annotation {DEFAULT_POLICY} of namespace shop"
SETTING = "setting linkerdDefaultPolicy"
# The annotation of the pod, that of the namespace; the policy and its source
DEFAULTS = [
    (None, None, "deny", SETTING),
    ("audit", None, "audit", ON_POD),
    (None, "audit", "audit", ON_NAMESPACE),
    ("cluster-authenticated", "audit", "cluster-authenticated", ON_POD),
    ("all-authenticated", "nonsense", "all-authenticated", ON_POD),
    (None, "nonsense", "deny", SETTING),
    ("nonsense", None, "deny", SETTING),
    ("nonsense", "audit", "deny", SETTING),  # the injector would not have copied the namespace's
    ("", "audit", "deny", SETTING),
    ("AUDIT", "audit", "deny", SETTING),
]


@pytest.mark.parametrize(("own", "around", "expected", "source"), DEFAULTS)
def test_the_default_policy_is_of_the_pod_else_of_its_namespace_else_the_setting(
    own: str | None, around: str | None, expected: str, source: str
) -> None:
    text = pod(annotations="{}" if own is None else f"{{{DEFAULT_POLICY}: '{own}'}}")
    text += namespace("{}" if around is None else f"{{{DEFAULT_POLICY}: '{around}'}}")
    found = stance(text, DENY)
    assert found is not None
    assert (found.default.policy, found.default.source) == (expected, source)
    assert (found.default.span is None) is (source == SETTING)


# The written ports; the resulting ports
PORTS = [
    ("80", {80}),
    ("80,90", {80, 90}),
    (" 80 , 90 ", {80, 90}),
    ("8000-8002", {8000, 8001, 8002}),
    ("80,8000-8001,admin", {80, 90, 8000, 8001}),
    ("http", {80, 81}),
    ("dns", set()),  # UDP
    ("nothing", set()),
    ("8002-8000", set()),
    ("0,65536,-1,80-", set()),
    ("", set()),
    ("٨٠", set()),
]


@pytest.mark.parametrize("annotation", [OPAQUE_PORTS, IDENTITY_PORTS])
@pytest.mark.parametrize(("written", "expected"), PORTS)
def test_ports_are_numbers_ranges_and_names(annotation: str, written: str, expected: set[int]) -> None:
    found = stance(pod(annotations=f"{{{annotation}: '{written}'}}"), DENY)
    assert found is not None
    assert (found.opaque if annotation == OPAQUE_PORTS else found.identity_required) == expected


def test_ports_of_the_namespace_are_those_of_pods_without_any() -> None:
    around = namespace(f"{{{OPAQUE_PORTS}: '80'}}")
    for own, expected in [("{}", {80}), (f"{{{OPAQUE_PORTS}: '90'}}", {90}), (f"{{{OPAQUE_PORTS}: ''}}", set())]:
        found = stance(pod(annotations=own) + around, DENY)
        assert found is not None
        assert found.opaque == expected


def test_a_name_means_all_tcp_ports_that_bear_it_and_a_number_itself() -> None:
    found = stance(pod(), DENY)
    assert found is not None
    assert found.numbers("http") == {80, 81}
    assert found.numbers("admin") == {90}
    assert found.numbers("dns") == found.numbers("other") == set()
    assert found.numbers(7) == {7}


@pytest.mark.parametrize(
    ("text", "has_one"),
    [
        (pod(), False),
        (pod(annotations=f"{{{DEFAULT_POLICY}: all-unauthenticated}}"), False),
        (pod(annotations=f"{{{DEFAULT_POLICY}: audit}}"), True),
        (pod(annotations=f"{{{IDENTITY_PORTS}: '80'}}"), True),
        (pod(annotations=f"{{{OPAQUE_PORTS}: '80'}}"), False),
        (pod() + server(), True),
        (pod() + server(selector="{matchLabels: {app: other}}"), False),
    ],
)
def test_linkerd_has_no_say_where_nobody_mentions_a_workload_and_all_get_in(text: str, has_one: bool) -> None:
    assert (stance(text) is not None) is has_one


def test_ports_that_require_an_identity_do_so_where_everybody_would_get_in() -> None:
    of = authority(pod(annotations=f"{{{IDENTITY_PORTS}: '80'}}"))
    allowed = [
        outcome(of, "shop/web", {PORT: port, MESH_NAME: name, METHOD: method}).allowed
        for port, name, method in [(80, "a", "GET"), (80, None, "GET"), (80, None, None), (90, None, "GET")]
    ]
    assert allowed == [True, False, False, True]


def test_routes_are_those_of_the_namespace_with_a_server_as_parent() -> None:
    elsewhere = gateway_route("elsewhere", "/").replace("namespace: shop", "namespace: pay")
    to_gateway = gateway_route("to-gateway", "/").replace("group: policy.linkerd.io, kind: Server, ", "")
    found = stance(
        pod() + gateway_route("api", "/api") + grpc_route("cart", "shop.Cart") + elsewhere + to_gateway, DENY
    )
    assert found is not None
    assert sorted(str(route) for route in found.routes) == ["GRPCRoute shop/cart", "HTTPRoute shop/api"]
