"""Would-be effects of audited policies in logs, metrics and events."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from eastgate import Authority, load
from eastgate.authority.auditing import Would
from eastgate.control.access_log import Observation, WouldBe, would_be
from eastgate.control.events import Decided, MeshMetrics
from eastgate.controller.metrics import ControllerMetrics
from eastgate.envoy.plan.decisions import policy_name, ref_of
from eastgate.local.event_text import EventText
from eastgate.reports.why.proxies import explain_observation
from tests.local.running import SHOP

POLICY = "AuthorizationPolicy.gateway.networking.x-k8s.io/shop/cart-from-web"
OTHER = "ClusterAuthorizationPolicy.eastgate.dev/other"
CLOSED = f"0:closed-by/{POLICY}"


def seen(audit: str, *, allowed: bool = True, decision: str = "") -> Observation:
    named = decision or ("200:open" if allowed else "403:none-of-1")
    web = "spiffe://cluster.local/ns/shop/sa/sandbox"
    return Observation("connection", "shop/cart", 8080, web, "127.0.0.1:1", allowed, named, audit=(audit,))


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        (seen("200:none"), []),
        (seen("200:open"), []),
        (seen("403:none-of-1", allowed=False), []),
        (seen("200:ask"), []),
        (seen(CLOSED), [WouldBe(Would.DENY, (POLICY,), None, True)]),
        (seen(f"{CLOSED}+{OTHER}"), [WouldBe(Would.DENY, (POLICY, OTHER), None, True)]),
        (seen(f"403:{POLICY}#1"), [WouldBe(Would.DENY, (POLICY,), 1, True)]),
        (seen(f"200:{POLICY}#0"), [WouldBe(Would.ALLOW, (POLICY,), 0, False)]),
        (seen(f"200:{POLICY}#0", allowed=False), [WouldBe(Would.ALLOW, (POLICY,), 0, True)]),
        (seen("200:open", allowed=False, decision="400:bad-host"), []),
        (seen("200:open", allowed=False, decision="404:proxy/route_not_found"), []),
        (seen(f"ask:{POLICY}#0"), [WouldBe(Would.ASK, (POLICY,), 0, False)]),
        (seen(f"match:{POLICY}#0"), [WouldBe(Would.MATCH, (POLICY,), 0, False)]),
        (seen("0:none-of-0", decision=f"200:{POLICY}#0"), [WouldBe(Would.DENY, (POLICY,), None, True)]),
    ],
)
def test_what_the_name_of_a_would_be_decision_means(observation: Observation, expected: list[WouldBe]) -> None:
    assert list(would_be(observation)) == expected


@pytest.mark.parametrize("name", [POLICY, OTHER, "Server.policy.linkerd.io/a/b", "Kind/n/p"])
def test_the_name_of_a_policy_can_be_read_back(name: str) -> None:
    assert policy_name(ref_of(name)) == name


def test_what_would_be_denied_is_counted() -> None:
    registry = CollectorRegistry()
    metrics, controller = MeshMetrics(CollectorRegistry()), ControllerMetrics(registry)
    for audit in (CLOSED, f"403:{POLICY}#0", f"200:{POLICY}#0", "200:open"):
        metrics.count(seen(audit))
        controller.decided(seen(audit), {POLICY})
    controller.decided(seen(CLOSED), ())
    labels = f'level="connection",policy="{POLICY}",port="8080",workload="shop/cart"'
    assert f"eastgate_audit_denied_total{{{labels}}} 2.0" in metrics.text().decode()
    for policy, count in ((POLICY, 2), ("other", 1)):
        sample = {"level": "connection", "policy": policy}
        assert registry.get_sample_value("eastgate_audit_denied_total", sample) == count
    controller.forget([POLICY])
    assert registry.get_sample_value("eastgate_audit_denied_total", {"level": "connection", "policy": POLICY}) is None


@pytest.fixture
def audited(tmp_path: Path) -> Authority:
    """The shop, with its allow-list for the cart in audit mode."""
    for file in SHOP.glob("*.yaml"):
        text = file.read_text().replace(
            "name: cart-from-web,", "name: cart-from-web, annotations: {eastgate.dev/mode: audit},"
        )
        (tmp_path / file.name).write_text(text)
    return load(tmp_path)


def test_events_and_why_name_the_policy_and_its_line(audited: Authority, tmp_path: Path) -> None:
    observation, teller = seen(CLOSED), EventText(lambda: audited)
    line = (
        f"AUDIT  AuthorizationPolicy/shop/cart-from-web would deny it: no rule allows it  ({tmp_path}/policies.yaml:2)"
    )
    assert teller.line(Decided(observation, 7)).splitlines()[1] == f"      {line}"
    effects = [
        {
            "policy": "AuthorizationPolicy/shop/cart-from-web",
            "verdict": "deny",
            "rule": None,
            "file": str(tmp_path / "policies.yaml"),
            "line": 2,
            "reason": "no rule allows it",
            "changes": True,
        }
    ]
    assert teller.observation_to_json(observation)["audited"] == effects
    why = explain_observation(observation, audited)
    assert f"  {line}" in why.text().splitlines()
    assert why.line["audited"] == effects
