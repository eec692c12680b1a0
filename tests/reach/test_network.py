"""Network layers for callers: they agree with `check`, and deny nothing that may be allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from eastgate import Authority, Question, QuestionError, Settings
from eastgate.authority.reading import read_plain
from eastgate.engine.compiled import compile_layers
from eastgate.ir import Known, Request
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    IDENTITY,
    PACKET_SOURCE,
    PORT,
    SOURCE_LABELS,
    SOURCE_WORKLOAD,
    VICINITY,
    Attribute,
)
from eastgate.reach.differences import compare
from eastgate.reach.network import network_reach

Manifest = dict[str, object]


def _authority(*manifests: Manifest) -> Authority:
    return Authority(read_plain(manifests, Settings()))


def _namespace(name: str, **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _pod(namespace: str, name: str, *addresses: str, ports: Sequence[Mapping[str, object]] = ()) -> Manifest:
    containers = [{"name": "main", "image": "main", "ports": list(ports)}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"serviceAccountName": name, "containers": containers},
        "status": {"podIPs": [{"ip": address} for address in addresses]} if addresses else {},
    }


def _stateful_set(namespace: str, name: str) -> Manifest:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"serviceAccountName": name, "containers": [{"name": "main", "image": "main"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": {"app": name}}, "serviceName": name, "template": template},
    }


def _policy(namespace: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "policy", "namespace": namespace},
        "spec": {"podSelector": {}, **spec},
    }


def _cluster_policy(*egress: Mapping[str, object]) -> Manifest:
    return {
        "apiVersion": "policy.networking.k8s.io/v1alpha2",
        "kind": "ClusterNetworkPolicy",
        "metadata": {"name": "policy"},
        "spec": {"tier": "Admin", "priority": 1, "subject": {"namespaces": {}}, "egress": list(egress)},
    }


def _node(**labels: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node", "labels": labels},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.168.0.1"}]},
    }


def _passes(authority: Authority, account: str, pod: str, port: int, more: Mapping[Attribute, Known] = {}) -> bool:
    program = compile_layers([network_reach(authority).layer(authority.world.workloads[pod])])
    namespace, name = account.split("/")
    identity = f"spiffe://cluster.local/ns/{namespace}/sa/{name}"
    request = Request({IDENTITY: identity, PORT: port, **more})
    return program.outcome(program.finder.find(request)).allowed


def _checks(authority: Authority, account: str, pod: str, port: int) -> bool:
    return authority.decide(Question.of(f"sa:{account}", f"pod:{pod}", port=port)).allowed


def test_each_pod_may_call_itself_but_no_other_pod_of_the_same_policies() -> None:
    authority = _authority(_pod("a", "x", "10.0.0.1"), _pod("a", "z", "10.0.0.2"), _policy("a"))
    answers = {(caller, to): _passes(authority, f"a/{caller}", f"a/{to}", 80) for caller in "xz" for to in "xz"}
    assert answers == {("x", "x"): True, ("x", "z"): False, ("z", "x"): False, ("z", "z"): True}
    assert all(_checks(authority, f"a/{caller}", f"a/{to}", 80) == answer for (caller, to), answer in answers.items())


def test_egress_of_undeclared_pods_distinguishes_ports_and_pods() -> None:
    egress = [
        {"to": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "x"}}}], "ports": [{"port": "web"}]}
    ]
    authority = _authority(
        _pod("a", "x", "10.0.0.1", ports=[{"containerPort": 80, "name": "web"}]),
        _pod("a", "z", "10.0.0.2", ports=[{"containerPort": 80, "name": "web"}]),
        _namespace("b"),
        _policy("b", policyTypes=["Egress"], egress=egress),
    )
    for pod in ("a/x", "a/z"):
        for port in (80, 81):
            assert _passes(authority, "b/nobody", pod, port) == _checks(authority, "b/nobody", pod, port)
    assert _passes(authority, "b/nobody", "a/x", 80)
    assert not _passes(authority, "b/nobody", "a/z", 80)


def test_one_of_several_addresses_may_let_a_pod_through() -> None:
    authority = _authority(
        _pod("a", "x", "10.0.0.1", "fd00::1"),
        _pod("b", "z", "10.0.0.2", "fd00::2"),
        _policy("a", ingress=[{"from": [{"ipBlock": {"cidr": "fd00::2/128"}}]}]),
    )
    assert not _passes(authority, "b/z", "a/x", 80)
    by_new_protocol = {SOURCE_WORKLOAD: "b/z", PACKET_SOURCE: "fd00::2", DESTINATION_ADDRESS: "fd00::1"}
    assert _passes(authority, "b/z", "a/x", 80, by_new_protocol)
    assert not _passes(authority, "b/z", "a/x", 80, {**by_new_protocol, PACKET_SOURCE: "10.0.0.2"})


def test_an_unknown_address_may_let_a_pod_through() -> None:
    authority = _authority(
        _pod("a", "x"),
        _pod("b", "z", "10.0.0.2"),
        _policy("b", policyTypes=["Egress"], egress=[{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]),
    )
    assert not _passes(authority, "b/z", "a/x", 80)
    assert _passes(authority, "b/z", "a/x", 80, {SOURCE_WORKLOAD: "b/z", DESTINATION_ADDRESS: "10.0.0.9"})
    assert not _passes(authority, "b/z", "a/x", 80, {SOURCE_WORKLOAD: "b/z", DESTINATION_ADDRESS: "11.0.0.9"})


def test_a_pod_of_a_template_may_be_the_one_that_it_calls() -> None:
    authority = _authority(_stateful_set("a", "x"), _policy("a"))
    assert not _passes(authority, "a/x", "a/x", 80)
    assert _passes(authority, "a/x", "a/x", 80, {SOURCE_WORKLOAD: "a/x", VICINITY: "itself"})


@pytest.mark.parametrize("operator", ["Exists", "DoesNotExist"])
def test_labels_that_a_cluster_adds_leave_peers_undecided(operator: str) -> None:
    selector = {"matchExpressions": [{"key": "statefulset.kubernetes.io/pod-name", "operator": operator}]}
    peer = {"namespaceSelector": {}, "podSelector": selector}
    manifests = [_pod("a", "x", "10.0.0.1"), _stateful_set("b", "z")]
    arriving = _authority(*manifests, _policy("a", ingress=[{"from": [peer]}]))
    leaving = _authority(*manifests, _policy("a", policyTypes=["Egress"], egress=[{"to": [peer]}]))
    with pytest.raises(QuestionError, match="a label that a cluster adds"):
        arriving.decide(Question.of("sa:b/z", "pod:a/x", port=80))
    with pytest.raises(QuestionError, match="a label that a cluster adds"):
        leaving.decide(Question.of("sa:a/x", "pod:b/z", port=80))
    assert not _passes(arriving, "b/z", "a/x", 80)
    assert _passes(arriving, "b/z", "a/x", 80, {SOURCE_WORKLOAD: "b/z", SOURCE_LABELS: "app=z"})
    elsewhere = _authority(*manifests, _policy("a", ingress=[{"from": [{"podSelector": selector}]}]))
    assert not elsewhere.decide(Question.of("sa:b/z", "pod:a/x", port=80)).allowed  # it is in another namespace


def test_an_unknown_caller_may_be_a_pod_whose_egress_is_closed() -> None:
    authority = _authority(_pod("a", "x", "10.0.0.1"), _pod("b", "z", "10.0.0.2"), _policy("b", policyTypes=["Egress"]))
    assert not authority.decide(Question.of("unknown", "pod:a/x", port=80)).allowed
    assert authority.decide(Question.of("anonymous", "pod:a/x", port=80)).allowed


def test_an_external_workload_with_the_identity_of_an_account_is_at_its_address() -> None:
    machine: Manifest = {
        "apiVersion": "workload.linkerd.io/v1beta1",
        "kind": "ExternalWorkload",
        "metadata": {"name": "vm", "namespace": "b"},
        "spec": {
            "meshTLS": {"identity": "spiffe://cluster.local/ns/b/sa/vm", "serverName": "vm.b.example"},
            "workloadIPs": [{"ip": "172.16.0.9"}],
            "ports": [{"port": 80}],
        },
    }
    manifests = [_pod("a", "x", "10.0.0.1"), machine]
    for_pods = _authority(*manifests, _policy("a", ingress=[{"from": [{"namespaceSelector": {}}]}]))
    for_block = _authority(*manifests, _policy("a", ingress=[{"from": [{"ipBlock": {"cidr": "172.16.0.0/16"}}]}]))
    for authority, allows in ((for_pods, False), (for_block, True)):
        assert _checks(authority, "b/vm", "a/x", 80) == _passes(authority, "b/vm", "a/x", 80) == allows


_TO_ALL = {"action": "Deny", "to": [{"networks": ["0.0.0.0/0"]}]}


def _to_node(role: str) -> Mapping[str, object]:
    return {"action": "Deny", "to": [{"nodes": {"matchLabels": {"role": role}}}]}


def _to_name(name: str) -> tuple[Mapping[str, object], ...]:
    return {"action": "Accept", "to": [{"domainNames": [name]}]}, _TO_ALL


def _from(**labels: str) -> Manifest:
    peer = {"podSelector": {"matchLabels": labels}}
    return _policy("a", ingress=[{"from": [peer], "ports": [{"protocol": "UDP", "port": 53}]}])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            [_node(role="x"), _cluster_policy(_to_node("x"))],
            [_node(role="x"), _cluster_policy(_to_node("z"))],
            id="nodes",
        ),
        pytest.param(
            [_node(role="x"), _cluster_policy(_to_node("x"))],
            [_node(role="z"), _cluster_policy(_to_node("x"))],
            id="labels of a node",
        ),
        pytest.param(
            [_cluster_policy(*_to_name("a.example"))], [_cluster_policy(*_to_name("b.example"))], id="domain names"
        ),
        pytest.param([_from()], [_from(app="later")], id="UDP of pods that no manifest has"),
    ],
)
def test_differences_beside_tcp_to_pods_are_found(old: list[Manifest], new: list[Manifest]) -> None:
    pods = [_namespace("a"), _pod("a", "x", "10.0.0.1")]
    assert compare(_authority(*pods, *old), _authority(*pods, *old)).equal
    assert not compare(_authority(*pods, *old), _authority(*pods, *new)).equal
