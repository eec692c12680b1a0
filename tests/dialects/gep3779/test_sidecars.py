"""With `sidecars: actual`, as in a cluster, a pod without a proxy enforces nothing."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question
from eastgate.authority.reading import read_plain
from eastgate.cluster.proxies import ProxyPresence, proxy_presence
from eastgate.settings import Settings, Sidecars
from tests.authority.sources.objects import policy

LIVE = Settings(sidecars=Sidecars.ACTUAL)
POLICY = "AuthorizationPolicy/shop/cart"
LABEL = {"eastgate.dev/proxy": "sidecar"}
BOUND = {"eastgate.dev/proxy": "bound"}
EXCLUDED = {"eastgate.dev/exclude-inbound-ports": "9000"}


def pod(
    *containers: str,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    uid: str | None = "1",
    **spec: Any,
) -> dict[str, Any]:
    metadata = {"name": "cart", "namespace": "shop", "labels": {"app": "cart", **(labels or {})}}
    metadata |= {"annotations": annotations or {}} | ({"uid": uid} if uid is not None else {})
    listed = [{"name": name} for name in ("main", *containers)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": listed, **spec}}


def native_sidecar() -> dict[str, Any]:
    made = pod()
    made["spec"]["initContainers"] = [{"name": "eastgate-proxy", "restartPolicy": "Always"}]
    return made


CASES = {
    "as injection makes it": (native_sidecar(), ProxyPresence.PRESENT),
    "whose label was taken away": (pod("eastgate-proxy"), ProxyPresence.PRESENT),
    "that opens its ports itself": (pod("eastgate-proxy", labels=BOUND), ProxyPresence.PRESENT),
    "with the label of one that opens its ports itself alone": (pod(labels=BOUND), ProxyPresence.UNPROVEN),
    "with a label alone": (pod(labels=LABEL), ProxyPresence.UNPROVEN),
    "without anything": (pod(), ProxyPresence.ABSENT),
    "on the network of its node": (pod(labels=LABEL, hostNetwork=True), ProxyPresence.ABSENT),
    "that no server has": (pod(uid=None), ProxyPresence.UNBORN),
}


def authority(made: dict[str, Any], settings: Settings = LIVE) -> Authority:
    return Authority(read_plain([made, policy("shop", "cart", ["web"])], settings))


def ask(made: dict[str, Any], account: str = "stranger", port: int = 8080) -> Decision:
    return authority(made).decide(Question.of(f"sa:shop/{account}", "pod:shop/cart", port=port))


@pytest.mark.parametrize(("made", "presence"), CASES.values(), ids=CASES)
def test_the_presence_of_a_proxy(made: dict[str, Any], presence: ProxyPresence) -> None:
    world = authority(made).world
    assert proxy_presence(world, world.workloads["shop/cart"]) is presence


@pytest.mark.parametrize(("made", "presence"), CASES.values(), ids=CASES)
def test_only_a_pod_that_certainly_has_none_is_open(made: dict[str, Any], presence: ProxyPresence) -> None:
    decision = ask(made)
    assert decision.allowed is (presence is ProxyPresence.ABSENT)
    assert ask(made, "web").allowed
    (enforcement,) = decision.enforcement
    assert [str(ref) for ref in enforcement.policies] == [POLICY]
    assert enforcement.certain is (presence in (ProxyPresence.ABSENT, ProxyPresence.PRESENT))
    assert (enforcement.by is None) is (presence is ProxyPresence.ABSENT)
    assert ("not certain" in decision.reason) is not enforcement.certain


def test_a_port_that_is_kept_from_the_proxy_is_in_doubt_and_no_other_one() -> None:
    made = pod("eastgate-proxy", annotations=EXCLUDED)
    assert "not certain" in ask(made, port=9000).reason
    assert "not certain" not in ask(made, port=8080).reason
    assert not ask(made, port=9000).allowed


def test_proxies_enforce_whatever_is_known_of_others() -> None:
    assert LIVE.enforced().sidecars is Sidecars.ASSUMED
    question = Question.of("sa:shop/stranger", "pod:shop/cart", port=8080)
    assert not authority(pod(), LIVE.enforced()).decide(question).allowed
