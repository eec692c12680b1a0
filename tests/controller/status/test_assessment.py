"""The status of a policy: accepted or not, and in force only if every affected proxy has it."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.basics.diagnostics import Code
from eastgate.controller.conditions import StatusCondition
from eastgate.controller.proxies.progress import MeshReport
from eastgate.controller.status import Assessment, NoticeReason, StoredPolicy, assess, merge_status
from eastgate.convert.native import NativeDifference, NativeLoss, NativeMesh, NativeOutcome, NativePlan, NativeState
from tests.controller.status.clusters import (
    GROUP,
    NOW,
    POLICY,
    STORED,
    Manifest,
    authority_of,
    pod,
    policy,
    policy_of,
    report_of,
    service,
    to_pods,
    to_services,
    view_of,
    with_proxy,
)

PODS = [pod(f"web-{number}") for number in range(5)]
KEYS = [f"shop/web-{number}" for number in range(5)]
ACCESS_GROUP = "agentic.prototype.x-k8s.io"


def assessed(
    *manifests: Manifest,
    report: MeshReport | None = None,
    name: str = POLICY,
    stored: StoredPolicy = STORED,
    **more: Any,
) -> Assessment:
    authority = authority_of(*manifests)
    assessment = assess(policy_of(authority, name), stored, view_of(authority, report, **more))
    assert assessment is not None
    return assessment


def shown(assessment: Assessment) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the ancestors, and the type, status and reason of each condition."""
    return [
        (str(entry.ancestor), [(each.type, each.status.value, each.reason) for each in entry.conditions])
        for entry in assessment.entries
    ]


def programmed(assessment: Assessment) -> StatusCondition:
    (entry,) = assessment.entries
    return entry.conditions[-1]


ACCEPTED = ("Accepted", "True", "Accepted")


def test_a_policy_is_programmed_when_every_proxy_has_acknowledged_it() -> None:
    assessment = assessed(*PODS, policy(to_pods(app="web")), report=report_of(KEYS))
    assert shown(assessment) == [("Namespace shop", [ACCEPTED, ("Programmed", "True", "Programmed")])]
    assert programmed(assessment).message == "in force at all 5 proxies concerned"
    assert assessment.notices == ()
    assert assessment.is_in_force


def test_pods_without_a_proxy_are_counted_and_named() -> None:
    assessment = assessed(*PODS, policy(to_pods(app="web")), report=report_of(KEYS[:3]))
    assert shown(assessment) == [("Namespace shop", [ACCEPTED, ("Programmed", "False", "PartiallyProgrammed")])]
    assert programmed(assessment).message == "in force at 3 of 5; 2 without a proxy of Eastgate: shop/web-3, shop/web-4"
    (notice,) = assessment.notices
    assert notice.reason is NoticeReason.NOT_ENFORCED
    assert not assessment.is_in_force


def test_a_pod_without_an_address_is_not_open_yet() -> None:
    starting = pod("web-1")
    del starting["status"]
    assessment = assessed(PODS[0], starting, policy(to_pods(app="web")), report=report_of(KEYS[:1]))
    assert shown(assessment) == [("Namespace shop", [ACCEPTED, ("Programmed", "False", "PartiallyProgrammed")])]
    assert programmed(assessment).message == "in force at 1 of 2; 1 without an address yet: shop/web-1"
    assert assessment.notices == ()
    assert programmed(assessed(starting, policy(to_pods(app="web")), report=report_of())).reason == "Reconciling"


def test_a_pod_on_the_network_of_its_host_has_no_address_of_its_own_and_is_open() -> None:
    on_host = pod("web-0")
    on_host["spec"]["hostNetwork"] = True
    assessment = assessed(on_host, policy(to_pods(app="web")), report=report_of())
    assert [notice.reason for notice in assessment.notices] == [NoticeReason.NOT_ENFORCED]


def test_a_policy_without_a_proxy_is_not_enforced() -> None:
    assessment = assessed(*PODS[:2], policy(to_pods(app="web")), report=report_of())
    condition = programmed(assessment)
    assert (condition.status, condition.reason) == ("False", "NotEnforced")
    assert condition.message == "no proxy enforces it; 2 without a proxy of Eastgate: shop/web-0, shop/web-1"
    assert [notice.reason for notice in assessment.notices] == [NoticeReason.NOT_ENFORCED]


@pytest.mark.parametrize(
    ("report", "reason", "message"),
    [
        (
            report_of(waiting=KEYS[:2]),
            "Reconciling",
            "in force at none of 2 yet; 2 not acknowledged yet: shop/web-0, shop/web-1",
        ),
        (
            report_of(KEYS[:1], disconnected=KEYS[1:2]),
            "PartiallyProgrammed",
            "in force at 1 of 2; 1 with a proxy that is not connected: shop/web-1",
        ),
        (
            report_of(KEYS[:2], generation=0),
            "Reconciling",
            "in force at none of 2 yet; 2 not applied yet by the replica that serves its proxy: shop/web-0, shop/web-1",
        ),
        (
            report_of(KEYS[:1], rejecting={KEYS[1]: "bad"}),
            "PartiallyProgrammed",
            "in force at 1 of 2; 1 rejected by its proxy: shop/web-1 (connections/8080: bad)",
        ),
        (
            report_of(closing={KEYS[0]: "too large", KEYS[1]: "too large"}),
            "NotEnforced",
            "no proxy enforces it; 2 closed: shop/web-0 (port 8080 is closed: too large), "
            "shop/web-1 (port 8080 is closed: too large)",
        ),
    ],
    ids=["waiting", "disconnected", "not applied", "rejected", "closed"],
)
def test_missing_proxies_are_named(report: MeshReport, reason: str, message: str) -> None:
    condition = programmed(assessed(*PODS[:2], policy(to_pods(app="web")), report=report))
    assert (condition.status, condition.reason, condition.message) == ("False", reason, message)


def test_rejections_and_closed_ports_are_notices() -> None:
    report = report_of(KEYS[:3], rejecting={KEYS[3]: "bad"}, closing={KEYS[4]: "too large"})
    assessment = assessed(*PODS, policy(to_pods(app="web")), report=report)
    assert [(notice.reason.value, notice.note) for notice in assessment.notices] == [
        ("RejectedByProxy", "shop/web-3 rejected it: connections/8080: bad"),
        ("PortClosed", "shop/web-4: port 8080 is closed: too large"),
    ]


def test_an_old_acknowledgement_does_not_count_for_a_new_object_of_the_name() -> None:
    stored = StoredPolicy(1, "another")
    condition = programmed(assessed(*PODS[:1], policy(to_pods(app="web")), report=report_of(KEYS[:1]), stored=stored))
    assert (condition.status, condition.reason) == ("False", "Reconciling")


def test_many_names_are_shortened() -> None:
    pods = [pod(f"web-{number:02}") for number in range(20)]
    condition = programmed(assessed(*pods, policy(to_pods(app="web")), report=report_of()))
    assert condition.message.endswith("shop/web-03, shop/web-04 and 15 more")


def test_a_policy_that_selects_nothing_is_accepted_and_not_in_force() -> None:
    condition = programmed(assessed(policy(to_pods(app="web")), report=report_of()))
    assert (condition.status, condition.reason) == ("Unknown", "Reconciling")


def test_a_template_without_pods_is_no_workload_that_runs() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": "app"}]},
            },
        },
    }
    condition = programmed(assessed(deployment, policy(to_pods(app="web")), report=report_of()))
    assert (condition.status, condition.reason) == ("Unknown", "Reconciling")


def test_each_service_has_an_entry_and_the_worst_is_first() -> None:
    manifests = (pod("web-0"), pod("api-0", app="api"), service("web"), service("api"))
    assessment = assessed(*manifests, policy(to_services("api", "web", "gone")), report=report_of(["shop/api-0"]))
    assert shown(assessment) == [
        ("Service shop/gone", [("Accepted", "False", "TargetNotFound")]),
        ("Service shop/web", [ACCEPTED, ("Programmed", "False", "NotEnforced")]),
        ("Service shop/api", [ACCEPTED, ("Programmed", "True", "Programmed")]),
    ]
    assert assessment.entries[0].conditions[0].message == "there is no Service shop/gone"


def test_an_existing_mesh_is_the_ancestor_of_selected_pods() -> None:
    assessment = assessed(*PODS, policy(to_pods(app="web")), report=report_of(KEYS), mesh="eastgate")
    assert [str(entry.ancestor) for entry in assessment.entries] == ["XMesh eastgate"]


def test_a_policy_with_errors_is_invalid_and_names_its_closed_targets() -> None:
    bad = policy(to_pods(app="web"), rules=[{"networkAttributes": {"ports": [0]}}])
    assessment = assessed(*PODS, bad, report=report_of(KEYS))
    (entry,) = assessment.entries
    (condition,) = entry.conditions
    assert (condition.type, condition.status, condition.reason) == ("Accepted", "False", "Invalid")
    assert condition.message.startswith("EG")
    assert "spec.rules[0]" in condition.message
    assert "close" in condition.message
    (notice,) = assessment.notices
    assert notice.reason is NoticeReason.INVALID
    assert notice.note in condition.message


def test_audit_is_observed_only() -> None:
    audited = policy(to_pods(app="web"))
    audited["metadata"]["annotations"] = {"eastgate.dev/mode": "audit"}
    assessment = assessed(*PODS, audited, report=report_of(KEYS))
    (entry,) = assessment.entries
    accepted, condition = entry.conditions
    assert "decides nothing" in accepted.message
    assert condition.message.startswith("observed only")


def test_a_policy_that_is_being_deleted_counts_until_it_is_gone() -> None:
    stored = StoredPolicy(1, is_being_deleted=True)
    condition = programmed(assessed(*PODS, policy(to_pods(app="web")), report=report_of(KEYS), stored=stored))
    assert condition.status == "True"
    assert condition.message.endswith("it is being deleted, and counts until it is gone")


OPEN = NativeDifference(("pod:shop/web-1",), allowed=True)
LOSS = NativeLoss(Code("EG0000", "a loss", "It is lost."), "no path")


@pytest.mark.parametrize(
    ("state", "losses", "differences", "shows", "notices"),
    [
        (NativeState.WRITTEN, (), (), ("True", "Programmed"), []),
        (NativeState.COVERED, (LOSS,), (), ("True", "Programmed"), []),
        (NativeState.WRITTEN, (), (OPEN,), ("False", "PartiallyProgrammed"), ["NotEnforced"]),
        (NativeState.CLOSED, (LOSS,), (), ("False", "NotEnforced"), ["NotConverted"]),
        (NativeState.NOT_WRITTEN, (LOSS,), (OPEN,), ("False", "NotEnforced"), ["NotConverted", "NotEnforced"]),
    ],
    ids=["written", "covered", "with differences", "closed", "not written"],
)
def test_a_policy_that_another_mesh_enforces(
    state: NativeState,
    losses: tuple[NativeLoss, ...],
    differences: tuple[NativeDifference, ...],
    shows: tuple[str, str],
    notices: list[str],
) -> None:
    manifest = policy(to_pods(app="web"))
    ref = policy_of(authority_of(manifest)).ref
    outcome = NativeOutcome(ref, "uid", state, ("AuthorizationPolicy/shop/web",), losses, differences)
    plan = NativePlan(NativeMesh.ISTIO, (), (outcome,))
    assessment = assessed(*map(with_proxy, PODS), manifest, report=report_of(), native=plan)
    condition = programmed(assessment)
    assert (condition.status, condition.reason) == shows
    assert "Istio" in condition.message
    assert [notice.reason.value for notice in assessment.notices] == notices


AMBIENT_POD = pod("ambient")
AMBIENT_POD["metadata"]["annotations"] = {"ambient.istio.io/redirection": "enabled"}
NO_ISTIOD = "no control plane of Istio serves it: Service istiod in istio-system has no ready endpoint"


@pytest.mark.parametrize(
    ("mesh", "pods", "not_serving", "shows", "message"),
    [
        (NativeMesh.ISTIO, [with_proxy(PODS[0])], None, ("True", "Programmed"), "written for Istio"),
        (NativeMesh.ISTIO, [with_proxy(PODS[0], sidecar=True)], None, ("True", "Programmed"), "written for Istio"),
        (NativeMesh.ISTIO, [AMBIENT_POD], None, ("True", "Programmed"), "written for Istio"),
        (NativeMesh.LINKERD, [with_proxy(PODS[0], "linkerd-proxy")], None, ("True", "Programmed"), "for Linkerd"),
        (NativeMesh.LINKERD, [with_proxy(PODS[0])], None, ("False", "NotEnforced"), "1 without a proxy of Linkerd"),
        (NativeMesh.LINKERD, [AMBIENT_POD], None, ("False", "NotEnforced"), "1 without a proxy of Linkerd"),
        (NativeMesh.ISTIO, PODS[:1], None, ("False", "NotEnforced"), "1 without a proxy of Istio: shop/web-0"),
        (
            NativeMesh.ISTIO,
            [with_proxy(PODS[0]), PODS[1]],
            None,
            ("False", "PartiallyProgrammed"),
            "in force at 1 of 2",
        ),
        (
            NativeMesh.ISTIO,
            [with_proxy(PODS[0])],
            "Service istiod in istio-system",
            ("False", "NotEnforced"),
            NO_ISTIOD,
        ),
        (NativeMesh.ISTIO, [], None, ("Unknown", "Reconciling"), "it selects nothing that runs now"),
    ],
)
def test_a_mesh_enforces_only_at_pods_with_its_proxies(
    mesh: NativeMesh, pods: list[Manifest], not_serving: str | None, shows: tuple[str, str], message: str
) -> None:
    manifest = policy(to_pods(app="web"))
    ref = policy_of(authority_of(manifest)).ref
    outcome = NativeOutcome(ref, "uid", NativeState.WRITTEN, ("AuthorizationPolicy/shop/web",))
    plan = NativePlan(mesh, (), (outcome,))
    assessment = assessed(*pods, manifest, native=plan, not_serving=not_serving)
    condition = programmed(assessment)
    assert (condition.status, condition.reason) == shows
    assert message in condition.message
    assert [notice.reason.value for notice in assessment.notices] == (["NotEnforced"] if shows[0] == "False" else [])


def test_a_policy_with_errors_closes_nothing_in_a_mesh_that_leaves_it() -> None:
    manifest = policy(to_pods(app="web"), surprise=True)
    ref = policy_of(authority_of(manifest)).ref
    for state, shows in (
        (NativeState.NOT_WRITTEN, "it is not in force"),
        (NativeState.CLOSED, "its targets are closed"),
    ):
        plan = NativePlan(NativeMesh.ISTIO, (), (NativeOutcome(ref, "uid", state, (), (LOSS,)),))
        assert shows in assessed(*PODS, manifest, native=plan).entries[0].conditions[0].message


def test_proxies_of_eastgate_enforce_a_policy_that_is_not_in_the_plan() -> None:
    plan = NativePlan(NativeMesh.ISTIO, (), ())
    assert assessed(*PODS, policy(to_pods(app="web")), report=report_of(KEYS), native=plan).is_in_force


CLUSTER_POLICY: Manifest = {
    "apiVersion": "eastgate.dev/v1alpha1",
    "kind": "ClusterAuthorizationPolicy",
    "metadata": {"name": "admin"},
    "spec": {
        "tier": "Admin",
        "priority": 1,
        "action": "DENY",
        "enforcementLevel": "NETWORK",
        "subject": {"namespaceSelector": {}, "podSelector": {}},
        "rules": [{}],
    },
}


def test_a_cluster_policy_has_conditions_alone() -> None:
    name = "ClusterAuthorizationPolicy/admin"
    assessment = assessed(*PODS, CLUSTER_POLICY, name=name, report=report_of(KEYS, policies=[name]))
    assert shown(assessment) == [("None", [ACCEPTED, ("Programmed", "True", "Programmed")])]


def test_an_overridden_default_of_the_cluster_reports_the_overrides() -> None:
    name = "ClusterAuthorizationPolicy/admin"
    baseline = {**CLUSTER_POLICY, "spec": {**CLUSTER_POLICY["spec"], "tier": "Baseline"}}
    manifests = (pod("web-0"), pod("api-0", app="api"), baseline, policy(to_pods(app="web")))
    keys = ["shop/web-0", "shop/api-0"]
    shows = programmed(assessed(*manifests, name=name, report=report_of(keys, policies=[name])))
    assert (shows.status, shows.reason) == ("True", "PartiallyProgrammed")
    assert shows.message == "in force at 1 of 2; overridden at 1, by AuthorizationPolicy/shop/web"
    shows = programmed(assessed(*manifests, name=name, report=report_of(keys[:1], policies=[name])))
    assert (shows.status, shows.reason) == ("False", "PartiallyProgrammed")
    assert shows.message.endswith("; overridden at 1, by AuthorizationPolicy/shop/web")
    shows = programmed(
        assessed(*manifests, policy(to_pods(app="api"), "api"), name=name, report=report_of(keys, policies=[name]))
    )
    assert (shows.status, shows.reason) == ("False", "Overridden")
    audited = policy(to_pods(app="web"))
    audited["metadata"]["annotations"] = {"eastgate.dev/mode": "audit"}
    assert assessed(*manifests[:3], audited, name=name, report=report_of(keys, policies=[name])).is_in_force


GATEWAY: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "Gateway",
    "metadata": {"name": "edge", "namespace": "shop"},
    "spec": {"gatewayClassName": "eastgate", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
BACKEND: Manifest = {
    "apiVersion": f"{ACCESS_GROUP}/v0alpha0",
    "kind": "XBackend",
    "metadata": {"name": "tools", "namespace": "shop"},
    "spec": {"mcp": {"serviceName": "tools", "port": 80, "path": "/mcp"}},
}
ROUTE: Manifest = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "tools", "namespace": "shop"},
    "spec": {
        "parentRefs": [{"name": "edge"}],
        "rules": [{"backendRefs": [{"group": ACCESS_GROUP, "kind": "XBackend", "name": "tools"}]}],
    },
}


def access_policy(kind: str, name: str, group: str = ACCESS_GROUP) -> Manifest:
    ref = {"group": "gateway.networking.k8s.io" if kind == "Gateway" else group, "kind": kind, "name": name}
    return {
        "apiVersion": f"{group}/v0alpha0",
        "kind": "XAccessPolicy",
        "metadata": {"name": "tools", "namespace": "shop"},
        "spec": {
            "targetRefs": [ref],
            "rules": [{"name": "all", "source": {"type": "ServiceAccount", "serviceAccount": {"name": "agent"}}}],
        },
    }


ACCESS = "XAccessPolicy/shop/tools"


@pytest.mark.parametrize(("kind", "name"), [("XBackend", "tools"), ("Gateway", "edge")])
def test_an_access_policy_is_enforced_by_the_proxies_of_gateways(kind: str, name: str) -> None:
    proxies = ["gateway:shop/edge/edge-1", "gateway:shop/edge/edge-2"]
    report = report_of(proxies[:1], waiting=proxies[1:], policies=[ACCESS])
    manifests = (GATEWAY, BACKEND, ROUTE, access_policy(kind, name))
    assessment = assessed(*manifests, name=ACCESS, report=report)
    assert shown(assessment) == [(f"{kind} shop/{name}", [ACCEPTED, ("Programmed", "False", "PartiallyProgrammed")])]
    assert programmed(assessment).message == "in force at 1 of 2; 1 not acknowledged yet: gateway:shop/edge/edge-2"


def test_a_gateway_of_another_class_enforces_no_policy_of_eastgate() -> None:
    assessment = assessed(GATEWAY, access_policy("Gateway", "edge"), name=ACCESS, report=report_of())
    assert programmed(assessment).message == "no proxy enforces it; 1 without a proxy of Eastgate: gateway:shop/edge"


def test_in_kinds_of_other_apis_only_enforced_targets_have_an_entry() -> None:
    manifest = access_policy("Gateway", "edge", "agentic.networking.x-k8s.io")
    assert assessed(GATEWAY, manifest, name=ACCESS, report=report_of()).entries == ()
    name = "XAccessPolicy.agentic.networking.x-k8s.io/shop/tools"
    ours = report_of(["gateway:shop/edge/edge-1"], policies=[name])
    assessment = assessed(GATEWAY, manifest, name=ACCESS, report=ours)
    assert [entry[1][-1] for entry in shown(assessment)] == [("Programmed", "True", "Programmed")]


AUTH_POLICY: Manifest = {
    "apiVersion": "apim.kuadrant.io/v1alpha1",
    "kind": "AuthPolicy",
    "metadata": {"name": "edge", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"},
        "rules": [{"hosts": ["*.example.com"]}],
        "authSchemes": [{"hosts": ["*.example.com"], "identity": [{"name": "any", "anonymous": {}}]}],
    },
}
AUTH = "AuthPolicy/shop/edge"


def test_available_is_true_only_in_force() -> None:
    proxy = "gateway:shop/edge/edge-1"
    for report, condition in [
        (report_of([proxy], policies=[AUTH]), ("Available", "True", "GatewayProtected")),
        (report_of(waiting=[proxy], policies=[AUTH]), ("Available", "False", "Reconciling")),
        (report_of(), ("Available", "False", "NotEnforced")),
    ]:
        assert shown(assessed(GATEWAY, AUTH_POLICY, name=AUTH, report=report)) == [("None", [condition])]


def test_an_auth_policy_with_errors_is_not_available() -> None:
    bad = {**AUTH_POLICY, "spec": {**AUTH_POLICY["spec"], "authScheme": []}}
    assert shown(assessed(GATEWAY, bad, name=AUTH, report=report_of())) == [("None", [("Available", "False", "Error")])]


SERVER: Manifest = {
    "apiVersion": "policy.linkerd.io/v1beta3",
    "kind": "Server",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "port": 8080, "proxyProtocol": "HTTP/1"},
}
LINKERD = frozenset({"policy.linkerd.io"})
LINKERD_ROUTE: Manifest = {
    "apiVersion": "policy.linkerd.io/v1beta3",
    "kind": "HTTPRoute",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "parentRefs": [
            {"group": "policy.linkerd.io", "kind": "Server", "name": "web"},
            {"group": "policy.linkerd.io", "kind": "Server", "name": "gone"},
        ],
        "rules": [{}],
    },
}


def test_the_status_of_linkerd_is_written_only_where_its_own_controller_is_not() -> None:
    authority = authority_of(SERVER, LINKERD_ROUTE, *PODS)
    name = "HTTPRoute/shop/web"
    report = report_of(KEYS, policies=[name])
    route = policy_of(authority, name)
    theirs = assess(route, STORED, view_of(authority, report))
    assert theirs is not None
    assert theirs.entries == ()
    assessment = assess(route, STORED, view_of(authority, report, shared_groups=LINKERD))
    assert assessment is not None
    assert [entry[0] for entry in shown(assessment)] == ["Server shop/gone", "Server shop/web"]
    assert [entry[1][0] for entry in shown(assessment)] == [("Accepted", "False", "NoMatchingParent"), ACCEPTED]


def test_a_route_of_linkerd_with_errors_has_no_parents_and_must_be_seen() -> None:
    bad = {**LINKERD_ROUTE, "spec": {**LINKERD_ROUTE["spec"], "rules": [{"matches": "all"}]}}
    authority = authority_of(SERVER, bad, *PODS)
    view = view_of(authority, report_of(KEYS, policies=["HTTPRoute/shop/web"]), shared_groups=LINKERD)
    assessment = assess(policy_of(authority, "HTTPRoute/shop/web"), STORED, view)
    assert assessment is not None
    assert [entry.ancestor for entry in assessment.entries] == [None]
    assert merge_status(assessment, None, NOW).status is None
    assert [notice.reason for notice in assessment.notices] == [NoticeReason.INVALID]


@pytest.mark.parametrize(
    "manifest",
    [
        SERVER,
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"podSelector": {}},
        },
        {
            "apiVersion": "security.istio.io/v1",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {},
        },
    ],
    ids=["Linkerd", "network", "Istio"],
)
def test_the_status_of_policies_of_other_apis_is_not_written(manifest: Manifest) -> None:
    authority = authority_of(manifest, *PODS)
    (other,) = authority.policies
    assert assess(other, STORED, view_of(authority, report_of(KEYS), shared_groups=LINKERD)) is None


def test_reports_do_not_confuse_policies_of_two_apis_with_the_same_name() -> None:
    theirs = report_of(KEYS, policies=["AuthorizationPolicy.security.istio.io/shop/web"])
    assessment = assessed(*PODS, policy(to_pods(app="web")), report=theirs)
    assert (assessment.ref.group, programmed(assessment).reason) == (GROUP, "Reconciling")
