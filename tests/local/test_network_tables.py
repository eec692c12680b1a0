"""Proxies of a local mesh get the engine's decisions about network policies, for every caller and address.

They log the would-be effects of audited network policies.
"""

from __future__ import annotations

import itertools

import pytest

from eastgate.authority.authority import Authority, decider_of, programs_of
from eastgate.authority.questions import Question
from eastgate.control.access_log import Observation
from eastgate.control.deciders import Deciders
from eastgate.control.network import NetworkDecisions
from eastgate.control.sites import ProxySite
from eastgate.envoy.plan import PortPlan
from eastgate.envoy.plan.callers import ByCaller
from eastgate.envoy.plan.decisions import Node, ProxyVerdict
from eastgate.ir import Request
from eastgate.ir.attributes import ADDRESS, METHOD
from eastgate.settings import Settings
from tests.ir.symbolic.drawing import decide
from tests.local.network_manifests import CLOSED, DB, FEW, FROM_A, NAMESPACES, PODS, SETS, network_policy, pod, read

STRANGERS = ("spiffe://other.org/ns/shop/sa/a", "spiffe://cluster.local/foo", "anonymous")
ACCOUNTS = ("sa:shop/twin", "sa:shop/no-pod", "sa:void/no-pod", "sa:nowhere/no-pod", "sa:front/web")
NODES = NAMESPACES + (
    pod("shop", "db", "db", "{app: db}", status="{hostIP: 127.0.0.1, podIP: 10.1.0.1}")
    + pod("shop", "a", "twin", "{app: a}", status="{podIP: 127.0.0.88}")
    + pod("front", "host", "host", "{app: a}", "hostNetwork: true", "{hostIP: 127.0.0.77}")
)
ADDRESSES = ("127.0.0.0", "127.0.0.1", "127.0.0.2", "127.0.0.20", "127.0.0.77", "127.0.0.88", "127.255.255.255")
WORLDS = {
    **{title: NAMESPACES + PODS + text for title, text in SETS.items()},
    "the node": NODES + FROM_A,
    "the node, and blocks": NODES + SETS["addresses"],
}
AUDIT = "annotations: {eastgate.dev/mode: audit}, name: "


def place(text: str, *, prove: bool = False) -> NetworkDecisions:
    authority = read(text, Settings().enforced())
    keys = sorted(authority.world.workloads)
    placed = {key: f"127.64.0.{number}" for number, key in enumerate(keys, 2)}
    authority.assign_addresses(placed, prove=prove)
    sites = {key: ProxySite(key, address, {5432: 5432}, {}) for key, address in placed.items()}
    return NetworkDecisions(authority, sites, {})


def plan_of(decisions: NetworkDecisions, port: int = 5432) -> PortPlan:
    layers = programs_of(decisions.authority).program("shop/db").layers
    return decisions.plan("shop/db", port, layers, frozenset())


def verdict_about(by_caller: ByCaller[Node], source: str, address: str) -> ProxyVerdict:
    namespace, _, name = source.removeprefix("sa:").partition("/")
    account = f"spiffe://cluster.local/ns/{namespace}/sa/{name}"
    identity = None if source == "anonymous" else account if source.startswith("sa:") else source
    verdict = decide(dict(by_caller.items())[by_caller.cell(identity)], Request({ADDRESS: address, METHOD: "GET"}))
    assert verdict is not None
    return verdict


def address_of(decisions: NetworkDecisions, name: str) -> str:
    placed = {at: decisions.authority.world.placed_at(at) for at in decisions.addresses}
    return next(at for at, workload in placed.items() if workload is not None and workload.name == name)


@pytest.mark.parametrize("prove", [False, True])
@pytest.mark.parametrize("title", WORLDS)
def test_proxies_get_the_decisions_of_the_engine(title: str, prove: bool) -> None:
    decisions = place(WORLDS[title], prove=prove)
    connect = plan_of(decisions).connect
    for source, address in itertools.product((*ACCOUNTS, *STRANGERS), (*ADDRESSES, *sorted(decisions.addresses))):
        decided = decider_of(decisions.authority).decide_connection(
            Question.of(source, "pod:shop/db", port=5432, source_ip=address)
        )
        assert verdict_about(connect, source, address).allowed == decided.outcome.allowed, f"{source} at {address}"


def test_only_its_own_address_is_the_node() -> None:
    connect = plan_of(place(NODES + FROM_A)).connect
    allowed = [address for address in ADDRESSES if verdict_about(connect, "anonymous", address).allowed]
    assert allowed == ["127.0.0.1"]


@pytest.mark.parametrize(("source", "allowed"), [(STRANGERS[0], False), (STRANGERS[1], False), ("anonymous", True)])
def test_an_address_proves_a_pod_only_to_callers_without_a_certificate(source: str, allowed: bool) -> None:
    decisions = place(NAMESPACES + FEW + FROM_A, prove=True)
    address = address_of(decisions, "a")
    assert verdict_about(plan_of(decisions).connect, source, address).allowed is allowed


READS = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {namespace: shop, name: reads}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: db}}}]
  action: ALLOW
  enforcementLevel: APPLICATION
  rules: [{applicationAttributes: {methods: [GET]}}]
---"""
NETWORK_POLICY = "NetworkPolicy.networking.k8s.io/shop"
OUT = network_policy("{podSelector: {matchLabels: {app: a}}, policyTypes: [Egress]}", "out")
OPEN = network_policy(
    f"{{{DB}, ingress: [{{from: [{{podSelector: {{matchExpressions: [{{key: app, operator: Exists}}]}}}}]}}]}}", "open"
)


def audited(text: str) -> str:
    return text.replace("name: ", AUDIT, 1)


def audit_of(plan: PortPlan, *, http: bool) -> ByCaller[Node] | None:
    return plan.audit if not http else plan.requests.audit if plan.requests is not None else None


_READ = "200:AuthorizationPolicy.gateway.networking.x-k8s.io/shop/reads#0"


@pytest.mark.parametrize(
    ("policies", "http", "from_a", "from_b"),
    [
        (audited(FROM_A), False, f"200:ingress/{NETWORK_POLICY}/p#0", f"0:closed-by/{NETWORK_POLICY}/p"),
        (audited(FROM_A), True, _READ, f"0:closed-by/{NETWORK_POLICY}/p"),
        (audited(OUT), False, f"0:closed-by/{NETWORK_POLICY}/out", "200:open"),
        (audited(OUT), True, f"0:closed-by/{NETWORK_POLICY}/out", _READ),
        (OPEN + audited(CLOSED), False, None, None),
        (OPEN + audited(CLOSED), True, None, None),
        (OPEN, False, None, None),
        (OPEN, True, None, None),
    ],
)
def test_proxies_log_what_audited_network_policies_would_do(
    policies: str, http: bool, from_a: str | None, from_b: str | None
) -> None:
    decisions = place(NAMESPACES + FEW + policies + READS)
    plan = plan_of(decisions)
    audit = audit_of(plan, http=http)
    for pod_name, expected in (("a", from_a), ("b", from_b)):
        address = address_of(decisions, pod_name)
        assert verdict_about(plan.connect, "sa:shop/twin", address).allowed
        assert (verdict_about(audit, "sa:shop/twin", address).name if audit is not None else None) == expected


def test_events_tell_the_line_of_an_audited_network_policy() -> None:
    authority: Authority = place(NAMESPACES + FEW + audited(CLOSED)).authority
    twin = "spiffe://cluster.local/ns/shop/sa/twin"
    name = f"0:closed-by/{NETWORK_POLICY}/closed"
    observation = Observation("connection", "shop/db", 5432, twin, "127.64.0.2:1", True, "200:open", audit=(name,))
    [found] = Deciders().audited(observation, authority)
    assert (str(found.policy), found.changes, found.span is not None) == ("NetworkPolicy/shop/closed", True, True)
