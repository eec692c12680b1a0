from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eastgate.controller.proxies.progress import (
    AppliedPolicy,
    ClosedPort,
    ProgressState,
    ProxyReport,
    RejectedResource,
    ReplicaReport,
    merge,
)

_POLICY = "AuthorizationPolicy.policy.networking.k8s.io/shop/pay"
_OTHER = "AuthorizationPolicy.policy.networking.k8s.io/shop/other"
_PROXY = ProxyReport("shop/pay-1", "shop/pay-1", connected=True, settled=True, acknowledged=7, connected_at=100.0)


def _report(*proxies: ProxyReport, name: str = "a", generation: int = 2, revision: int = 5) -> ReplicaReport:
    applied = {_POLICY: AppliedPolicy(generation, revision, "u1"), _OTHER: AppliedPolicy(1, 1, "u2")}
    return ReplicaReport(name, 7, applied, {proxy.proxy: proxy for proxy in proxies})


def _state(report: ReplicaReport, generation: int = 2, node: str = "shop/pay-1", uid: str = "") -> ProgressState:
    return merge([report]).progress(_POLICY, generation, node, uid).state


class TestPolicyAtProxy:
    def test_is_enforced_once_its_revision_was_acknowledged(self) -> None:
        assert _state(_report(_PROXY)) is ProgressState.ENFORCED

    def test_stays_enforced_while_a_later_change_is_under_way(self) -> None:
        assert _state(_report(replace(_PROXY, settled=False, acknowledged=6))) is ProgressState.ENFORCED

    def test_waits_for_the_acknowledgement_of_its_revision(self) -> None:
        assert _state(_report(replace(_PROXY, acknowledged=4))) is ProgressState.WAITING

    def test_is_not_applied_where_the_replica_is_behind(self) -> None:
        assert _state(_report(_PROXY), generation=3) is ProgressState.NOT_APPLIED

    def test_is_enforced_where_the_replica_is_ahead(self) -> None:
        assert _state(_report(_PROXY), generation=1) is ProgressState.ENFORCED

    def test_is_not_applied_where_the_replica_has_an_earlier_object_of_that_name(self) -> None:
        assert _state(_report(_PROXY), uid="u9") is ProgressState.NOT_APPLIED
        assert _state(_report(_PROXY), uid="u1") is ProgressState.ENFORCED

    def test_is_unknown_at_a_proxy_that_is_not_connected(self) -> None:
        assert _state(_report(replace(_PROXY, connected=False))) is ProgressState.DISCONNECTED

    def test_a_policy_without_a_proxy_is_not_enforced(self) -> None:
        assert _state(_report(_PROXY), node="shop/none") is ProgressState.NO_PROXY

    @pytest.mark.parametrize(("policies", "state"), [((_POLICY,), "rejected"), ((_OTHER,), "enforced")])
    def test_is_rejected_where_a_resource_that_names_it_was(self, policies: tuple[str, ...], state: str) -> None:
        rejected = RejectedResource("type", "rbac/80", "too deep", policies)
        assert _state(_report(replace(_PROXY, rejected=(rejected,)))) == state

    @pytest.mark.parametrize(
        ("closed", "state"),
        [
            (ClosedPort(80, "why", at_fault=(_POLICY,)), "closed"),
            (ClosedPort(80, "why", at_fault=(_OTHER,), policies=(_OTHER, _POLICY)), "closed"),
            (ClosedPort(80, "why", at_fault=(_OTHER,), policies=(_OTHER,)), "enforced"),
            (ClosedPort(80, "why", at_fault=(_OTHER,), policies=(_OTHER, _POLICY), parts=("route",)), "enforced"),
        ],
        ids=["at fault", "decides at the closed port", "decides elsewhere", "decides at another route"],
    )
    def test_is_closed_where_it_decides_at_a_closed_port(self, closed: ClosedPort, state: str) -> None:
        assert _state(_report(replace(_PROXY, closed=(closed,)))) == state


class TestMerging:
    def test_a_proxy_belongs_to_the_replica_that_it_is_connected_to(self) -> None:
        gone = _report(replace(_PROXY, connected=False, connected_at=200.0, acknowledged=7), name="a")
        here = _report(replace(_PROXY, acknowledged=4), name="b")
        assert merge([gone, here]).progress(_POLICY, 2, "shop/pay-1").state is ProgressState.WAITING
        assert merge([here, gone]) == merge([gone, here])

    def test_of_two_connections_the_later_counts(self) -> None:
        # The older replica has not noticed yet that the proxy connected to another.
        old = _report(replace(_PROXY, connected_at=1.0), name="a")
        new = _report(replace(_PROXY, connected_at=2.0, acknowledged=0), name="b")
        assert merge([old, new]).proxies["shop/pay-1"].acknowledged == 0

    def test_revisions_are_compared_with_those_of_the_same_replica(self) -> None:
        ahead = _report(name="a", revision=900)
        served = _report(replace(_PROXY, acknowledged=7), name="b", revision=5)
        assert merge([ahead, served]).progress(_POLICY, 2, "shop/pay-1").enforced

    def test_a_node_of_several_proxies_needs_all_of_them(self) -> None:
        pods = [replace(_PROXY, proxy=f"gateway:shop/gw/{name}", node="gateway:shop/gw") for name in ("p", "q")]
        behind = replace(pods[1], acknowledged=1)
        assert _state(_report(*pods), node="gateway:shop/gw") is ProgressState.ENFORCED
        progress = merge([_report(pods[0], name="a"), _report(behind, name="b")]).progress(
            _POLICY, 2, "gateway:shop/gw"
        )
        assert (progress.state, progress.proxy) == (ProgressState.WAITING, "gateway:shop/gw/q")


class TestJson:
    def test_a_report_comes_back_as_it_was(self) -> None:
        rejected = RejectedResource("type", "rbac/80", "too deep", (_POLICY,))
        closed = ClosedPort(80, "why", (_POLICY,), (_POLICY, _OTHER), ("HTTPRoute/shop/r",))
        report = _report(replace(_PROXY, rejected=(rejected,), closed=(closed,)))
        assert ReplicaReport.from_json(json.loads(json.dumps(report.to_json()))) == report
        proxy = report.proxies["shop/pay-1"]
        assert ProxyReport.from_json(json.loads(json.dumps(proxy.to_json()))) == proxy

    @pytest.mark.parametrize(
        "data",
        [
            {},
            {"format": 2, "replica": "a"},
            {"format": 1, "replica": 3},
            {"format": 1, "replica": "a", "proxies": {"x": {"proxy": "y", "node": "y"}}},
        ],
        ids=["nothing", "format", "type", "name"],
    )
    def test_a_malformed_report_is_refused(self, data: dict[str, object]) -> None:
        with pytest.raises(ValueError, match=r"."):
            ReplicaReport.from_json(data)
