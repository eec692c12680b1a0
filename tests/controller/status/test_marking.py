"""The policies that are checked again after changed reports of proxies."""

from __future__ import annotations

from eastgate.controller.proxies.progress import MeshReport
from eastgate.controller.status import changed_policies, policies_at
from tests.controller.status.clusters import authority_of, pod, policy, report_of, to_pods
from tests.controller.status.test_assessment import BACKEND, GATEWAY, ROUTE, access_policy

AUTHORITY = authority_of(
    pod("web-0"),
    pod("api-0", app="api"),
    policy(to_pods(app="web"), "web"),
    policy(to_pods(app="api"), "api"),
    policy(to_pods(app="api"), "broken", action="NEVER"),
    GATEWAY,
    BACKEND,
    ROUTE,
    access_policy("XBackend", "tools"),
)


def changed(before: MeshReport, after: MeshReport) -> list[str]:
    return sorted(str(ref) for ref in changed_policies(before, after, AUTHORITY))


def test_equal_reports_change_nothing() -> None:
    assert changed(report_of(["shop/web-0"]), report_of(["shop/web-0"])) == []


def test_an_acknowledgement_marks_the_policies_at_the_workload() -> None:
    waiting, enforcing = (
        report_of(waiting=["shop/web-0", "shop/api-0"]),
        report_of(["shop/api-0"], waiting=["shop/web-0"]),
    )
    assert changed(waiting, enforcing) == ["AuthorizationPolicy/shop/api", "AuthorizationPolicy/shop/broken"]
    assert changed(report_of(["shop/web-0"]), report_of()) == ["AuthorizationPolicy/shop/web"]


def test_an_applied_policy_is_marked() -> None:
    assert changed(report_of(), report_of(generation=2)) == ["AuthorizationPolicy/shop/web"]


def test_a_gateway_marks_all_policies_of_gateways() -> None:
    assert changed(report_of(), report_of(["gateway:shop/edge/edge-1"])) == ["XAccessPolicy/shop/tools"]


def test_nodes_that_are_gone_have_no_policies() -> None:
    assert policies_at(["shop/gone", "gateway:shop/gone"], AUTHORITY) == set()
